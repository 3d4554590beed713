"""`reprieve plan`: which pods would have to move, so that it fits, or so that whole nodes are free?"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from shlex import quote
from typing import Annotated, Final

import typer
from rich.console import Console

from api.cli.showing import PlanOutputOption, budgets, heading, name_of, table
from api.cli.sources import SourceOptions
from extender.answers.overviews import PlannedMove
from extender.answers.phrases import plural
from extender.values.golang.times import human_duration
from reprieve.errors import StartUpError
from reprieve.lab.plan.picture import drawn
from reprieve.lab.plan.plan_answer import MOST_MOVES, MOVES, PlanAnswer, PlanRequest
from reprieve.lab.plan.plan_question import PlanQuestion

_KEPT: Final = 20
"""The nodes that are not free, as they are listed without `-o wide`."""


def plan(
    *,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            "--filename",
            "-f",
            help="The pods, workloads or pod groups that should fit; - reads standard input.",
        ),
    ] = None,
    free_nodes: Annotated[
        int | None, typer.Option(min=1, help="Number of nodes that should be free, those counted that are already.")
    ] = None,
    of: Annotated[
        str, typer.Option(help="Resource, such as nvidia.com/gpu: nodes that offer it, free of pods that request it.")
    ] = "",
    same: Annotated[
        str, typer.Option(help="Label, such as topology.kubernetes.io/rack, of which all have the same value.")
    ] = "",
    max_moves: Annotated[int, typer.Option(min=1, max=MOST_MOVES, help="Maximum number of moves.")] = MOVES,
    source: SourceOptions,
    output: PlanOutputOption = "table",
) -> None:
    """Show which pods would have to move, where and in which order, so that a pod fits without evicting anybody, or so
    that whole nodes are free.

    Each pod is evicted, recreated by its controller, and runs on its new node before the next one goes; budgets are
    kept. Nothing is written: `-o sh` prints the commands of kubectl that do it. The exit code is 1 if there is no plan.
    """
    files = filename or []
    if bool(files) == bool(free_nodes):
        raise StartUpError("give the pods that should fit, --for FILE, or how many nodes should be free, --free-nodes")
    question = PlanQuestion(
        request=PlanRequest(
            create=source.objects(files), max_moves=max_moves, free_nodes=free_nodes or 0, of=of, same=same
        )
    )
    words: Callable[[Console, PlanAnswer, bool], None] = _as_picture if output == "svg" else _in_words
    if output == "sh":
        words = partial(_as_script, files)
    answer = source.show(lambda answers: answers.ask(question), output, words)
    if not answer.fits:
        raise typer.Exit(1)


def _as_picture(console: Console, answer: PlanAnswer, _: bool) -> None:
    print(drawn(answer))


def _in_words(console: Console, answer: PlanAnswer, wide: bool) -> None:
    console.print(answer.summary, style="bold")
    if answer.moves:
        console.print(heading("Moves, in this order"))
        moves = table("", "pod", "from", "to", "ran", "gpu-hours lost", "remark", *(("owner",) if wide else ()))
        for number, move in enumerate(answer.moves, 1):
            lost, owner = f"{move.gpu_hours:.1f}" if move.gpu_hours else "", (move.owner,) if wide else ()
            ran = human_duration(timedelta(hours=move.hours)) if move.hours else ""
            moves.add_row(
                str(number), name_of(move.pod), move.from_node, move.to_node, ran, lost, _remark(move), *owner
            )
        console.print(moves)
    if answer.fits and answer.placements and (answer.moves or len(answer.placements) > 1):
        console.print(heading("Then"))
        rows = ((name_of(row.pod), str(row.pod.priority), row.node) for row in answer.placements)
        console.print(table("pod", "priority", "node", rows=rows))
        if answer.are_pinned:
            console.print(
                "Set the node of each pod by hand: not all of them fit on the nodes that the scheduler would choose."
            )
    _nodes(console, answer, wide)
    _evictions_without_plan(console, answer)
    if wide or not answer.fits:
        for group in answer.staying:
            console.print(f"note: {plural(group.pods, 'pod')} may not move: they {group.reason}", style="dim")
    for note in answer.notes:
        console.print(f"note: {note}", style="dim")


def _nodes(console: Console, answer: PlanAnswer, wide: bool) -> None:
    if answer.free:
        console.print(heading("Free then"))
        rows = [(row.node, str(row.leaving) if row.leaving else "none, it is free") for row in answer.free]
        console.print(table("node", "pods that leave", rows=rows))
    if answer.kept:
        console.print(heading("Not free"))
        listed_nodes = answer.kept if wide else answer.kept[:_KEPT]
        kept_rows = ((row.node, name_of(row.pod) if row.pod else "", row.why) for row in listed_nodes)
        console.print(table("node", "kept by", "why", rows=kept_rows))
        if len(answer.kept) > len(listed_nodes):
            console.print(f"and {len(answer.kept) - len(listed_nodes)} more: -o wide lists them", style="dim")


_SCRIPT: Final = """\
set -eu
trap uncordon EXIT
trap 'exit 1' INT TERM
running() {  # namespace, Kind/name of a controller: prints how many of its pods run and are not being deleted
  kubectl get pods -n "$1" -o jsonpath='{range .items[?(@.status.phase=="Running")]}{.metadata.ownerReferences[0].kind}\
/{.metadata.ownerReferences[0].name} {.metadata.deletionTimestamp}{"\\n"}{end}' | grep -cxF "$2 " || true
}
within() {  # minutes, what is waited for, the command that is tried until it succeeds
  minutes=$1 what=$2 tries=0; shift 2
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt $((minutes * 20)) ] || { echo "after $minutes minutes still waiting for $what" >&2; exit 1; }
    sleep 3
  done
}
evicted() {
  printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"}}' "$2" "$1" |
    kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f -
}
landed() { [ "$(running "$1" "$2")" -ge "$3" ]; }
move() {  # namespace, pod, its controller, the node where it is to run, nodes that are cordoned until it runs
  namespace=$1 pod=$2 owner=$3 node=$4; shift 4
  [ $# -eq 0 ] || kubectl cordon "$@"
  before=$(running "$namespace" "$owner")
  within 60 "the eviction of $namespace/$pod" evicted "$namespace" "$pod"
  within 30 "the pod in place of $namespace/$pod to run, on $node" landed "$namespace" "$owner" "$before"
  [ $# -eq 0 ] || kubectl uncordon "$@"
}"""


def _as_script(files: list[str], console: Console, answer: PlanAnswer, _: bool) -> None:
    print("\n".join(f"# {line}" for line in (answer.summary, *answer.notes)))
    if not answer.fits:
        return
    closed = dict.fromkeys(free_node.node for free_node in answer.free)
    lines = ["kubectl cordon " + " ".join(map(quote, closed))] if closed else []
    meanwhile: dict[str, None] = {}
    for move in answer.moves:
        if not answer.free and move.from_node not in closed:
            lines.append(f"kubectl cordon {quote(move.from_node)}")
            closed[move.from_node] = None
        to, rivals = quote(move.to_node), [name for name in move.cordon if name not in closed]
        if move.to_node in closed:
            lines.append(f"kubectl uncordon {to}")
        if move.needs_steering and not move.cordon:
            lines.append(f"# The scheduler may prefer other nodes to {move.to_node}, too many to cordon.")
        names = move.pod.namespace, move.pod.name, move.owner, move.to_node, *rivals
        lines.append(" ".join(["move", *map(quote, names)]))
        if move.to_node in closed:
            lines.append(f"kubectl cordon {to}")
        meanwhile |= dict.fromkeys(rivals)
    if answer.moves:
        print(f"uncordon() {{ kubectl uncordon {' '.join(map(quote, closed | meanwhile))}; }}")
        print("\n".join((_SCRIPT, *lines)))
    if answer.are_pinned:
        print("# Set the node of each new pod by hand: the scheduler would choose other nodes.")
    if files:
        print(*(["trap - EXIT", "uncordon"] if answer.moves else []), sep="\n", end="\n" if answer.moves else "")
        print("kubectl apply", *(f"-f {quote(file)}" for file in files))


def _remark(move: PlannedMove) -> str:
    waits = f"once {budgets(move.waits_for)} allows it again" if move.waits_for else ""
    return ", ".join(filter(None, (waits, "the scheduler would prefer another node" if move.needs_steering else "")))


def _evictions_without_plan(console: Console, answer: PlanAnswer) -> None:
    if not answer.instead:
        return
    console.print(heading("Without the plan, preemption would evict"))
    evictions = table("pod", "priority", "from", "then")
    for eviction in answer.instead:
        then = (
            f"lands on {eviction.lands_on}"
            if eviction.lands_on
            else "pending"
            if eviction.returns
            else "not recreated (no owner)"
        )
        evictions.add_row(name_of(eviction.victim.pod), str(eviction.victim.pod.priority), eviction.node, then)
    console.print(evictions)
