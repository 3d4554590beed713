"""Plays the moves of a plan once more, to describe each move, and the nodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from extender.answers.explain.preemption import victim
from extender.answers.overviews import PlannedMove
from extender.answers.parts import PodName, requested
from extender.engine.snapshot import Rows
from reprieve.lab import limits
from reprieve.lab.plan.movable_pods import MovablePod
from reprieve.lab.plan.plan_answer import NodeUse
from reprieve.lab.plan.trial_moves import TrialMoves
from reprieve.lab.plan.wanted_pods import Move

TRIALS: Final = 100_000
"""How often the Filters may be asked about a pod meanwhile."""


@contextmanager
def carried_out(
    trial: TrialMoves, moves: Sequence[Move], free: Iterable[str] = ()
) -> Iterator[tuple[PlannedMove, ...]]:
    """Makes the moves for the block, in which the nodes that are to be free are cordoned."""
    planned: list[PlannedMove] = []
    restarts: Counter[str] = Counter()
    trial.trials_left, trial.may_wait = TRIALS, True
    with trial.cordoned(free), ExitStack() as stack:
        for mover, node in moves:
            restarts[mover.uid] += 1
            planned.append(_planned(trial, mover, node, restarts[mover.uid]))
            if not stack.enter_context(trial.moved(mover, node)):
                raise LookupError(f"{mover.pod.key} could move to {node}, and cannot any more")
        yield tuple(planned)


def _planned(trial: TrialMoves, mover: MovablePod, node: str, restarts: int) -> PlannedMove:
    rivals, cordon, needs_steering = [""], set[str](), False
    while rivals:
        with trial.trial.among([name for name in trial.trial.cluster.nodes if name not in cordon] if cordon else None):
            scores = trial.scores(mover.pod)
        # Fewer nodes may change the scores of those that are left.
        rivals = [name for name, score in scores.items() if score >= scores[node] and name != node]
        needs_steering |= any(scores[name] > scores[node] and name != trial.node_of[mover.uid] for name in rivals)
        cordon.update(rivals)
    return PlannedMove(
        pod=PodName.of(mover.pod),
        from_node=trial.node_of[mover.uid],
        to_node=node,
        owner=victim(mover.running, 0.0).owner,
        requests=requested(mover.pod),
        gpu_hours=mover.gpu_hours if restarts == 1 else 0.0,
        hours=mover.hours if restarts == 1 else 0.0,
        restarts=restarts,
        needs_steering=needs_steering,
        cordon=tuple(sorted(cordon)) if len(cordon) <= limits.PLANNED_NODES else (),
        waits_for=trial.budgets_used_up(mover),
    )


def requests_by_node(trial: TrialMoves, resource: str) -> dict[str, int]:
    """Returns what the pods on each node request of a resource now."""
    rows = Rows.of(trial.trial.cluster.cache.update_snapshot())
    return dict(zip(rows.names, rows.requested_of(resource).tolist(), strict=True))


def uses(
    trial: TrialMoves, resource: str, before: Mapping[str, int], after: Mapping[str, int], free: Sequence[str]
) -> tuple[NodeUse, ...]:
    """Returns the nodes that change or are free, those first that are to be free."""
    rows = Rows.of(trial.trial.cluster.cache.update_snapshot())
    offered = dict(zip(rows.names, rows.allocatable_of(resource).tolist(), strict=True))
    changed = [*free, *sorted(name for name in after if before[name] != after[name] and name not in free)]
    return tuple(
        NodeUse(node=name, allocatable=offered[name], before=before[name], after=after[name], is_free=name in free)
        for name in changed[: limits.PLANNED_NODES]
    )
