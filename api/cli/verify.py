"""`reprieve verify`: scheduling rules as tests, and files that keep where their pods went, to compare with."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from api.cli.showing import console, printable
from extender.answers.phrases import plural
from reprieve.errors import StartUpError
from reprieve.sources.rule_files import DecisionsFile, Verdict, deciders, verdicts, write_junit


def verify_rules(
    tests: Annotated[list[Path], typer.Argument(help="Files with rules, or folders of them.", metavar="TESTS")],
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration for rules without one of their own.")
    ] = None,
    k8s: Annotated[
        str,
        typer.Option(
            "--k8s",
            help="Versions of kube-scheduler to check, one after the other, such as 1.34,1.37.",
            metavar="VERSIONS",
        ),
    ] = "",
    golden: Annotated[
        Path | None,
        typer.Option(
            help="Compare where pods go with this file, which another version or configuration may have written."
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update", help="Write the --golden file, as the first version decides, instead of comparing."),
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Also write the results to this file, in JUnit's format.")] = None,
) -> None:
    """Check scheduling rules: given a cluster, when something happens to it, where do pods go?

    A rule may also say which pods must not be evicted. A line is printed for each rule; the exit code is 1 if one does
    not hold. No cluster is needed. --golden compares placements with a file that another version (--k8s) or
    configuration has written. A rule:

    \b
    name: web is spread over the zones, and nothing is evicted
    given: {nodes: {count: 6, zones: [a, b, c], cpu: 4}, existing: running.yaml}
    when: {apply: web.yaml}
    then:
      - {pods: app=web, placed: 3, spread: {by: zone, maxSkew: 1}}
      - {noPreemptionOf: priorityClass=prod}
    """
    if update and golden is None:
        raise StartUpError("--update needs --golden FILE")
    decisions_file = None if golden is None else DecisionsFile(golden, is_updated=update)
    versions = [version for version in k8s.split(",") if version]
    results = [
        verdict
        for decider in deciders(config, versions, decisions_file)
        for verdict in printed(verdicts(tests, decider))
    ]
    if not results:
        raise StartUpError(f"{', '.join(map(str, tests))}: no rules in it")
    failed = sum(not verdict.holds for verdict in results)
    num_holding = len(results) - failed
    text = f"{plural(num_holding, 'rule')} {'holds' if num_holding == 1 else 'hold'}"
    if failed:
        text += f", {failed} {'does' if failed == 1 else 'do'} not"
    console().print(text, style="bold red" if failed else "bold green")
    if decisions_file is not None:
        decisions_file.write()
    if junit is not None:
        write_junit(junit, results)
    if failed:
        raise typer.Exit(1)


def printed(judged: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yields each verdict, once it is printed."""
    for verdict in judged:
        _print(printable(verdict))
        yield verdict


def _print(verdict: Verdict) -> None:
    mark, style = ("✓", "green") if verdict.holds else ("✗", "red")
    line = Text.assemble((mark, style), f" {verdict.title}", (f"  {verdict.seconds * 1000:.0f} ms", "dim"))
    out = console()
    out.print(line, soft_wrap=True)
    if verdict.error:
        out.print(f"    {verdict.file}: {verdict.error}", soft_wrap=True)
    for failure in verdict.failures:
        out.print(f"    expected {failure.expected}", soft_wrap=True)
        out.print(f"    but      {failure.happened}", soft_wrap=True)
