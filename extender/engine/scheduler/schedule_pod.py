"""schedule_pod(): finds the node for a pod, or raises why there is none.

Upstream: pkg/scheduler/schedule_one.go, schedulePod, findNodesThatFitPod, prioritizeNodes, selectHost.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import Findings, diagnosis_of, find, refused_by_pre_filter
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.scoring import Choice, Ranking
from extender.engine.snapshot import Rows, Snapshot
from extender.values.klog.logger import Logger
from extender.values.metrics import Metrics

_LOG: Final = Logger(__name__)

KEPT_REFUSALS = 16
"""The most kinds of pods for which the reason why they fit nowhere is kept, until the cluster changes."""

MIN_FEASIBLE_NODES_TO_FIND = 100
"""Clusters with fewer nodes are not sampled. Upstream: minFeasibleNodesToFind."""


class FitError(Exception):
    """The pod fits nowhere. The message is that of its event."""

    def __init__(self, num_all_nodes: int, diagnosis: fwk.Diagnosis, findings: Findings) -> None:
        super().__init__(fwk.fit_error_message(num_all_nodes, diagnosis))
        self.num_all_nodes = num_all_nodes
        self.diagnosis = diagnosis
        self.findings = findings

    def message_after(self, post_filter: fwk.Status) -> str:
        message = "" if post_filter.is_success else post_filter.message
        return fwk.fit_error_message(self.num_all_nodes, replace(self.diagnosis, post_filter_message=message))


@final
@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The node for the pod, and the number of evaluated nodes."""

    suggested_host: str
    feasible_nodes: int
    evaluated_nodes: int
    """The nodes that were filtered: unlike upstream's, all that PreFilter left in play."""
    choice: Choice | None = field(default=None, compare=False, repr=False)
    """The nodes to choose from; None if there was only one. It holds until the next snapshot."""


@final
class SchedulingAlgorithm:
    """The algorithm of one scheduler. State: the start of the next search, so that all nodes get their turn when not
    all of them are needed; and the refusals of pods over the last snapshot.
    """

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._next_start_node_index = 0
        self._refused_over: Snapshot | None = None
        self._refusals: dict[tuple[Framework, bytes], tuple[Findings, fwk.Diagnosis]] = {}
        self.metrics: Final = metrics or Metrics()

    def schedule_pod(self, cycle: Cycle, percentage_of_nodes_to_score: int = 0) -> ScheduleResult:
        """Chooses the best node for the pod of a cycle that has just begun, at random among equals.

        `percentage_of_nodes_to_score` of the nodes are enough, as kube-scheduler counts it, unless the profile sets its
        own; 0 means all nodes, because arrays make sampling needless.

        Raises NoNodesAvailableError for an empty cluster, FitError if the pod fits nowhere, PluginError if a plugin
        failed.
        """
        self.run_pre_filter(cycle)
        nominated = self.nominated_row(cycle)
        if nominated is not None:
            return ScheduleResult(nominated.names[0], 1, 1)
        rows = self.feasible_rows(cycle, percentage_of_nodes_to_score)
        if len(rows) == 1:
            return ScheduleResult(rows.names[0], 1, cycle.num_in_play)
        return best_of(cycle, self.ranking(cycle, rows))

    # The steps, for cycles that call extenders in between.

    def run_pre_filter(self, cycle: Cycle) -> None:
        """Runs PreFilter. Raises as `schedule_pod`."""
        num_nodes = len(cycle.snapshot.nodes)
        if self._refused_over is not cycle.snapshot:
            # Here and not when a pod is refused, so that an old snapshot's memory is not kept for long.
            self._refused_over = None
            self._refusals.clear()
        if not num_nodes:
            raise fwk.NoNodesAvailableError
        with self.metrics.timed("PreFilter", cycle.framework.profile_name) as point:
            outcome = cycle.run_pre_filter_plugins()
            if outcome.status is not fwk.SUCCESS:
                point.status = str(outcome.status.code)
        if not outcome.status.is_success:
            findings = refused_by_pre_filter(cycle)
            raise FitError(num_nodes, diagnosis_of(cycle, findings), findings)

    def nominated_row(self, cycle: Cycle) -> Rows | None:
        """Returns the nominated node if the pod still fits there; no other node is looked at then.

        A plugin that fails here is logged, as upstream does, and the search over all nodes follows.
        """
        name = cycle.pod.status.nominated_node_name
        place = cycle.snapshot.nodes.index.get(name) if name else None
        if place is None or (cycle.placement is not None and place not in cycle.placement):
            return None
        row = Rows.of(cycle.snapshot, np.array([place]))
        try:
            with self.metrics.timed("Filter", cycle.framework.profile_name):
                verdicts = cycle.run_filters_with_nominated_pods(row)
        except PluginError as exc:
            _LOG.exception(exc, "Evaluation failed on nominated node", pod=cycle.pod, node=name)
            return None
        return row if verdicts.all_ok else None

    def feasible_rows(self, cycle: Cycle, percentage_of_nodes_to_score: int) -> Rows:
        """Returns (R,) enough nodes that pass all Filters, at least one. Raises as `schedule_pod`."""
        framework = cycle.framework
        with self.metrics.timed("Filter", framework.profile_name):
            rows = cycle.feasible_rows()
        own_share = framework.percentage_of_nodes_to_score
        share = 0 if framework.is_exhaustive else percentage_of_nodes_to_score if own_share is None else own_share
        if share:
            rows = self._sampled(cycle, rows, num_feasible_nodes_to_find(cycle.num_in_play, share))
        if not len(rows):
            findings, diagnosis = self._refusal(cycle)
            raise FitError(len(cycle.snapshot.nodes), diagnosis, findings)
        return rows

    def _refusal(self, cycle: Cycle) -> tuple[Findings, fwk.Diagnosis]:
        """Returns the FitError of the pod; equal pods share it while nothing changes."""
        key = cycle.framework, cycle.pod_signature
        refusal = self._refusals.get(key) if cycle.filters_see_only_nodes else None
        if refusal is None:
            findings = find(cycle)
            refusal = findings, diagnosis_of(cycle, findings)
            if cycle.filters_see_only_nodes and len(self._refusals) < KEPT_REFUSALS:
                self._refused_over, self._refusals[key] = cycle.snapshot, refusal
        return refusal

    def ranking(self, cycle: Cycle, rows: Rows) -> Ranking:
        """Returns the weighted sums of the scores of these rows, after PreScore. Raises as `schedule_pod`."""
        profile = cycle.framework.profile_name
        with self.metrics.timed("PreScore", profile):
            cycle.run_pre_score_plugins(rows)
        with self.metrics.timed("Score", profile):
            ranking = cycle.ranking(rows)
        if _LOG.enabled(10):
            for plugin, scores in cycle.run_score_plugins(rows).weighted.items():
                for name, score in zip(rows.names, scores.tolist(), strict=True):
                    _LOG.info(10, "Plugin scored node for pod", pod=cycle.pod, plugin=plugin, node=name, score=score)
        return ranking

    def _sampled(self, cycle: Cycle, rows: Rows, enough: int) -> Rows:
        """Returns the first feasible nodes in rotation order, as many as are enough.

        The rotation is over the nodes that PreFilter left in play, but the next one begins as many nodes further among
        all of them.
        """
        num_nodes, in_play = len(rows.snapshot.nodes), cycle.num_in_play
        places = rows.node if cycle.within is None else np.searchsorted(cycle.within, rows.node)
        # Rows in the order in which upstream visits their nodes: from the start round the list of nodes.
        visited = (places - self._next_start_node_index) % in_play
        turn = np.argsort(visited, kind="stable")[:enough]
        processed = in_play if len(rows) <= enough else int(visited[turn[-1]]) + 1
        self._next_start_node_index = (self._next_start_node_index + processed) % num_nodes
        return rows.take(turn)


def best_of(cycle: Cycle, ranking: Ranking) -> ScheduleResult:
    """Returns the row with the best score, at random among equals."""
    place, rows = ranking.best(cycle.framework.random), ranking.rows
    if _LOG.enabled(10):
        for name, score in zip(rows.names, ranking.total.tolist(), strict=True):
            _LOG.info(10, "Calculated node's final score for pod", pod=cycle.pod, node=name, score=score)
    host = cycle.snapshot.nodes.objects[place].name
    return ScheduleResult(host, len(rows), cycle.num_in_play, Choice(ranking, place, partial(cycle.scores_at, rows)))


def num_feasible_nodes_to_find(num_nodes: int, percentage: int) -> int:
    """Returns the number of feasible nodes that are enough; for 0 it is not adaptive, unlike upstream."""
    if num_nodes < MIN_FEASIBLE_NODES_TO_FIND or not percentage:
        return num_nodes
    return max(MIN_FEASIBLE_NODES_TO_FIND, num_nodes * percentage // 100)
