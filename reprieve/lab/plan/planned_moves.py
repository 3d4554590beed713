"""Plays the moves of a plan once more, for what has to be known of each, and of the nodes."""

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
        for each, node in moves:
            restarts[each.uid] += 1
            planned.append(_planned(trial, each, node, restarts[each.uid]))
            if not stack.enter_context(trial.moved(each, node)):
                raise LookupError(f"{each.pod.key} could move to {node}, and cannot any more")
        yield tuple(planned)


def _planned(trial: TrialMoves, each: MovablePod, node: str, restarts: int) -> PlannedMove:
    rivals, cordon, needs_steering = [""], set[str](), False
    while rivals:
        with trial.trial.among([name for name in trial.trial.cluster.nodes if name not in cordon] if cordon else None):
            scores = trial.scores(each.pod)
        # Fewer nodes may change the scores of those that are left.
        rivals = [name for name, score in scores.items() if score >= scores[node] and name != node]
        needs_steering |= any(scores[name] > scores[node] and name != trial.node_of[each.uid] for name in rivals)
        cordon.update(rivals)
    return PlannedMove(
        pod=PodName.of(each.pod),
        from_node=trial.node_of[each.uid],
        to_node=node,
        owner=victim(each.running, 0.0).owner,
        requests=requested(each.pod),
        gpu_hours=each.gpu_hours if restarts == 1 else 0.0,
        hours=each.hours if restarts == 1 else 0.0,
        restarts=restarts,
        needs_steering=needs_steering,
        cordon=tuple(sorted(cordon)) if len(cordon) <= limits.PLANNED_NODES else (),
        waits_for=trial.budgets_used_up(each),
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
