"""`reprieve plan`: which pods would have to move, so that it fits?"""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from api.cli.manifest_files import placed, read_manifests
from api.cli.showing import Output, OutputOption, budgets, heading, name_of, plural, table
from api.cli.sources import SourceOptions
from extender.answers.catalogue import PlanQuestion
from extender.answers.plan.answer import MOST_MOVES, PlanAnswer, PlannedMove, PlanRequest


def plan(
    *,
    filename: Annotated[
        list[str],
        typer.Option(
            "--for",
            "--filename",
            "-f",
            help="The pods, workloads or pod groups that are to fit; - reads standard input.",
        ),
    ],
    max_moves: Annotated[int, typer.Option(min=1, max=MOST_MOVES, help="The most pods that may move.")] = 8,
    source: SourceOptions,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show which pods would have to move, where and in which order, so that a pod fits without evicting anybody.

    Each pod is evicted, recreated by its controller, and runs on its new node before the next one goes; budgets are
    kept. Nothing is written. The exit code is 1 if there is no plan.
    """
    objects = placed(
        (obj for file in filename for obj in read_manifests(file)), source.namespace, source.default_namespace
    )
    question = PlanQuestion(request=PlanRequest(create=objects, max_moves=max_moves))
    answer = source.show(lambda asked: asked.ask(question), output, _in_words)
    if not answer.fits:
        raise typer.Exit(1)


def _in_words(console: Console, answer: PlanAnswer, wide: bool) -> None:
    console.print(Text(answer.summary, style="bold"))
    if answer.moves:
        console.print(heading("Moves, one after the other"))
        moves = table("", "pod", "from", "to", "gpu-hours lost", "remark", *(("owner",) if wide else ()))
        for number, move in enumerate(answer.moves, 1):
            owner = (move.owner,) if wide else ()
            moves.add_row(
                str(number),
                name_of(move.pod),
                move.from_node,
                move.to_node,
                _hours(move.gpu_hours),
                _remark(move),
                *owner,
            )
        console.print(moves)
    if answer.fits and (answer.moves or len(answer.placements) > 1):
        console.print(heading("Then"))
        fit = table("pod", "priority", "node")
        for placement in answer.placements:
            fit.add_row(name_of(placement.pod), str(placement.pod.priority), placement.node)
        console.print(fit)
        if answer.are_pinned:
            console.print(
                "Each of them has to be given this node: where the scheduler would place them, not all of them fit."
            )
    _without(console, answer)
    if wide or not answer.fits:
        for each in answer.staying:
            console.print(Text(f"note: {plural(each.pods, 'pod')} may not move: they {each.reason}", style="dim"))
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"))


def _remark(move: PlannedMove) -> str:
    waits = f"once {budgets(move.waits_for)} allows it again" if move.waits_for else ""
    return ", ".join(filter(None, (waits, "has to be steered there" if move.needs_steering else "")))


def _without(console: Console, answer: PlanAnswer) -> None:
    """Prints what preemption would do instead."""
    if not answer.instead:
        return
    console.print(heading("Without the plan, preemption would evict"))
    gone = table("pod", "priority", "from", "then")
    for eviction in answer.instead:
        then = (
            f"lands on {eviction.lands_on}"
            if eviction.lands_on
            else "pending"
            if eviction.returns
            else "not recreated (no owner)"
        )
        gone.add_row(name_of(eviction.victim.pod), str(eviction.victim.pod.priority), eviction.node, then)
    console.print(gone)


def _hours(hours: float) -> str:
    return f"{hours:.1f}" if hours else ""
