"""`reprieve dev`: what would the plugins of this project change in a cluster?"""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from api.cli.showing import OutputOption, heading, name_of, show, table
from api.settings.settings import EXAMPLE_CLUSTER
from extender.answers.phrases import plural
from extender.answers.questions import Questions
from reprieve.errors import StartUpError
from reprieve.lab.plugin_effects import Destination, PluginEffects
from reprieve.sources.dumps import about_dump
from reprieve.sources.live_clusters import about_followed_cluster
from reprieve.sources.plugin_bench import PluginBench
from reprieve.sources.plugin_project import PluginProject, plugin_name
from reprieve.sources.reaching import reach


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
        int | None,
        typer.Option(min=0, max=65535, help="With --kube-scheduler: the port of the API and of the page (8888)."),
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
        raise StartUpError("--dump and --kubeconfig name two clusters: give one of them")
    if kube_scheduler is not None and (kubeconfig is not None or reload or output != "table"):
        raise StartUpError("--kube-scheduler: its cluster is in memory; leave out --kubeconfig, --reload and --output")
    if kube_scheduler is None and port is not None:
        raise StartUpError("--port: it needs --kube-scheduler")
    project = PluginProject.at(folder) if plugin is None else PluginProject.of_file(plugin, plugin_name(plugin.stem))
    if kube_scheduler is not None:
        from api.cli.beside_kube_scheduler import run_beside  # noqa: PLC0415 - a web framework, which others do without

        run_beside(kube_scheduler, project, config, dump, port)
        return
    try:
        if kubeconfig is not None:
            asyncio.run(reach(kubeconfig, context))
        project.open()
        bench = PluginBench(project, config or project.configuration_file, limit, _report)
        cluster = (
            about_dump(dump or EXAMPLE_CLUSTER, None)
            if kubeconfig is None
            else about_followed_cluster(kubeconfig, context, None)
        )
        asyncio.run(_looked_at(bench, cluster, output, repeats=reload))
    except KeyboardInterrupt:
        sys.exit(0)


async def _looked_at(
    bench: PluginBench, cluster: AbstractAsyncContextManager[Questions], output: str, *, repeats: bool
) -> None:
    async with cluster as questions:
        effects = await bench.effects(questions)
        show(effects, output, _in_words)
        if effects.errors and not repeats:
            raise typer.Exit(1)
        if repeats:
            async for changed in bench.changes(questions, effects):
                show(changed, output, _in_words)
                sys.stdout.flush()


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
            refused = ", ".join(f"{plural(refusal.nodes, 'node')}: {refusal.reason}" for refusal in effect.refused)
            lines.add_row(name_of(effect.pod), _where(effect.before), _where(effect.after), refused)
        console.print(lines)
    if answer.running:
        console.print(heading("Running pods that the plugins would refuse on their nodes"))
        rows = ((name_of(row.pod), row.node, ", ".join(row.reasons)) for row in answer.running)
        console.print(table("pod", "node", "reason", rows=rows))
    if not changed and not answer.running and not answer.errors:
        console.print("The plugins would change nothing here.")
    console.print("Nothing was written.", style="dim")


def _where(destination: Destination) -> str:
    evicting = f", evicting {plural(destination.evicts, 'pod')}" if destination.evicts else ""
    return f"{destination.node}{evicting}" if destination.node else "pending"
