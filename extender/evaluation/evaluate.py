"""evaluate(): all that the scheduler would find out about one pod, as one value. Nothing is sampled, nothing is written.

Every node is filtered, every feasible node is scored, every promising node is dry-run. This is what `reprieve evaluate`, /v1/evaluate and
the parity tests show.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from extender import framework as fwk
from extender.runtime.cycle import Cycle, PreFilterOutcome
from extender.runtime.findings import diagnosis_of, find, refused_by_pre_filter, status_out_of_play, statuses_by_node
from extender.runtime.plugin_calls import PluginError
from extender.runtime.scoring import Scores
from extender.snapshot import Rows, Snapshot


@final
@dataclass(frozen=True, slots=True, repr=False)  # the columns of a cluster are megabytes of text, and asyncio asks for it
class Evaluation:
    """What each part of the scheduler says. The parts that were not reached are None."""

    snapshot: Snapshot
    pre_filter: PreFilterOutcome | None = None
    skipped: frozenset[str] = frozenset()
    """Plugins whose PreFilter had nothing to say."""
    statuses: fwk.NodeStatuses | None = None
    """Every node that was refused, and why."""
    by_plugin: dict[str, fwk.Verdicts] | None = None
    """Filter plugin -> its verdicts on all nodes, asked by itself and without nominated pods."""
    feasible: tuple[str, ...] = ()
    """Nodes that passed, in visiting order."""
    nominated_node_fits: str = ""
    """The node that the pod is nominated to, if it passed: kube-scheduler would look no further."""
    scores: Scores | None = None
    """Over `feasible`."""
    skipped_scores: frozenset[str] = frozenset()
    score_error: str = ""
    error: str = ""
    """Why the attempt ends in an error rather than in "fits" or "fits nowhere"."""
    diagnosis: fwk.Diagnosis | None = None
    """When nothing fits."""
    post_filter: fwk.PostFilterResult | None = None
    tries_preemption: bool = False
    """Nothing fits, and the profile has a plugin that preempts."""
    preemption: fwk.PreemptionOutcome | None = None
    """What the search for room has found out; None if there was none."""

    @property
    def fit_error(self) -> str:
        """Why no node fits, before preemption is tried; "" if one does."""
        return "" if self.diagnosis is None else fwk.fit_error_message(len(self.snapshot.nodes), self.diagnosis)

    @property
    def message(self) -> str:
        """The sentence of the pod's event and condition; "" if a node fits."""
        if self.diagnosis is None or self.post_filter is None:
            return self.fit_error
        with_post_filter = fwk.Diagnosis(
            self.diagnosis.statuses,
            pre_filter_message=self.diagnosis.pre_filter_message,
            post_filter_message=self.post_filter.status.message,
        )
        return fwk.fit_error_message(len(self.snapshot.nodes), with_post_filter)

    @property
    def top_nodes(self) -> tuple[str, ...]:
        """The nodes with the highest total score, by name."""
        if self.scores is None or not self.feasible:
            return ()
        best = np.flatnonzero(self.scores.total == self.scores.total.max())
        return tuple(sorted(self.feasible[row] for row in best.tolist()))


async def evaluate(cycle: Cycle) -> Evaluation:
    """Asks every plugin of the profile about the cycle's pod.

    A plugin that fails where a scheduling cycle would end in an error is the evaluation's `error`.
    """
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
        statuses = statuses_by_node(findings.verdicts, findings.rows.names, status_out_of_play(cycle))
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
    post_filter = await cycle.run_post_filter_plugins(statuses) if plugins else None
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
            # In a scheduling cycle an earlier Filter may have kept the plugin from the node that it cannot judge.
            everywhere = np.ones(len(rows), np.bool_)
            verdicts[name] = fwk.Verdicts(np.full(len(rows), fwk.Code.ERROR, np.int8), ((str(exc), everywhere),))
    return verdicts


def _scored(cycle: Cycle, feasible: Rows, so_far: Evaluation) -> Evaluation:
    scores: Scores | None = None
    score_error = ""
    try:
        cycle.run_pre_score_plugins(feasible)
        scores = cycle.run_score_plugins(feasible)
    except PluginError as exc:
        score_error = str(exc)
    return replace(
        so_far,
        scores=scores,
        skipped_scores=cycle.skip_score_plugins if scores is not None else frozenset(),
        score_error=score_error,
        # A single feasible node is taken without being scored.
        error=score_error if len(feasible) > 1 else "",
    )
