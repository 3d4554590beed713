"""evaluate(): all that the scheduler would find out about one pod, as one value. Nothing is sampled, nothing is written.

Every node is filtered, every feasible node is scored, every promising node is dry-run. This is what `reprieve evaluate`, /v1/evaluate and
the parity tests show.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from extender import framework as fwk
from extender.config.configuration import Configuration, PluginConfig, Profile
from extender.config.plugin_args import DefaultPreemptionArgs
from extender.objects.pod import Pod
from extender.preemption import OUTCOME, PreemptionOutcome
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework, PreFilterOutcome, statuses_by_node
from extender.runtime.nominations import Nominations
from extender.runtime.scoring import Scores
from extender.snapshot import Rows, Snapshot

DEFAULT_PREEMPTION = "DefaultPreemption"


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
    """Nothing fits, and the profile has the DefaultPreemption plugin."""
    preemption: PreemptionOutcome | None = None
    """What DefaultPreemption found out; None if it had no turn."""

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


def trying_every_node(configuration: Configuration) -> Configuration:
    """The configuration with dry runs that leave no promising node out."""
    return replace(configuration, profiles=tuple(_trying_every_node(profile) for profile in configuration.profiles))


async def evaluate(framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> Evaluation:
    """Ask every plugin of the profile about the pod. A plugin that fails where the cycle would end in an error is the answer's `error`."""
    if not len(snapshot.nodes):
        return Evaluation(snapshot, error=str(fwk.NoNodesAvailableError()))
    try:
        return await _evaluated(framework, snapshot, pod, nominations)
    except PluginError as exc:
        return Evaluation(snapshot, error=str(exc))


async def _evaluated(framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> Evaluation:
    state = framework.begin_cycle(snapshot, nominations)
    pre_filter = framework.run_pre_filter_plugins(state, pod)
    by_plugin: dict[str, fwk.Verdicts] = {}
    if not pre_filter.status.is_success:
        statuses = fwk.NodeStatuses(absent=pre_filter.status)
        feasible = Rows.of(snapshot).take(np.zeros(0, np.intp))
    else:
        by_plugin = _each_filter_alone(framework, state, pod)
        statuses, feasible = _filter(framework, state, pod, pre_filter)
    nominated = pod.status.nominated_node_name
    evaluation = Evaluation(
        snapshot,
        pre_filter=pre_filter,
        skipped=state.skip_filter_plugins,
        statuses=statuses,
        by_plugin=by_plugin,
        feasible=tuple(feasible.names),
        nominated_node_fits=nominated if nominated in feasible.names else "",
    )
    if len(feasible):
        return _scored(framework, state, pod, feasible, evaluation)
    return await _without_a_node(framework, state, pod, evaluation)


def _filter(framework: Framework, state: fwk.CycleState, pod: Pod, outcome: PreFilterOutcome) -> tuple[fwk.NodeStatuses, Rows]:
    snapshot = framework.snapshot
    rows, absent = Rows.of(snapshot), fwk.unresolvable()
    if outcome.node_names is not None:
        index = snapshot.nodes.index
        rows = rows.take(np.array(sorted(index[name] for name in outcome.node_names if name in index), np.intp))
        absent = fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(outcome.narrowed_by)}]")
    verdicts = framework.run_filters_with_nominated_pods(state, pod, rows)
    return statuses_by_node(verdicts, rows.names, absent), rows.take(verdicts.ok)


def _each_filter_alone(framework: Framework, state: fwk.CycleState, pod: Pod) -> dict[str, fwk.Verdicts]:
    rows = Rows.of(framework.snapshot)
    verdicts: dict[str, fwk.Verdicts] = {}
    for name, plugin in framework.plugins.filter:
        if name in state.skip_filter_plugins:
            continue
        try:
            verdicts[name] = framework.run_filter_plugin(name, plugin, state, pod, rows)
        except PluginError as exc:
            # In the scheduler an earlier Filter may have kept the plugin from the node that it cannot judge.
            everywhere = np.ones(len(rows), np.bool_)
            verdicts[name] = fwk.Verdicts(np.full(len(rows), fwk.Code.ERROR, np.int8), ((str(exc), everywhere),))
    return verdicts


def _scored(framework: Framework, state: fwk.CycleState, pod: Pod, feasible: Rows, so_far: Evaluation) -> Evaluation:
    scores: Scores | None = None
    score_error = ""
    try:
        framework.run_pre_score_plugins(state, pod, feasible)
        scores = framework.run_score_plugins(state, pod, feasible)
    except PluginError as exc:
        score_error = str(exc)
    return replace(
        so_far,
        scores=scores,
        skipped_scores=state.skip_score_plugins if scores is not None else frozenset(),
        score_error=score_error,
        # A single feasible node is taken without being scored.
        error=score_error if len(feasible) > 1 else "",
    )


async def _without_a_node(framework: Framework, state: fwk.CycleState, pod: Pod, so_far: Evaluation) -> Evaluation:
    statuses, pre_filter = so_far.statuses, so_far.pre_filter
    if statuses is None or pre_filter is None:
        raise LookupError("the filters have not run")
    plugins = {status.plugin for status in statuses.explicit.values() if status.plugin} | set(pre_filter.narrowed_by)
    refused_early = not pre_filter.status.is_success
    if refused_early and pre_filter.status.plugin:
        plugins.add(pre_filter.status.plugin)
    diagnosis = fwk.Diagnosis(
        statuses,
        unschedulable_plugins=frozenset(plugins),
        pre_filter_message=pre_filter.status.message if refused_early else "",
    )
    post_filter = await framework.run_post_filter_plugins(state, pod, statuses) if framework.plugins.post_filter else None
    return replace(
        so_far,
        diagnosis=diagnosis,
        post_filter=post_filter,
        tries_preemption=any(plugin.name == DEFAULT_PREEMPTION for plugin in framework.plugins.post_filter),
        preemption=state.find(OUTCOME),
    )


def _trying_every_node(profile: Profile) -> Profile:
    every_node = PluginConfig(DEFAULT_PREEMPTION, DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0))
    others = tuple(config for config in profile.plugin_configs if config.name != DEFAULT_PREEMPTION)
    return replace(profile, plugin_configs=(*others, every_node))
