"""schedule_pod(): the node for a pod, or why there is none.

Upstream: pkg/scheduler/schedule_one.go, schedulePod, findNodesThatFitPod, prioritizeNodes, selectHost (v1.36.2).
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.klog.logger import Logger
from extender.metrics import Metrics
from extender.objects.pod import Pod
from extender.records.reporter import Findings
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework, PreFilterOutcome, statuses_by_node
from extender.runtime.memory import signature_of
from extender.runtime.nominations import NO_NOMINATIONS, Nominations
from extender.snapshot import Rows, Snapshot
from extender.snapshot.axes import Index, Int64s

_LOG: Final = Logger(__name__)

MIN_FEASIBLE_NODES_TO_FIND = 100
"""A share of the nodes is only taken of clusters that have more. Upstream: minFeasibleNodesToFind."""


class FitError(Exception):
    """The pod fits nowhere; the message is the one of its event."""

    def __init__(self, num_all_nodes: int, diagnosis: fwk.Diagnosis, findings: Findings) -> None:
        super().__init__(fwk.fit_error_message(num_all_nodes, diagnosis))
        self.num_all_nodes = num_all_nodes
        self.diagnosis = diagnosis
        self.findings = findings


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The nodes that the pod could choose from."""

    rows: Rows
    total: Int64s
    """(R,) their weighted scores."""
    highest: int
    """None of these is above it, or below its negative."""


@final
@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """Where the pod goes."""

    suggested_host: str
    feasible_nodes: int
    evaluated_nodes: int
    """Nodes that were looked at: unlike upstream's, all that PreFilter left in play."""
    choice: Choice | None = field(default=None, compare=False, repr=False)
    """None where there was none. It holds until the next snapshot."""


@final
class SchedulingAlgorithm:
    """The algorithm of one scheduler. State: where the next search begins, so that all nodes get their turn when not all are looked at."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._next_start_node_index = 0
        self.metrics: Final = metrics or Metrics()
        self._points = self.metrics.points

    def schedule_pod(
        self,
        framework: Framework,
        snapshot: Snapshot,
        pod: Pod,
        nominations: Nominations = NO_NOMINATIONS,
        *,
        state: fwk.CycleState | None = None,
        percentage_of_nodes_to_score: int = 0,
    ) -> ScheduleResult:
        """Choose the best node; among equals, by chance.

        Arguments:
            state: of the cycle that the caller has begun with this snapshot and these nominations; None to begin one.
            percentage_of_nodes_to_score: how many of the nodes that fit are enough, as kube-scheduler counts it, unless the profile says
                so itself. 0 looks at all nodes: arrays make sampling needless.

        Raises:
            NoNodesAvailableError: the cluster is empty.
            FitError: the pod fits nowhere.
            PluginError: a plugin failed.
        """
        search = self.begin(framework, snapshot, pod, nominations, state=state)
        nominated = search.nominated_row()
        if nominated is not None:
            return ScheduleResult(nominated.names[0], 1, 1)
        rows = self.feasible_rows(search, percentage_of_nodes_to_score)
        if len(rows) == 1:
            return ScheduleResult(rows.names[0], 1, search.num_in_play)
        return search.best_of(rows, self.total_scores(search, rows), framework.highest_total)

    # The steps, for those who ask others in between.

    def begin(
        self, framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations, *, state: fwk.CycleState | None = None
    ) -> "Search":
        """The search for a node, of which PreFilter has taken a look. Arguments and errors as `schedule_pod`."""
        if not len(snapshot.nodes):
            raise fwk.NoNodesAvailableError
        if state is None:
            state = framework.begin_cycle(snapshot, nominations)
        state.pod_signature = signature_of(pod)
        began = perf_counter()
        outcome = framework.run_pre_filter_plugins(state, pod)
        self._points.observe(perf_counter() - began, "PreFilter", str(outcome.status.code), framework.profile_name)
        if not outcome.status.is_success:
            nobody = Rows.of(snapshot, np.zeros(0, np.intp))
            findings = Findings(nobody, fwk.accept(0), outcome.status, outcome.narrowed_by)
            raise FitError(len(snapshot.nodes), _refused_early(outcome), findings)
        return Search(framework, snapshot, state, pod, outcome)

    def feasible_rows(self, search: "Search", percentage_of_nodes_to_score: int) -> Rows:
        """(R,) at least one node that all Filters let pass, as many as are enough. Arguments and errors as `schedule_pod`."""
        framework, num_nodes, within = search.framework, len(search.snapshot.nodes), search.within
        began = perf_counter()
        rows = framework.feasible_rows(search.state, search.pod, within)
        self._points.observe(perf_counter() - began, "Filter", "Success" if len(rows) else "Unschedulable", framework.profile_name)
        if not len(rows):
            findings = search.findings()
            raise FitError(num_nodes, search.diagnosis(findings), findings)
        own_share = framework.percentage_of_nodes_to_score
        share = percentage_of_nodes_to_score if own_share is None else own_share
        return self._sampled(rows, num_feasible_nodes_to_find(num_nodes if within is None else len(within), share)) if share else rows

    def total_scores(self, search: "Search", rows: Rows) -> Int64s:
        """(R,) the weighted sum of what Score says of these rows, PreScore having taken a look at them. Errors as `schedule_pod`."""
        framework, profile = search.framework, search.framework.profile_name
        began = perf_counter()
        framework.run_pre_score_plugins(search.state, search.pod, rows)
        self._points.observe((prepared := perf_counter()) - began, "PreScore", "Success", profile)
        total = framework.total_scores(search.state, search.pod, rows)
        self._points.observe(perf_counter() - prepared, "Score", "Success", profile)
        if _LOG.enabled(10):
            for plugin, scores in framework.run_score_plugins(search.state, search.pod, rows).weighted.items():
                for name, score in zip(rows.names, scores.tolist(), strict=True):
                    _LOG.info(10, "Plugin scored node for pod", pod=search.pod, plugin=plugin, node=name, score=score)
        return total

    def _sampled(self, rows: Rows, enough: int) -> Rows:
        """The first feasible nodes in rotation order, as many as are enough."""
        num_nodes = len(rows.snapshot.nodes)
        start = self._next_start_node_index % num_nodes
        turn = np.argsort((rows.node - start) % num_nodes, kind="stable")[:enough]
        processed = num_nodes if len(rows) <= enough else int((rows.node[turn[-1]] - start) % num_nodes) + 1
        self._next_start_node_index = (start + processed) % num_nodes
        return rows.take(turn)


@final
@dataclass(frozen=True, slots=True)
class Search:
    """The search for a node for one pod, in one cycle."""

    framework: Framework
    snapshot: Snapshot
    state: fwk.CycleState
    pod: Pod
    outcome: PreFilterOutcome

    @property
    def within(self) -> Index | None:
        """(B,) the places that PreFilter left in play, ascending; None for all nodes."""
        return _within(self.snapshot, self.outcome)

    @property
    def num_in_play(self) -> int:
        """How many nodes PreFilter left in play."""
        within = self.within
        return len(self.snapshot.nodes) if within is None else len(within)

    def nominated_row(self) -> Rows | None:
        """The node the pod is nominated to, if it still fits: no other is looked at then.

        A plugin that fails here is logged, as upstream does: the search over all nodes has the last word.
        """
        name = self.pod.status.nominated_node_name
        place = self.snapshot.nodes.index.get(name) if name else None
        if place is None:
            return None
        row = Rows.of(self.snapshot, np.array([place]))
        try:
            verdicts = self.framework.run_filters_with_nominated_pods(self.state, self.pod, row)
        except PluginError as exc:
            _LOG.exception(exc, "Evaluation failed on nominated node", pod=self.pod, node=name)
            return None
        return row if verdicts.all_ok else None

    def findings(self) -> Findings:
        """What the Filters say of all nodes that PreFilter left in play."""
        rows = Rows.of(self.snapshot, self.within)
        verdicts = self.framework.run_filters_with_nominated_pods(self.state, self.pod, rows)
        return Findings(rows, verdicts, self.outcome.status, self.outcome.narrowed_by)

    def diagnosis(self, findings: Findings) -> fwk.Diagnosis:
        """What that means for the pod."""
        return _diagnosis(self.within, self.outcome, findings)

    def best_of(self, rows: Rows, total: Int64s, highest: int) -> ScheduleResult:
        """The row with the best score; among equals, by chance.

        Arguments:
            highest: no score is above it, or below its negative.
        """
        chosen = select_host(total, self.framework)
        if _LOG.enabled(10):
            for name, score in zip(rows.names, total.tolist(), strict=True):
                _LOG.info(10, "Calculated node's final score for pod", pod=self.pod, node=name, score=score)
        host = self.snapshot.nodes.objects[int(rows.node[chosen])].name
        return ScheduleResult(host, len(rows), self.num_in_play, Choice(rows, total, highest))


def num_feasible_nodes_to_find(num_nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough.

    Upstream: pkg/scheduler/schedule_one.go, numFeasibleNodesToFind (v1.36.2), but for 0, which is not adaptive here.
    """
    if num_nodes < MIN_FEASIBLE_NODES_TO_FIND or not percentage:
        return num_nodes
    return max(MIN_FEASIBLE_NODES_TO_FIND, num_nodes * percentage // 100)


def select_host(total: Int64s, framework: Framework) -> int:
    """The row with the highest total; one of them by chance when several tie."""
    best = np.flatnonzero(total == total.max())
    return int(best[framework.random.randrange(len(best))]) if len(best) > 1 else int(best[0])


def _within(snapshot: Snapshot, outcome: PreFilterOutcome) -> Index | None:
    if outcome.node_names is None:
        return None
    index = snapshot.nodes.index
    return np.array(sorted(index[name] for name in outcome.node_names if name in index), np.intp)


def _refused_early(outcome: PreFilterOutcome) -> fwk.Diagnosis:
    plugins = frozenset(outcome.narrowed_by) | ({outcome.status.plugin} if outcome.status.plugin else frozenset())
    return fwk.Diagnosis(fwk.NodeStatuses(absent=outcome.status), plugins, pre_filter_message=outcome.status.message)


def _diagnosis(within: Index | None, outcome: PreFilterOutcome, findings: Findings) -> fwk.Diagnosis:
    rows, verdicts = findings.rows, findings.verdicts
    absent = fwk.unresolvable()
    if within is not None:
        absent = fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(outcome.narrowed_by)}]")
    statuses = statuses_by_node(verdicts, rows.names, absent)
    plugins = frozenset(outcome.narrowed_by) | {name for name, mask in verdicts.refused_by if mask.any()}
    waits = verdicts.codes == fwk.Code.PENDING
    return fwk.Diagnosis(statuses, plugins, frozenset(name for name, mask in verdicts.refused_by if (mask & waits).any()))
