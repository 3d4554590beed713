"""`reprieve test`: does the plugin of this project do what it should?"""

import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from api.cli.showing import console
from api.cli.verify import printed
from extender.answers.phrases import plural
from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import told
from extender.engine.runtime.registry import Registry
from extender.testing.laws import check_filter, random_cluster
from extender.values.config.configuration import ConfigErrors, Configuration
from reprieve.errors import NegativeError
from reprieve.sources.configurations import read_configuration, with_fix
from reprieve.sources.plugin_project import PluginProject
from reprieve.sources.rule_files import Decider, verdicts

CLUSTERS: Final = 50
"""The number of random clusters on which the laws are tried."""


def check_project(
    folder: Annotated[Path, typer.Argument(help="The project.", metavar="[FOLDER]")] = Path(),
    seed: Annotated[int, typer.Option(help="Seed of the random clusters.")] = 1,
) -> None:
    """Check a project's plugins: they load, keep the laws of Filters, and their rules and tests pass.

    Rules are the files of rules/, as `reprieve verify` reads them; tests are those of tests/, if pytest is installed.
    Plugins are made as scheduler-config.yaml says. The exit code is 1 if something does not hold.
    """
    project = PluginProject.at(folder)
    project.open()
    configuration = project.enabled_in(read_configuration(project.configuration_file))
    passed = [_loads(project)]
    passed += list(_keep_the_laws(project, configuration, seed))
    rules, tests = folder / "rules", folder / "tests"
    if rules.is_dir():
        passed += [verdict.holds for verdict in printed(verdicts([rules], Decider(configuration)))]
    if tests.is_dir():
        passed += _pass_tests(tests)
    failed = passed.count(False)
    words = f"{plural(failed, 'check')} failed" if failed else f"{plural(len(passed), 'check')} passed"
    console().print(words, style="bold red" if failed else "bold green")
    if failed:
        raise typer.Exit(1)


def _loads(project: PluginProject) -> bool:
    """Prints the plugins with their extension points. Raises NegativeError if one cannot be loaded."""
    try:
        points = Registry(IN_TREE).points_of
    except ConfigErrors as exc:
        raise NegativeError(with_fix(exc)) from exc
    for name in sorted(project.plugin_names):
        _say(True, f"{name} loads: {', '.join(sorted(points[name]))}")
    return True


def _keep_the_laws(project: PluginProject, configuration: Configuration, seed: int) -> Iterator[bool]:
    """Yields for each Filter and Score plugin of the project whether it keeps the laws on random clusters."""
    for name, plugin in sorted(_filters(project, configuration)):
        chance = random.Random(seed)
        broken = ""
        for number in range(CLUSTERS):
            cluster = random_cluster(chance)
            try:
                check_filter(plugin, cluster.snapshot(), cluster.pod, chance, arrivals=cluster.arrivals)
            except AssertionError as exc:
                broken = f"cluster {number} of seed {seed}: {exc}"
            except Exception as exc:
                below = exc.__traceback__ and exc.__traceback__.tb_next
                broken = f"cluster {number} of seed {seed}: {told(exc.with_traceback(below))}"
            if broken:
                break
        yield _say(not broken, f"{name} keeps the laws of Filters on {CLUSTERS} random clusters", broken)


def _filters(project: PluginProject, configuration: Configuration) -> Iterator[tuple[str, fwk.FilterPlugin]]:
    """Yields the project's Filters as the first profile that has them makes them. Raises ConfigErrors."""
    frameworks: dict[str, Framework] = Registry(IN_TREE).make_frameworks(
        configuration, random.Random(0), is_exhaustive=True
    )
    plugins = {name: plugin for framework in reversed(frameworks.values()) for name, plugin in framework.plugins.filter}
    yield from ((name, plugin) for name, plugin in plugins.items() if name in project.plugin_names)


def _pass_tests(tests: Path) -> list[bool]:
    if find_spec("pytest") is None:
        console().print(f"- {tests}: not run, because pytest is not installed beside reprieve", style="dim")
        return []
    import pytest  # noqa: PLC0415 - it is there for those who develop plugins only

    sys.stdout.flush()
    # Some of what pytest and its plugins would rewrite is loaded by now.
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*quiet, "--rootdir", str(tests.parent), str(tests)])
    return [_say(code == pytest.ExitCode.OK, f"the tests in {tests} pass")]


def _say(holds: bool, text: str, detail: str = "") -> bool:
    mark, style = ("✓", "green") if holds else ("✗", "red")
    out = console()
    out.print(Text.assemble((mark, style), f" {text}"), soft_wrap=True)
    if detail:
        out.print(f"    {detail}", soft_wrap=True)
    return holds
