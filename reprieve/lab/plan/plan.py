"""plan(): the moves of running pods after which new pods fit, as an answer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Final

from extender.answers.explain.preemption import victim
from extender.answers.overviews import PlannedMove
from extender.answers.parts import PodName, requested
from extender.answers.phrases import plural
from extender.answers.profiles import stand_in_notes
from extender.answers.trial import Trial
from extender.answers.types import Placement, QuestionError, WhatIf, WhatIfRequest
from extender.answers.what_if.admission import Admits
from extender.answers.what_if.manifests import Applied, apply_manifests
from extender.answers.what_if.simulated_pods import drop_leftover_claims
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.framework import Framework
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import validate_requests
from reprieve.lab import limits
from reprieve.lab.plan.movable_pods import MovablePod, MovablePods, movable_pods
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest, StayingPods
from reprieve.lab.plan.search import TRIALS, PlanSearch, SearchResult
from reprieve.lab.plan.trial_moves import BoundReachedError, TrialMoves
from reprieve.lab.plan.wanted_pods import FoundPlan, WantedPods

_TOLD: Final = 3
"""The moves that the summary names."""


def plan(
    cluster: Cluster,
    configuration: Configuration,
    request: PlanRequest,
    admits: Admits,
    now: Callable[[], datetime],
    *,
    for_everybody: bool = False,
    trials: int = TRIALS,
) -> PlanAnswer:
    """Returns the moves after which the request's pods fit; nothing is written. Raises QuestionError."""
    asked = WhatIfRequest(create=request.create)
    with Trial.of(cluster, configuration, for_everybody=for_everybody) as trial:
        without = what_if(cluster, configuration, asked, admits, for_everybody=for_everybody)
        applied = apply_manifests(trial, request.create, admits)
        pods = sorted(_wanted_of(applied), key=lambda pod: -pod.priority)
        drop_leftover_claims(trial, pods)
        with_groups = [(_framework_of(pod, trial.frameworks).group_of(pod), pod) for pod in pods]
        movable = movable_pods(trial, pods[0], now)
        moving = TrialMoves(trial, movable)
        result = PlanSearch(moving, WantedPods(moving, with_groups), trials).run(request.max_moves)
        moves = () if result.plan is None else _moves(moving, result.plan)
    gated = (
        f"{pod.key} has scheduling gates: the plan applies once they are removed"
        for pod in applied.pods
        if pod.spec.scheduling_gates
    )
    notes = (*stand_in_notes(trial.frameworks), *applied.notes, *applied.missing, *gated)
    return _answer(pods, result, moves, without, movable, request.max_moves, notes)


def _wanted_of(applied: Applied) -> Sequence[Pod]:
    if applied.surplus or applied.rollouts or applied.on_named_nodes or applied.daemons:
        raise QuestionError(
            "a plan is for new pods that a scheduler places: leave out pods with a node, changed workloads and new "
            "nodes"
        )
    if not applied.pods:
        raise QuestionError("it has no pending pod")
    if len(applied.pods) > limits.PODS_PLANNED:
        raise QuestionError(f"a plan is for at most {limits.PODS_PLANNED} pods, and these are {len(applied.pods)}")
    for pod in applied.pods:
        try:
            validate_requests(pod)
        except QuantityError as exc:
            raise QuestionError(f"Pod {pod.key}: {exc}") from exc
    return applied.pods


def _framework_of(pod: Pod, frameworks: Mapping[str, Framework]) -> Framework:
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        raise QuestionError(f'no profile here for schedulerName "{pod.scheduler_name}"')
    return framework


def _moves(trial: TrialMoves, found: FoundPlan) -> tuple[PlannedMove, ...]:
    """Plays the plan once more, and returns its moves with what has to be known of each."""
    moves: list[PlannedMove] = []
    trial.trials_left = 2 * TRIALS
    trial.may_wait = True
    with ExitStack() as stack:
        for each, node in found.moves:
            moves.append(_move(trial, each, node))
            if not stack.enter_context(trial.moved(each, node)):
                raise LookupError(f"{each.pod.key} could move to {node}, and cannot any more")
    return tuple(moves)


def _move(trial: TrialMoves, each: MovablePod, node: str) -> PlannedMove:
    try:
        needs_steering = node not in trial.first_choices(each.pod)
    except BoundReachedError:
        needs_steering = True
    return PlannedMove(
        pod=PodName.of(each.pod),
        from_node=trial.node_of[each.uid],
        to_node=node,
        owner=victim(each.running, 0.0).owner,
        requests=requested(each.pod),
        gpu_hours=each.gpu_hours,
        needs_steering=needs_steering,
        waits_for=trial.budgets_used_up(each),
    )


def _answer(
    pods: Sequence[Pod],
    result: SearchResult,
    moves: tuple[PlannedMove, ...],
    without: WhatIf,
    movable: MovablePods,
    max_moves: int,
    notes: tuple[str, ...],
) -> PlanAnswer:
    found = result.plan
    nodes = {} if found is None else found.nodes
    messages = {placement.pod.key: placement.message for placement in without.placements}
    placements = tuple(
        Placement(
            pod=PodName.of(pod),
            cause="created",
            requests=requested(pod),
            node=nodes.get(pod.uid, ""),
            message="" if found is not None and not found.moves else messages.get(pod.key, ""),
        )
        for pod in pods
    )
    return PlanAnswer(
        summary=_summary(pods, nodes, moves, result, max_moves),
        fits=found is not None,
        moves=moves,
        placements=placements,
        are_pinned=found is not None and found.is_pinned,
        gpu_hours=round(sum((move.gpu_hours for move in moves), 0.0), 3),
        instead=()
        if found is not None and not found.moves
        else tuple(each for each in without.evictions if each.why == "preempted"),
        staying=tuple(
            StayingPods(reason=why, pods=number)
            for why, number in sorted(movable.staying.items(), key=lambda each: (-each[1], each[0]))
        ),
        looked_through=result.looked_through,
        is_complete=result.is_complete,
        notes=notes,
    )


def _summary(
    pods: Sequence[Pod], nodes: Mapping[str, str], moves: Sequence[PlannedMove], result: SearchResult, max_moves: int
) -> str:
    who = pods[0].key if len(pods) == 1 else f"All {len(pods)} pods"
    if result.plan is None:
        whom = pods[0].key if len(pods) == 1 else f"all {len(pods)} pods"
        if result.is_complete:
            return f"No plan of at most {plural(max_moves, 'move')} makes room for {whom}."
        tried = (
            f" All plans of at most {plural(result.looked_through, 'move')} were tried; longer ones may exist."
            if result.looked_through > 0
            else " A plan may exist."
        )
        return f"No plan was found that makes room for {whom} before the search reached its limit.{tried}"
    where = f" on {nodes[pods[0].uid]}" if len(pods) == 1 else ""
    if not moves:
        return f"{who} {'fits' if len(pods) == 1 else 'fit'}{where} without any move."
    steps = [f"{move.pod.key} from {move.from_node} to {move.to_node}" for move in moves[:_TOLD]]
    more = f", and {len(moves) - _TOLD} more" if len(moves) > _TOLD else ""
    fewer = "" if result.is_complete else " There may be a plan with fewer moves."
    return f"{who} would fit{where} after {plural(len(moves), 'move')}: {', then '.join(steps)}{more}.{fewer}"
