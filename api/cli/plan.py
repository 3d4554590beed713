"""`reprieve plan`: which pods would have to move, so that it fits?"""

from functools import partial
from shlex import quote
from typing import Annotated, Final

import typer
from rich.console import Console

from api.cli.showing import PlanOutputOption, budgets, heading, name_of, table
from api.cli.sources import SourceOptions
from extender.answers.overviews import PlannedMove
from extender.answers.phrases import plural
from reprieve.lab.plan.plan_answer import MOST_MOVES, PlanAnswer, PlanRequest
from reprieve.lab.plan.plan_question import PlanQuestion


def plan(
    *,
    filename: Annotated[
        list[str],
        typer.Option(
            "--for",
            "--filename",
            "-f",
            help="The pods, workloads or pod groups that should fit; - reads standard input.",
        ),
    ],
    max_moves: Annotated[int, typer.Option(min=1, max=MOST_MOVES, help="Maximum number of pods that may move.")] = 8,
    source: SourceOptions,
    output: PlanOutputOption = "table",
) -> None:
    """Show which pods would have to move, where and in which order, so that a pod fits without evicting anybody.

    Each pod is evicted, recreated by its controller, and runs on its new node before the next one goes; budgets are
    kept. Nothing is written: `-o sh` prints the commands of kubectl that do it. The exit code is 1 if there is no plan.
    """
    question = PlanQuestion(request=PlanRequest(create=source.objects(filename), max_moves=max_moves))
    words = partial(_as_script, filename) if output == "sh" else _in_words
    answer = source.show(lambda asked: asked.ask(question), output, words)
    if not answer.fits:
        raise typer.Exit(1)


def _in_words(console: Console, answer: PlanAnswer, wide: bool) -> None:
    console.print(answer.summary, style="bold")
    if answer.moves:
        console.print(heading("Moves, in this order"))
        moves = table("", "pod", "from", "to", "gpu-hours lost", "remark", *(("owner",) if wide else ()))
        for number, move in enumerate(answer.moves, 1):
            lost, owner = f"{move.gpu_hours:.1f}" if move.gpu_hours else "", (move.owner,) if wide else ()
            moves.add_row(str(number), name_of(move.pod), move.from_node, move.to_node, lost, _remark(move), *owner)
        console.print(moves)
    if answer.fits and (answer.moves or len(answer.placements) > 1):
        console.print(heading("Then"))
        rows = ((name_of(each.pod), str(each.pod.priority), each.node) for each in answer.placements)
        console.print(table("pod", "priority", "node", rows=rows))
        if answer.are_pinned:
            console.print(
                "Set the node of each pod by hand: not all of them fit on the nodes that the scheduler would choose."
            )
    _without(console, answer)
    if wide or not answer.fits:
        for each in answer.staying:
            console.print(f"note: {plural(each.pods, 'pod')} may not move: they {each.reason}", style="dim")
    for note in answer.notes:
        console.print(f"note: {note}", style="dim")


_SCRIPT: Final = """\
set -eu
running() { kubectl get pods -n "$1" --field-selector="spec.nodeName=$2,status.phase=Running" -o name | wc -l; }
move() {  # namespace, pod, the node where it is to run
  before=$(running "$1" "$3")
  body='{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"}}'
  until printf "$body" "$2" "$1" | kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f -; do sleep 5; done
  until [ "$(running "$1" "$3")" -gt "$before" ]; do sleep 2; done
}"""


def _as_script(files: list[str], console: Console, answer: PlanAnswer, _: bool) -> None:
    print("\n".join(f"# {line}" for line in (answer.summary, *answer.notes)))
    if not answer.fits:
        return
    if answer.moves:
        print(_SCRIPT)
    cordoned: dict[str, None] = {}
    for move in answer.moves:
        to = quote(move.to_node)
        if move.from_node not in cordoned:
            print("kubectl cordon", quote(move.from_node))
        cordoned[move.from_node] = None
        if move.needs_steering:
            print(f"# The scheduler would prefer another node to {to}: cordon that other node until the pod runs.")
        if move.to_node in cordoned:
            print(f"kubectl uncordon {to}")
        print("move", quote(move.pod.namespace), quote(move.pod.name), to)
        if move.to_node in cordoned:
            print(f"kubectl cordon {to}")
    if answer.are_pinned:
        print("# Set the node of each new pod by hand: the scheduler would choose other nodes.")
    if cordoned:
        print("kubectl uncordon", *map(quote, cordoned))
    print("kubectl apply", *(f"-f {quote(file)}" for file in files))


def _remark(move: PlannedMove) -> str:
    waits = f"once {budgets(move.waits_for)} allows it again" if move.waits_for else ""
    return ", ".join(filter(None, (waits, "the scheduler would prefer another node" if move.needs_steering else "")))


def _without(console: Console, answer: PlanAnswer) -> None:
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
