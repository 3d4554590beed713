"""`reprieve whatif` and `reprieve victims`: what would happen if?"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from api.cli.names import completed
from api.cli.showing import (
    OutputOption,
    budgets,
    exit_code,
    first_of,
    heading,
    name_of,
    print_losers,
    table,
    victims_table,
)
from api.cli.sources import Source, SourceOptions
from extender.answers.catalogue import WhatIfQuestion
from extender.answers.parts import Victim
from extender.answers.phrases import NOT_KNOWN, loss, plural, why_no_room
from extender.answers.types import Eviction, NodesLike, Placement, PreemptionAnswer, WhatIf, WhatIfRequest
from extender.values.byte_order_marks import in_utf8
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.sources.manifest_files import check_subject, with_priority

_NODES: Final = completed("nodes", lambda: Source)

Manifests = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="Objects to create: pods, workloads, nodes, ...; - reads standard input."),
]


def what_if(
    *,
    filename: Manifests = None,
    priority_class: Annotated[str, typer.Option(help="Give the pods of -f this PriorityClass.")] = "",
    preempt: Annotated[
        bool | None,
        typer.Option(
            "--preempt/--no-preempt", help="Whether the pods of -f may preempt others (as their preemptionPolicy says)."
        ),
    ] = None,
    add_nodes: Annotated[int, typer.Option(min=0, max=1000, help="How many nodes to add, each a copy of --like.")] = 0,
    like: Annotated[
        str, typer.Option(help="The node to copy: its size, labels and taints.", autocompletion=_NODES)
    ] = "",
    drain: Annotated[
        list[str] | None, typer.Option(help="A node to drain; can be repeated.", autocompletion=_NODES)
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="A node to remove; can be repeated.", autocompletion=_NODES)
    ] = None,
    with_config: Annotated[Path | None, typer.Option(help="Another KubeSchedulerConfiguration to try.")] = None,
    pending: Annotated[bool, typer.Option(help="Also schedule the pods that are pending.")] = False,
    source: SourceOptions,
    output: OutputOption = "table",
) -> None:
    """Show what would happen if objects were created, nodes drained or removed, or settings changed.

    Nothing is changed. The scheduler itself places the pods on a copy of the cluster, with preemption; every evicted
    pod is followed to the node on which it lands.
    """
    if bool(add_nodes) != bool(like):
        raise StartUpError("--add-nodes and --like go together: --add-nodes 3 --like node-a1")
    if (priority_class or preempt is not None) and not filename:
        raise StartUpError("--priority-class and --preempt are about the pods of -f: give a file")
    created = [with_priority(obj, priority_class, preempt) for obj in source.objects(filename or ())]
    if created:
        check_subject(created, filename or (), is_about_pods=False)
    request = WhatIfRequest(
        create=created,
        add_nodes=[NodesLike(like=like, count=add_nodes)] if like else [],
        drain_nodes=[*(drain or ())],
        remove_nodes=[*(remove or ())],
        configuration=_read_configuration(with_config) if with_config is not None else None,
        include_pending=pending,
    )
    if request == WhatIfRequest():
        raise StartUpError(
            "nothing to try: give -f FILE, --add-nodes, --drain NODE, --remove NODE, --with-config FILE or --pending"
        )
    source = source.in_namespace_of(created[0]) if created else source
    answer = source.show(lambda answers: answers.ask(WhatIfQuestion(request=request)), output, _in_words)
    if unplaced := [placement.message for placement in answer.placements if not placement.node]:
        raise typer.Exit(exit_code(unplaced))


def victims(
    *,
    filename: Annotated[
        list[str], typer.Option("--filename", "-f", help="The pod, or the workload; - reads standard input.")
    ],
    source: SourceOptions,
    output: OutputOption = "table",
) -> None:
    """Show which pods would be evicted if this pod were created, and why not others.

    The answer names the node, the disruption budgets that would be violated, and why other nodes lose.
    """
    objects = source.objects(filename)
    check_subject(objects, filename, is_about_pods=True)
    question = WhatIfQuestion(request=WhatIfRequest(create=objects))
    answer = source.in_namespace_of(objects[0]).show(lambda answers: answers.ask(question), output, _victims_in_words)
    new_placements = (placement for placement in answer.placements if placement.cause == "created")
    if unplaced := [placement.message for placement in new_placements if not placement.node]:
        raise typer.Exit(exit_code(unplaced))


def _read_configuration(file: Path) -> dict[str, object]:
    try:
        value = plain(read_yaml(in_utf8(file.read_bytes()).decode()).value)
    except (OSError, UnicodeDecodeError, YamlError) as exc:
        raise StartUpError(f"{file}: {in_one_line(exc)}") from exc
    if not isinstance(value, dict):
        raise StartUpError(f"{file}: not a KubeSchedulerConfiguration")
    return value


def _in_words(console: Console, answer: WhatIf, wide: bool) -> None:
    console.print(answer.summary, style="bold")
    # Of a pod that is evicted, the table of those says where it goes.
    placements = [placement for placement in answer.placements if placement.cause != "evicted" or not answer.evictions]
    if placements:
        console.print(heading("Pods"))
        placed = table("pod", "priority", "node", "evicts", "message", less_important=("priority",))
        for placement, more in _grouped_placements(placements, apart=wide):
            evicts = first_of([_evicted(victim) for victim in placement.evicts], 100 if wide else 3)
            later = f"once {budgets(placement.waits_for)} allows it" if placement.waits_for else ""
            # What kept it from a node before one was found for it is in the JSON only.
            message = later if placement.node else placement.message
            node = placement.node or Text("pending", style="red")
            placed.add_row(name_of(placement.pod), str(placement.pod.priority), node, evicts, message)
            if more:
                placed.add_row(f"{more} x as above", "", node, "", "")
        console.print(placed)
    if answer.evictions:
        console.print(
            heading(
                "Evicted"
                if any(eviction.why not in ("scaled down", "replaced") for eviction in answer.evictions)
                else "Deleted"
            )
        )
        _evictions(console, answer.evictions)
    if answer.gpu_hours:
        console.print(f"GPU time lost: {answer.gpu_hours:.1f} GPU-hours")
    _loops_and_notes(console, answer)


def _grouped_placements(placements: Sequence[Placement], *, apart: bool) -> Iterator[tuple[Placement, int]]:
    """Yields pods that find no node for the same reason once, with the number of further ones; or all apart."""

    def group_key(placement: Placement) -> object:
        pod = placement.pod
        return pod.uid if placement.node or apart else (pod.namespace, pod.priority, placement.message)

    for _, (first, *repeats) in groupby(placements, group_key):
        yield first, len(repeats)


def _evicted(victim: Victim) -> str:
    return f"{name_of(victim.pod)} against {budgets(victim.violates)}" if victim.violates else name_of(victim.pod)


def _victims_in_words(console: Console, answer: WhatIf, wide: bool) -> None:
    if not any(placement.cause == "created" for placement in answer.placements):
        console.print(answer.summary, style="bold")
    for group in answer.groups:
        console.print(group.text, style="bold")
        if group.evicts:
            console.print(f"It would evict {plural(len(group.evicts), 'pod')}:")
            console.print(victims_table(group.evicts, wide=wide))
    for placement in answer.placements:
        if placement.cause == "created":
            _victims_of(console, placement, wide=wide)
    cascades = [
        eviction for eviction in answer.evictions if eviction.lands_on or eviction.message or eviction.depth > 1
    ]
    if cascades:
        console.print(heading("What follows"))
        _evictions(console, cascades)
    _loops_and_notes(console, answer)


def _victims_of(console: Console, placement: Placement, *, wide: bool) -> None:
    pod, preemption = placement.pod, placement.preemption
    if not placement.evicts:
        outcome = f"fits on {placement.node} without evictions" if placement.node else "would stay pending"
        if not placement.node and NOT_KNOWN in placement.message:
            outcome = "may fit or not: it is not known"
        console.print(f"{name_of(pod)} {outcome}", style="bold")
        if not placement.node:
            console.print(placement.message)
            if preemption is not None and preemption.message:
                # The scheduler's own words are a part of the message.
                console.print(why_no_room(preemption), style="dim")
        _loss(console, preemption)
        return
    console.print(
        f"{name_of(pod)} (priority {pod.priority}) would evict {plural(len(placement.evicts), 'pod')} on "
        f"{placement.node}",
        style="bold",
    )
    console.print(victims_table(placement.evicts, wide=wide))
    if preemption is None:
        return
    if preemption.num_pdb_violations:
        console.print(f"against {plural(preemption.num_pdb_violations, 'PodDisruptionBudget violation')}")
    _loss(console, preemption)
    print_losers(console, preemption.candidates, preemption.node, preemption.num_candidates - 1, wide=wide)


def _loss(console: Console, preemption: PreemptionAnswer | None) -> None:
    loss_words = "" if preemption is None else loss(preemption)
    if loss_words:
        console.print(loss_words)


def _evictions(console: Console, evictions: list[Eviction] | tuple[Eviction, ...]) -> None:
    lines = table("pod", "from", "cause", "lands on", "message")
    for eviction in evictions:
        cause = f"{eviction.why} by {name_of(eviction.by)}" if eviction.by is not None else eviction.why
        if eviction.waits_for:
            cause += f", once {budgets(eviction.waits_for)} allows it"
        if eviction.victim.violates:
            cause += f", against {budgets(eviction.victim.violates)}"
        fate = "gone" if eviction.why in ("scaled down", "replaced") else "not recreated (no owner)"
        lands = eviction.lands_on or ("pending" if eviction.returns else fate)
        name = "  " * (eviction.depth - 1) + name_of(eviction.victim.pod)
        lines.add_row(name, eviction.node, cause, lands, eviction.message)
    console.print(lines)


def _loops_and_notes(console: Console, answer: WhatIf) -> None:
    for loop in answer.loops:
        console.print(f"\nLoop: {loop.text}", style="bold red")
    if not answer.is_complete:
        console.print("\nThe simulation reached its limit: this answer is incomplete.", style="yellow")
    for note in answer.notes:
        console.print(f"note: {note}", style="dim")
