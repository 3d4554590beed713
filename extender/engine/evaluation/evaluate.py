"""evaluate(): all results of the scheduler about one pod, without sampling, without writing.

Every node is filtered, every feasible node is scored, every potential node is dry-run. `reprieve evaluate`,
/v1/evaluate and the parity tests show the result.
"""

from dataclasses import dataclass, replace
from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle, PreFilterOutcome
from extender.engine.runtime.findings import (
    diagnosis_of,
    find,
    refused_by_pre_filter,
    run_post_filter_plugins,
    status_out_of_play,
)
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.scoring import Scores
from extender.engine.snapshot import Rows, Snapshot


@final
@dataclass(frozen=True, slots=True, repr=False)  # asyncio may build the repr, which would be megabytes of columns
class Evaluation:
    """The result of each part of the scheduler; None for parts that the pod did not reach."""

    snapshot: Snapshot
    pre_filter: PreFilterOutcome | None = None
    skipped: frozenset[str] = frozenset()
    """Plugins whose PreFilter answered Skip."""
    statuses: fwk.NodeStatuses | None = None
    """The statuses of the refused nodes."""
    by_plugin: dict[str, fwk.Verdicts] | None = None
    """Filter plugin -> its own verdicts on all nodes, without nominated pods."""
    feasible: tuple[str, ...] = ()
    """Nodes that passed all Filters, in visiting order."""
    nominated_node_fits: str = ""
    """The node that the pod is nominated to, if it passed, in which case kube-scheduler would look at no other."""
    scores: Scores | None = None
    """The scores of the rows in `feasible`."""
    skipped_scores: frozenset[str] = frozenset()
    score_error: str = ""
    error: str = ""
    """The error that would end the attempt; empty if the pod fits or is unschedulable."""
    diagnosis: fwk.Diagnosis | None = None
    """Set if no node is feasible."""
    post_filter: fwk.PostFilterResult | None = None
    tries_preemption: bool = False
    """Whether no node is feasible and the profile has a plugin that preempts."""
    preemption: fwk.PreemptionOutcome | None = None
    """The outcome of the search for candidates; None if there was none."""

    @property
    def fit_error(self) -> str:
        """The reasons why no node fits, before preemption is tried; empty if one does."""
        return "" if self.diagnosis is None else fwk.fit_error_message(len(self.snapshot.nodes), self.diagnosis)

    @property
    def message(self) -> str:
        """The message of the pod's event and condition; empty if a node fits."""
        if self.diagnosis is None or self.post_filter is None:
            return self.fit_error
        with_post_filter = msgspec.structs.replace(self.diagnosis, post_filter_message=self.post_filter.status.message)
        return fwk.fit_error_message(len(self.snapshot.nodes), with_post_filter)

    @property
    def top_nodes(self) -> tuple[str, ...]:
        """The nodes with the highest total score, by name."""
        if self.scores is None or not self.feasible:
            return ()
        best = np.flatnonzero(self.scores.total == self.scores.total.max())
        return tuple(sorted(self.feasible[row] for row in best.tolist()))


async def evaluate(cycle: Cycle) -> Evaluation:
    """Runs every plugin on the cycle's pod. A failure that would end a scheduling cycle becomes its `error`."""
    if not len(cycle.snapshot.nodes):
        return Evaluation(cycle.snapshot, error=str(fwk.NoNodesAvailableError()))
    try:
        return await _evaluated(cycle)
    except PluginError as exc:
        return Evaluation(cycle.snapshot, error=str(exc))


async def _evaluated(cycle: Cycle) -> Evaluation:
    snapshot = cycle.snapshot
    pre_filter = cycle.run_pre_filter_plugins()
    by_plugin: dict[str, fwk.Verdicts] = {}
    if pre_filter.status.is_success:
        by_plugin = _each_filter_alone(cycle)
        findings = find(cycle)
        statuses = fwk.NodeStatuses.refused(findings.verdicts, findings.rows, status_out_of_play(cycle))
    else:
        findings = refused_by_pre_filter(cycle)
        statuses = fwk.NodeStatuses(absent=pre_filter.status)
    feasible = findings.rows.take(findings.verdicts.ok)
    nominated = cycle.pod.status.nominated_node_name
    evaluation = Evaluation(
        snapshot,
        pre_filter=pre_filter,
        skipped=cycle.skip_filter_plugins,
        statuses=statuses,
        by_plugin=by_plugin,
        feasible=tuple(feasible.names),
        nominated_node_fits=nominated if nominated in feasible.names else "",
    )
    if len(feasible):
        return _scored(cycle, feasible, evaluation)
    plugins = cycle.framework.plugins.post_filter
    post_filter = await run_post_filter_plugins(cycle, statuses) if plugins else None
    return replace(
        evaluation,
        diagnosis=diagnosis_of(cycle, findings),
        post_filter=post_filter,
        tries_preemption=any(plugin.chooses_candidates for plugin in plugins),
        preemption=None if post_filter is None else post_filter.preemption,
    )


def _each_filter_alone(cycle: Cycle) -> dict[str, fwk.Verdicts]:
    rows = Rows.of(cycle.snapshot)
    verdicts: dict[str, fwk.Verdicts] = {}
    for name, plugin in cycle.framework.plugins.filter:
        if name in cycle.skip_filter_plugins:
            continue
        try:
            verdicts[name] = cycle.run_filter_plugin(name, plugin, rows)
        except PluginError as exc:
            # In a scheduling cycle an earlier Filter may have refused the node on which this plugin fails.
            everywhere = np.ones(len(rows), np.bool_)
            verdicts[name] = fwk.Verdicts(np.full(len(rows), fwk.Code.ERROR, np.int8), ((str(exc), everywhere),))
    return verdicts


def _scored(cycle: Cycle, feasible: Rows, so_far: Evaluation) -> Evaluation:
    try:
        cycle.run_pre_score_plugins(feasible)
        scores = cycle.run_score_plugins(feasible)
    except PluginError as exc:
        # A single feasible node is chosen without scores, so that a failure to score is no error of the attempt.
        return replace(so_far, score_error=str(exc), error=str(exc) if len(feasible) > 1 else "")
    return replace(so_far, scores=scores, skipped_scores=cycle.skip_score_plugins)
