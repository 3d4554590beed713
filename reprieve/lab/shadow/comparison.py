"""Decides a pod in the state that another scheduler saw, compares both decisions, and says what made the difference."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, final

import numpy as np

from extender.answers.profiles import simulated_frameworks
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.reporter import Decided
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.findings import out_of_play_reason, run_post_filter_plugins, status_out_of_play
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError, with_long_work
from extender.engine.runtime.scoring import Choice
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.snapshot import Rows
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from reprieve.lab.agreement import DifferenceKind

Verdict = Literal["same", "tie", "different", "not-decided"]
UNSCHEDULABLE: Final = str(fwk.Code.UNSCHEDULABLE)


@final
@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why two decisions differ."""

    kind: DifferenceKind
    plugin: str = ""
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class Compared:
    """Two decisions about one pod."""

    verdict: Verdict
    ours: Decided
    plugins: frozenset[str] = frozenset()
    """The Filter and Score plugins that took part in ours."""
    cause: Cause | None = None
    """Set if the decisions differ and the cause was asked for."""
    victims: tuple[Pod, ...] = ()
    """The pods that we would evict."""
    victims_there: tuple[Pod, ...] = ()
    """The pods that we would evict on the node that the other scheduler nominated."""


@final
@dataclass(frozen=True, slots=True)
class _Outcome:
    """Our decision, with the alternatives."""

    ours: Decided
    cycle: Cycle
    choice: Choice | None = None
    post_filter: fwk.PostFilterResult | None = None
    refused_by: frozenset[str] = frozenset()


@final
class DecisionComparer:
    """Decides with frameworks that only answer. State: their memory of the cluster."""

    def __init__(self, configuration: Configuration, cluster: Cluster) -> None:
        """Makes the frameworks. Raises ConfigErrors."""
        self.frameworks: Final[Mapping[str, Framework]] = simulated_frameworks(configuration, cluster, may_defer=True)
        self._cluster = cluster
        self._algorithm = SchedulingAlgorithm()

    async def compare(self, pod: Pod, theirs: Decided, *, explains: bool = True) -> Compared:
        """Decides about a pod as it was before their decision. The cluster must not change meanwhile."""
        try:
            return await with_long_work(partial(self._compared, pod, theirs, explains=explains))
        except (PluginError, ValueError) as exc:
            # ValueError: the pod cannot be read, such as for an invalid quantity.
            return Compared("not-decided", Decided(status=str(fwk.Code.ERROR), message=str(exc)))

    async def _compared(self, pod: Pod, theirs: Decided, *, explains: bool) -> Compared:
        nominations = Nominations(self._cluster.nominees(self.frameworks))
        snapshot = self._cluster.cache.update_snapshot()
        if not len(snapshot.nodes):
            return Compared("not-decided", Decided(status=UNSCHEDULABLE, message=str(fwk.NoNodesAvailableError())))
        cycle = Cycle(self.frameworks[pod.scheduler_name], snapshot, pod, nominations)
        outcome = await self._decided(cycle)
        verdict = _verdict(outcome, theirs)
        cause = _cause(outcome, theirs) if verdict == "different" and explains else None
        preemption = None if outcome.post_filter is None else outcome.post_filter.preemption
        chosen = None if outcome.post_filter is None else outcome.post_filter.candidate
        their_candidate = _candidate_on(preemption, theirs.nominated) or (
            chosen if chosen is not None and chosen.node == theirs.nominated else None
        )
        return Compared(
            verdict,
            outcome.ours,
            _with_a_say(cycle),
            cause,
            () if chosen is None else chosen.victims,
            () if their_candidate is None else their_candidate.victims,
        )

    async def _decided(self, cycle: Cycle) -> _Outcome:
        try:
            result = self._algorithm.schedule_pod(cycle)
            return _Outcome(Decided(node=result.suggested_host), cycle, result.choice)
        except FitError as exc:
            refusal = exc
        plugins = refusal.diagnosis.unschedulable_plugins
        if not cycle.framework.plugins.post_filter:
            return _Outcome(Decided(status=UNSCHEDULABLE, message=str(refusal)), cycle, refused_by=plugins)
        outcome = await run_post_filter_plugins(cycle, refusal.diagnosis.statuses)
        # None leaves the nomination as it is.
        nominated = cycle.pod.status.nominated_node_name if outcome.nominated_node is None else outcome.nominated_node
        victims = () if outcome.candidate is None else tuple(sorted(victim.key for victim in outcome.candidate.victims))
        ours = Decided(status=UNSCHEDULABLE, message=str(refusal), nominated=nominated, victims=victims)
        return _Outcome(ours, cycle, post_filter=outcome, refused_by=plugins)


def _with_a_say(cycle: Cycle) -> frozenset[str]:
    plugins = cycle.framework.plugins
    filters = {name for name, _ in plugins.filter} - cycle.skip_filter_plugins
    return frozenset(filters | ({scorer.name for scorer in plugins.score} - cycle.skip_score_plugins))


def _verdict(outcome: _Outcome, theirs: Decided) -> Verdict:
    ours = outcome.ours
    if ours.node and theirs.node:
        return "same" if ours.node == theirs.node else "tie" if _is_tie(outcome, theirs.node) else "different"
    if ours.node or theirs.node:
        return "different"
    if ours.nominated == theirs.nominated:
        return "same"
    return (
        "tie" if ours.nominated and theirs.nominated and _is_equal_candidate(outcome, theirs.nominated) else "different"
    )


def _is_tie(outcome: _Outcome, node: str) -> bool:
    if outcome.choice is None:
        return False
    place, total = outcome.cycle.snapshot.nodes.index.get(node), outcome.choice.total
    return place is not None and bool((total[outcome.choice.rows.node == place] == total.max()).any())


def _is_equal_candidate(outcome: _Outcome, node: str) -> bool:
    """Whether a node equals, by all criteria, the one that we would preempt on."""
    preemption = None if outcome.post_filter is None else outcome.post_filter.preemption
    if preemption is None or preemption.candidates is None or preemption.best is None:
        return False
    place = outcome.cycle.snapshot.nodes.index.get(node)
    return place is not None and place in preemption.candidates.node[preemption.best]


def _candidate_on(preemption: fwk.PreemptionOutcome | None, node: str) -> fwk.Candidate | None:
    if preemption is None or preemption.candidates is None or not node:
        return None
    candidates = preemption.candidates
    place = candidates.snapshot.nodes.index.get(node)
    if place is None:
        return None
    rows = np.flatnonzero(candidates.node == place)
    return candidates.at(int(rows[0])) if len(rows) else None


# Why.


def _cause(outcome: _Outcome, theirs: Decided) -> Cause:
    ours = outcome.ours
    if theirs.node:
        plugin, reason = _why_not_there(outcome, theirs.node)
        return Cause("elsewhere" if ours.node else "kept-waiting", plugin, reason)
    their_reason = main_reason(theirs.message)
    preempts = next(
        (plugin.name for plugin in outcome.cycle.framework.plugins.post_filter if plugin.chooses_candidates), ""
    )
    if ours.node:
        return Cause(
            "would-not-evict" if theirs.nominated else "room",
            "",
            f"the scheduler says: {their_reason}" if their_reason else "",
        )
    if not theirs.nominated:
        return Cause("would-evict", preempts, f"{_count(len(ours.victims))} would make room on {ours.nominated}")
    if not ours.nominated:
        why = (
            outcome.post_filter.status.message
            if preempts and outcome.post_filter is not None
            else "no plugin of the profile preempts"
        )
        return Cause("would-not-evict", preempts, why)
    return Cause("freed-elsewhere", preempts, f"{ours.nominated} costs less: {_count(len(ours.victims))}")


def _why_not_there(outcome: _Outcome, node: str) -> tuple[str, str]:
    before = outcome.cycle
    snapshot, ours = before.snapshot, outcome.ours.node
    place = snapshot.nodes.index.get(node)
    if place is None:
        return "", f"{node} is not known here"
    if ours and ours == before.pod.status.nominated_node_name:
        return "", f"the pod is nominated to {ours}, where it fits"
    cycle = Cycle(before.framework, snapshot, before.pod, before.nominations)
    narrowing = cycle.run_pre_filter_plugins()
    if not narrowing.status.is_success:
        return narrowing.status.plugin, narrowing.status.message
    if cycle.within is not None and place not in cycle.within:
        return narrowing.narrowed_by[0], out_of_play_reason(narrowing.narrowed_by)
    row = Rows.of(snapshot, np.array([place]))
    verdicts = cycle.run_filters_with_nominated_pods(row)
    if not verdicts.all_ok:
        status = fwk.NodeStatuses.refused(verdicts, row, status_out_of_play(cycle)).of(node)
        return status.plugin, f"{status.plugin} refuses {node}: {status.message}"
    rows = cycle.feasible_rows()
    cycle.run_pre_score_plugins(rows)
    scores = cycle.run_score_plugins(rows)
    our_row, their_row = (int(np.flatnonzero(rows.node == snapshot.nodes.index[name])[0]) for name in (ours, node))
    leads = {plugin: int(points[our_row] - points[their_row]) for plugin, points in scores.weighted.items()}
    plugin = max(leads, key=lambda name: leads[name])
    lead = int(scores.total[our_row] - scores.total[their_row])
    return plugin, f"{plugin} gives {ours} {leads[plugin]} more than {node}; with all plugins it is {lead} more"


def main_reason(message: str) -> str:
    """Returns the most frequent reason in kube-scheduler's message; a message of another form as it is."""
    _, separator, rest = message.partition(" nodes are available: ")
    if not separator:
        return message
    clauses = [clause.partition(" ") for clause in rest.partition(". ")[0].rstrip(".").split(", ")]
    reasons = [(int(number), reason) for number, _, reason in clauses if number.isascii() and number.isdigit()]
    return max(reasons, key=lambda clause: clause[0])[1] if reasons else rest


def _count(victims: int) -> str:
    return "evicting 1 pod" if victims == 1 else f"evicting {victims} pods"
