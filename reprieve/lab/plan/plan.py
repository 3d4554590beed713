"""plan(): the moves of running pods after which new pods fit, or whole nodes are free, as an answer."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import Final

import msgspec

from extender.answers.overviews import PlannedMove
from extender.answers.parts import PodName, requested
from extender.answers.phrases import all_of, plural
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
from extender.values.objects.gpu_requests import GPU
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import validate_requests
from extender.values.objects.resource_names import CPU
from reprieve.lab import limits
from reprieve.lab.plan.free_nodes import FreeNodes, FreeNodesResult
from reprieve.lab.plan.movable_pods import MovablePods, movable_pods
from reprieve.lab.plan.plan_answer import FreeNode, PlanAnswer, PlanRequest, StayingPods
from reprieve.lab.plan.planned_moves import carried_out, requests_by_node, uses
from reprieve.lab.plan.search import TRIALS, PlanSearch, SearchResult
from reprieve.lab.plan.trial_moves import TrialMoves
from reprieve.lab.plan.wanted_pods import FoundPlan, WantedPods

__all__ = ["PlanRequest", "nodes_plan", "plan"]

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
    """Returns the moves that make room for the request's pods, or free its nodes; nothing is written. Raises
    QuestionError.
    """
    if (request.of or request.same) and not request.free_nodes:
        raise QuestionError("a resource and a label say which nodes are to be free: say how many, too")
    if bool(request.create) == bool(request.free_nodes):
        raise QuestionError("a plan makes room for pods, or frees a number of nodes: ask for one of them")
    if request.free_nodes:
        with Trial.of(cluster, configuration, for_everybody=for_everybody) as trial:
            return nodes_plan(trial, request, now)
    what_if_request = WhatIfRequest(create=request.create)
    with Trial.of(cluster, configuration, for_everybody=for_everybody) as trial:
        alternative = what_if(cluster, configuration, what_if_request, admits, for_everybody=for_everybody)
        applied = apply_manifests(trial, request.create, admits)
        pods = sorted(_wanted_of(applied), key=lambda pod: -pod.priority)
        drop_leftover_claims(trial, pods)
        with_groups = [(_framework_of(pod, trial.frameworks).group_of(pod), pod) for pod in pods]
        movable = movable_pods(trial, pods[0], now)
        moving = TrialMoves(trial, movable)
        result = PlanSearch(moving, WantedPods(moving, with_groups), trials).run(request.max_moves)
        resource = next((name for pod in pods for name in requested(pod) if name.endswith(GPU)), CPU)
        best, before = result.plan or FoundPlan((), {}), requests_by_node(moving, resource)
        with carried_out(moving, best.moves) as moves, ExitStack() as stack:
            for pod in pods if result.plan is not None else ():
                stack.enter_context(moving.placed(pod, best.nodes[pod.uid]))
            nodes = uses(moving, resource, before, requests_by_node(moving, resource), ())
    gated = (
        f"{pod.key} has scheduling gates: the plan applies once they are removed"
        for pod in applied.pods
        if pod.spec.scheduling_gates
    )
    notes = (*stand_in_notes(trial.frameworks), *applied.notes, *applied.missing_notes, *gated)
    answer = _answer(pods, result, moves, alternative, movable, request.max_moves, notes)
    return msgspec.structs.replace(answer, resource=resource, nodes=nodes)


def nodes_plan(trial: Trial, request: PlanRequest, now: Callable[[], datetime]) -> PlanAnswer:
    """Returns the moves that free so many nodes, or as many as possible. Raises QuestionError."""
    movable = movable_pods(trial, None, now)
    moving, number, resource = TrialMoves(trial, movable), request.free_nodes, request.of or CPU
    search = FreeNodes(moving, request.of, request.same)
    result = search.run(number, request.max_moves)
    before, is_enough = requests_by_node(moving, resource), len(result.nodes) == number
    leaving = Counter(moving.node_of[mover.uid] for mover, _ in result.moves)
    with carried_out(moving, result.moves, result.nodes) as moves:
        kept_nodes = tuple(islice(search.kept_in(result, is_enough=is_enough), limits.PLANNED_NODES))
        nodes = uses(moving, resource, before, requests_by_node(moving, resource), result.nodes)
    return PlanAnswer(
        summary=_nodes_summary(result, number, request.max_moves),
        fits=is_enough,
        moves=moves,
        gpu_hours=round(sum((move.gpu_hours for move in moves), 0.0), 3),
        hours=round(sum((move.hours for move in moves), 0.0), 3),
        free=tuple(FreeNode(node=name, leaving=leaving[name]) for name in result.nodes),
        kept=kept_nodes,
        resource=resource,
        nodes=nodes,
        staying=tuple(StayingPods(reason=why, pods=count) for why, count in movable.staying()),
        looked_through=request.max_moves if result.is_complete else 0,
        is_complete=result.is_complete,
        notes=stand_in_notes(trial.frameworks),
    )


def _nodes_summary(result: FreeNodesResult, number: int, max_moves: int) -> str:
    more = f"with at most {plural(max_moves, 'move')} frees more."
    more = f"No plan {more}" if result.is_complete else f"The search found no plan that {more}"
    if not result.nodes:
        return f"No node would be free. {more}"
    nodes, are = plural(number, "node"), "is" if number == 1 else "are"
    if len(result.nodes) == number:
        more = "" if result.is_complete else "There may be a plan with fewer moves."
    else:
        nodes, are = f"Only {len(result.nodes)} of {nodes}", "is" if len(result.nodes) == 1 else "are"
    after = (
        f"would be free after {plural(len(result.moves), 'move')}" if result.moves else f"{are} free without any move"
    )
    num_more = len(result.nodes) - _TOLD
    names = all_of((*result.nodes[:_TOLD], *([f"{num_more} more"] if num_more > 0 else [])))
    return f"{nodes} {after}: {names}. {more}".rstrip()


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


def _answer(
    pods: Sequence[Pod],
    result: SearchResult,
    moves: tuple[PlannedMove, ...],
    alternative: WhatIf,
    movable: MovablePods,
    max_moves: int,
    notes: tuple[str, ...],
) -> PlanAnswer:
    best = result.plan
    nodes = {} if best is None else best.nodes
    messages = {placement.pod.key: placement.message for placement in alternative.placements}
    placements = tuple(
        Placement(
            pod=PodName.of(pod),
            cause="created",
            requests=requested(pod),
            node=nodes.get(pod.uid, ""),
            message="" if best is not None and not best.moves else messages.get(pod.key, ""),
        )
        for pod in pods
    )
    return PlanAnswer(
        summary=_summary(pods, nodes, moves, result, max_moves),
        fits=best is not None,
        moves=moves,
        placements=placements,
        are_pinned=best is not None and best.is_pinned,
        gpu_hours=round(sum((move.gpu_hours for move in moves), 0.0), 3),
        hours=round(sum((move.hours for move in moves), 0.0), 3),
        instead=()
        if best is not None and not best.moves
        else tuple(eviction for eviction in alternative.evictions if eviction.why == "preempted"),
        staying=tuple(StayingPods(reason=why, pods=number) for why, number in movable.staying()),
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
        extent = (
            f" All plans of at most {plural(result.looked_through, 'move')} were tried; longer ones may exist."
            if result.looked_through > 0
            else " A plan may exist."
        )
        return f"No plan was found that makes room for {whom} before the search reached its limit.{extent}"
    where = f" on {nodes[pods[0].uid]}" if len(pods) == 1 else ""
    if not moves:
        return f"{who} {'fits' if len(pods) == 1 else 'fit'}{where} without any move."
    steps = [f"{move.pod.key} from {move.from_node} to {move.to_node}" for move in moves[:_TOLD]]
    more = f", and {len(moves) - _TOLD} more" if len(moves) > _TOLD else ""
    fewer = "" if result.is_complete else " There may be a plan with fewer moves."
    return f"{who} would fit{where} after {plural(len(moves), 'move')}: {', then '.join(steps)}{more}.{fewer}"
