"""The contract of extenders in the scheduling cycle (`SchedulingExtender`; `extender.client` calls those over HTTP),
and schedule_pod() with them: each may refuse nodes, and each may add to their scores.

The cycle waits for the extenders. No other snapshot of its cache must be taken meanwhile, because that would replace
its own.

Upstream: staging/src/k8s.io/kube-scheduler/framework/extender.go, Extender; pkg/scheduler/schedule_one.go,
findNodesThatPassExtenders, evaluateNominatedNode, prioritizeNodes, extendersBinding.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework import ExtenderError, PreemptionExtender
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import diagnosis_of, find
from extender.engine.runtime.queueing_hints import EXTENDER
from extender.engine.runtime.scoring import Ranking
from extender.engine.scheduler.schedule_pod import FitError, ScheduleResult, SchedulingAlgorithm, best_of
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.golang.int64 import wrap
from extender.values.klog.logger import Logger
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY, HostPriority


@final
class FilterAnswer(msgspec.Struct, frozen=True):
    """The result of an extender's filter."""

    nodes: Sequence[Node]
    """The nodes that pass, in the extender's order: those given, by name, or else as it sent them back."""
    failed: dict[str, str]
    """Node name -> reason; preemption might help."""
    failed_and_unresolvable: dict[str, str]
    """Node name -> reason; preemption cannot help."""


class SchedulingExtender(PreemptionExtender, Protocol):
    """An extender that filters, scores, takes part in preemption or binds."""

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_binder(self) -> bool: ...

    @property
    def supports_preemption(self) -> bool: ...

    @property
    def weight(self) -> int:
        """The factor of the extender's scores."""

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        """Returns the nodes on which the pod can run. Raises ExtenderError."""

    def unknown_node(self, name: str) -> ExtenderError:
        """Returns the error for a node that the extender lets pass although it was not given."""

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[HostPriority]:
        """Returns the extender's scores, not weighted. Raises ExtenderError."""

    def log_score_failure(self, exc: ExtenderError) -> None:
        """Logs a failure to score, which has no other consequence."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds the pod. Raises ExtenderError if it is not bound, or the outcome is unknown."""

    async def aclose(self) -> None:
        """Closes its connections."""


_LOG: Final = Logger(__name__)

Extenders = Sequence[SchedulingExtender]


async def schedule_pod_with_extenders(
    algorithm: SchedulingAlgorithm, extenders: Extenders, cycle: Cycle, percentage_of_nodes_to_score: int
) -> ScheduleResult:
    """Chooses the best node that plugins and extenders let pass.

    Raises as `SchedulingAlgorithm.schedule_pod`, and ExtenderError if one that is not ignorable failed to filter.
    """
    pod = cycle.pod
    algorithm.run_pre_filter(cycle)
    nominated = algorithm.nominated_row(cycle)
    if nominated is not None and await _still_passes(extenders, pod, nominated):
        return ScheduleResult(nominated.names[0], 1, 1)
    feasible = algorithm.feasible_rows(cycle, percentage_of_nodes_to_score)
    rows, statuses = await find_nodes_that_pass_extenders(extenders, pod, feasible)
    if not len(rows):
        findings = find(cycle)
        diagnosis = _also_refused_by_extenders(diagnosis_of(cycle, findings), statuses)
        raise FitError(len(cycle.snapshot.nodes), diagnosis, msgspec.structs.replace(findings, by_extenders=statuses))
    if len(rows) == 1:
        return ScheduleResult(rows.names[0], 1, cycle.num_in_play)
    ranking = algorithm.ranking(cycle, rows)
    with algorithm.metrics.doing("prioritizing_extender"):
        extra = await scores_of_extenders(extenders, pod, rows)
    return best_of(cycle, Ranking(rows, ranking.total + extra))


async def find_nodes_that_pass_extenders(
    extenders: Extenders, pod: Pod, rows: Rows
) -> tuple[Rows, dict[str, fwk.Status]]:
    """Returns the nodes that all extenders, called in turn, let pass, and the statuses of the others.

    A node that an extender omits without a reason has no status. A node that passes though a reason is given against
    it, passes. Raises ExtenderError if one that is not ignorable failed, or let nodes pass that it was not given.
    """
    statuses: dict[str, fwk.Status] = {}
    for extender in extenders:
        if not len(rows):
            break
        if not extender.is_filter or not extender.is_interested(pod):
            continue
        try:
            answer = await extender.filter(pod, nodes_of(rows))
            passing = _named(rows, extender, answer.nodes)
        except fwk.ExtenderError as exc:
            if not extender.is_ignorable:
                raise
            message = "Skipping extender as it returned error and has ignorable flag set"
            _LOG.info(0, message, extender=extender.name, err=exc)
            continue
        statuses |= {name: fwk.unschedulable(why) for name, why in answer.failed.items()}
        statuses |= {name: fwk.unresolvable(why) for name, why in answer.failed_and_unresolvable.items()}
        rows = passing
    return rows, statuses


async def scores_of_extenders(extenders: Extenders, pod: Pod, rows: Rows) -> Int64s:
    """Returns (R,) the sum of score * weight of all extenders, called at once, on the scale of plugins.

    One that fails adds nothing, whether it is ignorable or not. Sums beyond int64 wrap, as in Go.
    """
    interested = [extender for extender in extenders if extender.is_prioritizer and extender.is_interested(pod)]
    nodes = nodes_of(rows)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_scores_of(extender, pod, nodes)) for extender in interested]
    sums = dict.fromkeys(rows.names, 0)
    for extender, task in zip(interested, tasks, strict=True):
        for host, score in task.result():
            if host in sums:
                sums[host] += score * extender.weight
    return np.array([wrap(total * (fwk.MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)) for total in sums.values()], np.int64)


async def bound_by_extender(
    extenders: Extenders, pod: Pod, node: str, fence: Callable[[], str | None] = lambda: None
) -> fwk.Status | None:
    """Returns the status of the first extender that binds such pods; None if plugins bind them.

    `fence` is asked before an extender is called, since a call cannot be undone: it returns why nothing may be written.
    """
    for extender in extenders:
        if not extender.is_binder or not extender.is_interested(pod):
            continue
        why_not = fence()
        if why_not is not None:
            return fwk.error(why_not)
        try:
            await extender.bind(pod, node)
        except fwk.ExtenderError as exc:
            if extender.is_ignorable:
                message = "Skipping extender in bind as it returned error and has ignorable flag set"
                _LOG.info(0, message, extender=extender.name, err=exc)
                continue
            return fwk.error(str(exc))
        return fwk.SUCCESS
    return None


def nodes_of(rows: Rows) -> list[Node]:
    objects = rows.snapshot.nodes.objects
    return [objects[place] for place in rows.node.tolist()]


async def _still_passes(extenders: Extenders, pod: Pod, nominated: Rows) -> bool:
    try:
        rows, _ = await find_nodes_that_pass_extenders(extenders, pod, nominated)
    except fwk.ExtenderError as exc:
        _LOG.error(exc, "Evaluation failed on nominated node", pod=pod, node=nominated.names[0])
        return False
    return bool(len(rows))


def _named(rows: Rows, extender: SchedulingExtender, nodes: Sequence[Node]) -> Rows:
    """Returns the rows of these nodes, in their order, each once. Raises ExtenderError for a node not among the rows.

    Upstream goes on with full nodes as the extender sent them back, without their pods. Here only their names count.
    """
    place = {name: row for row, name in enumerate(rows.names)}
    for node in nodes:
        if node.name not in place:
            raise extender.unknown_node(node.name)
    return rows.take(np.array(list(dict.fromkeys(place[node.name] for node in nodes)), np.intp))


async def _scores_of(extender: SchedulingExtender, pod: Pod, nodes: Sequence[Node]) -> list[tuple[str, int]]:
    try:
        return [(host_score.host, host_score.score) for host_score in await extender.prioritize(pod, nodes)]
    except fwk.ExtenderError as exc:
        extender.log_score_failure(exc)
        return []


def _also_refused_by_extenders(diagnosis: fwk.Diagnosis, statuses: dict[str, fwk.Status]) -> fwk.Diagnosis:
    """Returns the diagnosis with the extenders' statuses in place of plugins', and `EXTENDER` as a plugin.

    It is registered for all events, because extenders cannot say which ones would help.
    """
    combined = fwk.NodeStatuses({**diagnosis.statuses.explicit, **statuses}, diagnosis.statuses.absent)
    return fwk.Diagnosis(combined, diagnosis.unschedulable_plugins | {EXTENDER}, diagnosis.pending_plugins)
