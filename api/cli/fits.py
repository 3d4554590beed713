"""`reprieve fits`: how many of such a pod fit?"""

import asyncio
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from api.cli.asking import Config, Context, Dump, Kubeconfig, Server, Source, Token
from api.cli.manifests import read_manifests
from api.cli.showing import Output, OutputOption, plural, show, table
from api.settings import StartUpError
from extender.answers.types import Capacity

SHOWN_NODES = 20


def fits(
    filename: Annotated[str, typer.Option("--filename", "-f", help="The pod; - reads standard input.")],
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Count no further.")] = 10_000,
    server: Server = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    dump: Dump = None,
    config: Config = None,
    token: Token = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say how many of such a pod fit, one after the other, on which nodes, and what stops the next one. Nobody is evicted for them."""
    objects = read_manifests(filename)
    pods = [obj for obj in objects if obj.get("kind") == "Pod"]
    if len(pods) != 1:
        raise StartUpError(f"{filename}: {plural(len(pods), 'pod')} in it; give one")
    answer = asyncio.run(_asked(Source(server, kubeconfig, context, dump, config, token), _with_priority(pods[0], objects), limit))
    show(answer, output, _in_words)


async def _asked(source: Source, pod: dict[str, Any], limit: int) -> Capacity:
    async with source.open() as asked:
        return await asked.capacity_of(pod, limit)


def _with_priority(pod: dict[str, Any], objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod with the priority that a class beside it in the file gives it."""
    spec = pod.get("spec")
    name = spec.get("priorityClassName") if isinstance(spec, dict) else None
    for obj in objects:
        if obj.get("kind") == "PriorityClass" and name and obj.get("metadata", {}).get("name") == name:
            others = {key: value for key, value in spec.items() if key != "priorityClassName"} if isinstance(spec, dict) else {}
            return {**pod, "spec": {**others, "priority": obj.get("value")}}
    return pod


def _in_words(console: Console, answer: Capacity, wide: bool) -> None:
    more = "at least " if answer.is_limit else ""
    console.print(Text(f"{more}{plural(answer.fits, 'pod')} fit on {plural(len(answer.by_node), 'node')}", style="bold"))
    if answer.stopped_by:
        console.print(Text(f"the next one: {answer.stopped_by}", style="dim"))
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"))
    lines = table("node", "pods")
    for room in answer.by_node if wide else answer.by_node[:SHOWN_NODES]:
        lines.add_row(room.node, str(room.pods))
    console.print(lines)
    if not wide and len(answer.by_node) > SHOWN_NODES:
        console.print(f"and {plural(len(answer.by_node) - SHOWN_NODES, 'more node')}; -o wide lists all")
