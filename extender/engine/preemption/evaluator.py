"""Evaluator: finds the node and the victims that make room for a pod that fits on no node, in five steps.

Upstream: pkg/scheduler/framework/preemption/preemption.go, Evaluator;
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, PodEligibleToPreemptOthers.
"""

from collections.abc import Callable, Container, Sequence
from functools import reduce
from typing import Final, final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.framework import Code, NodeStatuses, PreemptionRules
from extender.engine.framework.preemption import STILL_TERMINATING
from extender.engine.preemption.budgets import has_lower_priority_pods, may_be_victims
from extender.engine.preemption.costs import better_on_each_node, pick_one_node_for_preemption
from extender.engine.preemption.dry_run import DryRun, dry_run
from extender.engine.preemption.rules import V1_36
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index
from extender.values.klog.logger import Logger
from extender.values.objects.grouping import NOT_HELPFUL
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)

NO_CANDIDATE = "no candidate node for preemption"


@final
class Evaluator(msgspec.Struct, frozen=True):
    """The algorithm, with the parts that a plugin may replace."""

    handle: fwk.Handle
    num_candidates: Callable[[int], tuple[int, int]]
    """Number of potential nodes -> (offset, how many candidates are enough)."""
    rules: PreemptionRules = V1_36
    """The rules of a release or of a plugin (upstream's IsEligiblePod, MoreImportantPod and OrderedScoreFuncs)."""

    async def preempt(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PreemptionOutcome:
        """Chooses a node and its victims, given the nodes' statuses. Nothing is evicted."""
        try:
            outcome = await self._chosen(state, pod, statuses)
            if self.rules.without_policies is None or outcome.why_not_eligible is not None:
                return outcome
            alone = Evaluator(self.handle, lambda num_nodes: (0, num_nodes), self.rules.without_policies)
            potential = nodes_where_preemption_might_help(state.snapshot, statuses, alone.rules)
            return replace(outcome, without_policies=best_of(alone.find_candidates(state, pod, potential).candidates))
        except fwk.EvaluationError as exc:
            return fwk.PreemptionOutcome(fwk.error(str(exc)), None)

    async def _chosen(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PreemptionOutcome:
        snapshot, rules = state.snapshot, self.rules

        # 1 may this pod preempt at all?
        reason = why_not_eligible(pod, snapshot, statuses, rules)
        if reason is not None:
            _LOG.info(5, "Pod is not eligible for preemption", pod=pod, reason=reason)
            return fwk.PreemptionOutcome(fwk.unschedulable(reason), None, why_not_eligible=reason)

        # 2 find candidates by a dry run on the nodes where removing pods can help
        potential = nodes_where_preemption_might_help(snapshot, statuses, rules)
        if not len(potential):
            _LOG.info(3, "Preemption will not help schedule pod on any node", pod=pod)
        run = self.find_candidates(state, pod, potential)
        free = run.fits_as_is if self._keeps_free_nodes(pod) else ()
        if not len(run.candidates) and not free:
            _LOG.info(2, "No preemption candidate is found; preemption is not helpful for scheduling", pod=pod)
            status = fwk.unschedulable(fwk.fit_error_message(len(snapshot.nodes), fwk.Diagnosis(run.statuses)))
            return fwk.PreemptionOutcome(status, "", None, potential, run.candidates, run.statuses)

        # 3 extenders may drop candidates or choose other victims, also where Filters need none
        candidates = run.candidates
        if self.handle.extenders:
            try:
                offered = [*(fwk.Candidate(node, (), 0) for node in free), *candidates.listed()]
                answer = await self._call_extenders(pod, offered, snapshot)
                free = tuple(candidate.node for candidate in answer if not candidate.victims and rules.takes_free_nodes)
                candidates = fwk.Candidates.of(
                    snapshot, [candidate for candidate in answer if candidate.victims], rules
                )
            except fwk.ExtenderError as exc:
                return fwk.PreemptionOutcome(fwk.error(str(exc)), None, None, potential, candidates, run.statuses)

        # 4 select the best candidate
        best = pick_one_node_for_preemption(candidates)
        if not len(best) and not free:
            return fwk.PreemptionOutcome(
                fwk.unschedulable(NO_CANDIDATE), None, None, potential, candidates, run.statuses, best
            )
        chosen = fwk.Candidate(free[0], (), 0) if free else candidates.at(int(best[0]))
        _LOG.info(2, "the target node for the preemption is determined", node=chosen.node, pod=pod)

        # 5 the caller prepares the candidate: it nominates the node and evicts the victims
        return fwk.PreemptionOutcome(fwk.SUCCESS, chosen.node, None, potential, candidates, run.statuses, best, chosen)

    def find_candidates(self, state: fwk.CycleState, pod: Pod, potential: Index) -> DryRun:
        """Dry-runs potential nodes from a random offset on, until there are enough and one violates no budget.

        Candidates that violate none come first. Nodes that are not reached are neither candidates nor have a status.
        """
        if not len(potential):
            # No Filter may run: when PreFilter refused the pod for good, they have no state for it.
            statuses = fwk.NodeStatuses(absent=fwk.unresolvable(NOT_HELPFUL))
            return DryRun(fwk.Candidates.of(state.snapshot, (), self.rules), statuses, ())
        offset, enough = self.num_candidates(len(potential))
        in_turn, keeps_free = np.roll(potential, -offset), self._keeps_free_nodes(pod)
        runs: list[DryRun] = []
        non_violating = total = 0
        # Without possible victims there is nothing to stop for.
        at_once = enough if keeps_free or has_lower_priority_pods(state.snapshot, pod) else len(in_turn)
        for start in range(0, len(in_turn), at_once):
            nodes = in_turn[start : start + at_once]
            run = dry_run(state, pod, nodes, self.rules)
            for rules in self.rules.also_by:
                run = _better_on_each_node(run, dry_run(state, pod, nodes, rules))
            runs.append(run)
            num_free = len(run.fits_as_is) if keeps_free else 0
            total += len(run.candidates) + num_free
            non_violating += int((run.candidates.num_pdb_violations == 0).sum()) + num_free
            if non_violating and total >= enough:
                break
        return _joined(runs, enough)

    def _keeps_free_nodes(self, pod: Pod) -> bool:
        """Returns whether nodes on which the pod fits count: an extender refused it, and knows whom to evict.

        Upstream: hasInterestedPreemptExtender, of kubernetes#135486.
        """
        return self.rules.takes_free_nodes or any(extender.is_interested(pod) for extender in self.handle.extenders)

    async def _call_extenders(
        self, pod: Pod, candidates: Sequence[fwk.Candidate], snapshot: Snapshot
    ) -> Sequence[fwk.Candidate]:
        """Returns the candidates that all extenders accept (callExtenders). Raises ExtenderError unless ignorable."""
        for extender in self.handle.extenders:
            if not candidates:
                break
            if not extender.is_interested(pod):
                continue
            try:
                answer = await extender.process_preemption(pod, candidates, snapshot)
            except fwk.ExtenderError as exc:
                if not extender.is_ignorable:
                    raise
                message = "Skipped extender as it returned error and has ignorable flag set"
                _LOG.info(2, message, extender=extender.name, err=exc)
                continue
            # What came without victims may be passed on so, for the next extender to say.
            came_free = {candidate.node for candidate in candidates if not candidate.victims}
            candidates = _checked(answer, extender, self.rules, came_free)
        return candidates


def best_of(candidates: fwk.Candidates) -> fwk.Candidate | None:
    best = pick_one_node_for_preemption(candidates)
    return candidates.at(int(best[0])) if len(best) else None


def _checked(
    answer: Sequence[fwk.Candidate], extender: fwk.PreemptionExtender, rules: PreemptionRules, came_free: Container[str]
) -> list[fwk.Candidate]:
    """Returns the candidates, each victim once; without victims they are dropped, unless the rules take free nodes.

    The extender got the nodes that `came_free` without victims. Raises ExtenderError, unless it is ignorable, if a
    candidate has no victim, though it needs one.
    """
    accepted: list[fwk.Candidate] = []
    for candidate in answer:
        if candidate.victims or rules.takes_free_nodes or candidate.node in came_free:
            once = tuple({victim.uid: victim for victim in candidate.victims}.values())
            accepted.append(fwk.Candidate(candidate.node, once, candidate.num_pdb_violations))
        elif extender.is_ignorable:
            message = "Ignored node for which the extender didn't report victims"
            _LOG.info(2, message, node=candidate.node, extender=extender.name)
        else:
            raise fwk.ExtenderError(f'expected at least one victim pod on node "{candidate.node}"')
    return accepted


def nodes_where_preemption_might_help(snapshot: Snapshot, statuses: fwk.NodeStatuses, rules: PreemptionRules) -> Index:
    """Returns (B,) the nodes whose refusal is Unschedulable under the rules.

    Upstream: pkg/scheduler/framework/interface.go, NodesForStatusCode.
    """
    # The absent status is that of a PreFilter, which has left no state for the Filters unless it says Unschedulable
    # itself.
    mask = np.full(len(snapshot.nodes), statuses.absent.code is Code.UNSCHEDULABLE)
    statuses.mark(mask, snapshot, lambda status: rules.code_of(status) is Code.UNSCHEDULABLE)
    return np.flatnonzero(mask)


def _better_on_each_node(run: DryRun, other: DryRun) -> DryRun:
    """Returns the first run with the other one's victims where those are better by the first run's criteria."""
    better = better_on_each_node(run.candidates.joined(other.candidates))
    return DryRun(better, run.statuses.without(better.node), run.fits_as_is)


def _joined(runs: list[DryRun], enough: int) -> DryRun:
    if len(runs) == 1 and not len(runs[0].candidates):
        return runs[0]
    joined = reduce(fwk.Candidates.joined, (run.candidates for run in runs))
    violates = joined.num_pdb_violations > 0
    places = np.r_[np.flatnonzero(~violates)[:enough], np.flatnonzero(violates)[:enough]]
    if violates.any() or len(places) < len(joined):
        joined = joined.take(places)
    statuses = reduce(fwk.NodeStatuses.joined, (run.statuses for run in runs))
    return DryRun(joined, statuses, tuple(name for run in runs for name in run.fits_as_is)[:enough])


NEVER = "not eligible due to preemptionPolicy=Never."


def why_not_eligible(pod: Pod, snapshot: Snapshot, statuses: NodeStatuses, rules: PreemptionRules) -> str | None:
    """Returns why the pod may not preempt; None if it may.

    A pod that has preempted before waits until its victims are gone; under later rules not if its nominated node became
    unresolvable.
    """
    if pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.status.nominated_node_name
    place = snapshot.nodes.index.get(nominated)
    if place is None:
        return None
    code = rules.code_of(statuses.at_place(place, snapshot))
    if rules.gives_up_unresolvable and code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return None
    slots = np.array(snapshot.pods.on_node[place], np.intp)
    lower = slots[snapshot.pods.priority[slots] < pod.priority]
    lower = lower[may_be_victims(snapshot, pod, lower, rules)]
    return STILL_TERMINATING if any(rules.waits_for(snapshot.pod_at(slot)) for slot in lower.tolist()) else None
