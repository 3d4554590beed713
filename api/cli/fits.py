"""`reprieve fits`: how many of such a pod fit?"""

from typing import Annotated, Final

import typer
from rich.console import Console

from api.cli.showing import OutputOption, WatchOption, exit_code, table
from api.cli.sources import SourceOptions
from extender.answers.catalogue import CapacityOfQuestion
from extender.answers.phrases import NOT_KNOWN, plural
from extender.answers.types import Capacity
from extender.values.workloads.expansion import JOB_SET, WORKLOADS
from reprieve.errors import StartUpError

SHOWN_NODES = 20

_COUNTED: Final = frozenset(("Pod", *(kind for _, kind in WORKLOADS)))


def fits(
    *,
    filename: Annotated[
        list[str], typer.Option("--filename", "-f", help="The pod, or the workload; - reads standard input.")
    ],
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Stop counting at this number (100000; 1000 for pods whose node depends on other nodes).",
        ),
    ] = None,
    source: SourceOptions,
    output: OutputOption = "table",
    watch: WatchOption = False,
) -> None:
    """Count how many pods like this one fit, on which nodes, and what stops the next one.

    The pods are placed one after the other, without evictions. For a workload, pods of its template are counted.
    """
    objects = source.objects(filename)
    subjects = [obj for obj in objects if obj.get("kind") in _COUNTED]
    if not subjects and any(obj.get("kind") == JOB_SET[1] for obj in objects):
        raise StartUpError(
            f"{', '.join(filename)}: pods of one template are counted; give one Job of the JobSet, or ask whatif about "
            "all"
        )
    if len(subjects) != 1:
        raise StartUpError(f"{', '.join(filename)}: {len(subjects)} pods or workloads in it; give one")
    related = [obj for obj in objects if obj.get("kind") in ("PodGroup", "PriorityClass")]
    subject = {"apiVersion": "v1", "kind": "List", "items": [*related, *subjects]} if related else subjects[0]
    question = CapacityOfQuestion(pod=subject, limit=limit)
    source = source.in_namespace_of(subjects[0])
    answer = source.show(lambda answers: answers.ask(question), output, _in_words, watch=watch)
    if not answer.fits:
        raise typer.Exit(exit_code([answer.stopped_by]))


def _in_words(console: Console, answer: Capacity, wide: bool) -> None:
    more = "at least " if answer.is_limit else ""
    verb = "fits" if answer.fits == 1 else "fit"
    fits = f"{more}{plural(answer.fits, 'pod')} {verb} on {plural(len(answer.by_node), 'node')}"
    none = "how many fit is not known" if NOT_KNOWN in answer.stopped_by else "no pod like this one fits on any node"
    console.print(fits if answer.fits else none, style="bold")
    if answer.gangs is not None:
        console.print(f"{more}{plural(answer.gangs, 'gang')} of {answer.gang_size} fit", style="bold")
    if answer.stopped_by:
        console.print(f"next pod: {answer.stopped_by}", style="dim")
    for note in answer.notes:
        console.print(f"note: {note}", style="dim")
    listed_nodes = answer.by_node if wide else answer.by_node[:SHOWN_NODES]
    console.print(table("node", "pods", rows=((room.node, str(room.pods)) for room in listed_nodes)))
    if not wide and len(answer.by_node) > SHOWN_NODES:
        console.print(f"and {plural(len(answer.by_node) - SHOWN_NODES, 'more node')}; -o wide lists all")
