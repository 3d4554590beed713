"""`reprieve dev`: what would the plugins of this project change in a cluster?"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Final, final

import typer
from rich.console import Console
from rich.text import Text

from api.cli.init import plugin_name
from api.cli.showing import OutputOption, heading, name_of, show, table
from api.settings.settings import EXAMPLE_CLUSTER
from extender.answers.phrases import plural
from extender.answers.questions import Questions
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.values.reasons import InputError, in_one_line
from reprieve.errors import StartUpError
from reprieve.lab.plugin_effects import Destination, PluginEffects, plugin_effects
from reprieve.sources.configurations import read_configuration
from reprieve.sources.dumps import about_dump
from reprieve.sources.live_clusters import about_followed_cluster
from reprieve.sources.plugin_project import PluginProject
from reprieve.sources.reaching import reach

SECONDS: Final = 0.25
"""Pause between two looks at the project's files."""


def dev(
    plugin: Annotated[
        Path | None, typer.Argument(help="One file with a plugin, in place of a project.", metavar="[PLUGIN.py]")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Use the cluster of this kubeconfig; it is only read.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig (its current one).")] = None,
    dump: Annotated[
        Path | None, typer.Option(help="Use the cluster in this file, a List as kubectl prints it (an example).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="KubeSchedulerConfiguration that enables the plugins (scheduler-config.yaml)."),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Repeat after each edit and each change of the cluster, until Ctrl-C.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Pods to judge, pending ones first.")] = 500,
    folder: Annotated[Path, typer.Option(help="The project.")] = Path(),
    kube_scheduler: Annotated[
        Path | None,
        typer.Option(help="Run this kube-scheduler on a cluster in memory, with the plugins as its extender."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --kube-scheduler: where cluster and page are (8888).")
    ] = None,
    output: OutputOption = "table",
) -> None:
    """Show what your plugins would change in a cluster; nothing is written.

    With --kube-scheduler, the binary of a real one decides, and calls the plugins: each pod is shown with the nodes
    that kube-scheduler offered, what the plugins changed, and where it was bound. --dump is the cluster's beginning.

    Otherwise each pod is judged by a scheduler with the plugins and by one without them. With --reload, an edit that
    fails is reported, and the last working plugins stay.
    """
    if dump is not None and kubeconfig is not None:
        raise StartUpError("--dump and --kubeconfig are two clusters: give one of them")
    if kube_scheduler is not None and (kubeconfig is not None or reload or output != "table"):
        raise StartUpError("--kube-scheduler: its cluster is in memory; leave out --kubeconfig, --reload and --output")
    if kube_scheduler is None and port is not None:
        raise StartUpError("--port: only with --kube-scheduler does anything listen")
    project = PluginProject.at(folder) if plugin is None else PluginProject.of_file(plugin, plugin_name(plugin.stem))
    if kube_scheduler is not None:
        from api.cli.beside_kube_scheduler import run_beside  # noqa: PLC0415 - a web framework, which others do without

        run_beside(kube_scheduler, project, config, dump, port)
        return
    try:
        if kubeconfig is not None:
            asyncio.run(reach(kubeconfig, context))
        project.open()
        bench = _Bench(project, config or project.configuration_file, limit)
        cluster = (
            about_dump(dump or EXAMPLE_CLUSTER, None)
            if kubeconfig is None
            else about_followed_cluster(kubeconfig, context, None)
        )
        asyncio.run(_looked_at(bench, cluster, output, repeats=reload))
    except KeyboardInterrupt:
        sys.exit(0)


async def _looked_at(
    bench: "_Bench", cluster: AbstractAsyncContextManager[Questions], output: str, *, repeats: bool
) -> None:
    async with cluster as questions:
        found = await bench.effects(questions)
        show(found, output, _in_words)
        if found.errors and not repeats:
            raise typer.Exit(1)
        if repeats:
            async for changed in bench.changes(questions, found):
                show(changed, output, _in_words)
                sys.stdout.flush()


@final
class _Bench:
    """A project's last good plugins and the cluster they are tried on. State: these, and when files changed."""

    def __init__(self, project: PluginProject, config: Path | None, limit: int) -> None:
        self._project = project
        self._config = config
        self._limit = limit
        self._stamp = project.stamp()
        self._registry = Registry(IN_TREE)

    async def effects(self, questions: Questions, registry: Registry | None = None) -> PluginEffects:
        """Returns what the plugins change. Raises InputError for a wrong configuration or arguments."""
        after = self._project.enabled_in(read_configuration(self._config))
        before = self._project.disabled_in(after)
        return await plugin_effects(
            questions.fork(), registry or self._registry, before, after, self._project.plugin_names, self._limit
        )

    async def changes(self, questions: Questions, last: PluginEffects) -> AsyncIterator[PluginEffects]:
        """Yields what the plugins change whenever that is not what they changed before."""
        _report(f"waiting for edits in {self._project.only or self._project.folder}; Ctrl-C ends this")
        version = questions.version()
        while True:
            await asyncio.sleep(SECONDS)
            stamp = self._project.stamp()
            is_edited, self._stamp = stamp != self._stamp, stamp
            if not is_edited and questions.version() == version:
                continue
            version = questions.version()
            found = await self._reloaded(questions) if is_edited else await self.effects(questions)
            if found is not None and found != last:
                last = found
                yield found
            elif found is not None and is_edited:
                _report("the edit changes nothing")

    async def _reloaded(self, questions: Questions) -> PluginEffects | None:
        """Returns what the edited plugins change; None, reported, if they are broken: the last good ones stay."""
        before = self._project.forget_modules()
        try:
            registry = Registry(IN_TREE)
            found = await self.effects(questions, registry)
        except InputError as exc:
            why = in_one_line(exc)
        else:
            if not found.errors:
                self._registry = registry
                _report("reloaded")
                return found
            why = "; ".join(found.errors)
        self._project.forget_modules()
        sys.modules.update(before)
        _report(f"the edit is broken, and the last good plugins stay: {why}")
        return None


def _report(text: str) -> None:
    print(f"reprieve dev: {text}", file=sys.stderr, flush=True)


def _in_words(console: Console, answer: PluginEffects, wide: bool) -> None:
    changed = [effect for effect in answer.pending if wide or effect.before != effect.after or effect.refused]
    names = ", ".join(answer.plugins)
    looked = (
        f"{plural(answer.nodes, 'node')}, {plural(len(answer.pending), 'pending pod')}, "
        f"{plural(answer.looked_at, 'running pod')}"
    )
    console.print(
        Text.assemble(
            (names, "bold"), f" on {looked}" + (f" ({answer.left_out} more left out)" if answer.left_out else "")
        )
    )
    for error in answer.errors:
        console.print(error, style="red")
    if changed:
        console.print(heading("Pending pods"))
        lines = table("pod", "without", "with", "refused by the plugins")
        for effect in changed:
            refused = ", ".join(f"{plural(each.nodes, 'node')}: {each.reason}" for each in effect.refused)
            lines.add_row(name_of(effect.pod), _where(effect.before), _where(effect.after), refused)
        console.print(lines)
    if answer.running:
        console.print(heading("Running pods that would not be let onto their node"))
        rows = ((name_of(each.pod), each.node, ", ".join(each.reasons)) for each in answer.running)
        console.print(table("pod", "node", "reason", rows=rows))
    if not changed and not answer.running and not answer.errors:
        console.print("The plugins would change nothing here.")
    console.print("Nothing was written.", style="dim")


def _where(there: Destination) -> str:
    evicting = f", evicting {plural(there.evicts, 'pod')}" if there.evicts else ""
    return f"{there.node}{evicting}" if there.node else "pending"
