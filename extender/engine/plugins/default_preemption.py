"""DefaultPreemption: finds pods of lower priority to evict when a pod fits on no node.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, final

from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.preemption import RULES, V1_36, Evaluator
from extender.engine.preemption.preemptions import GUARD, PREEMPTIONS, LoopGuard, Pause, RunningPreemptions
from extender.engine.preemption.victim_policy import policy_rules
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import DefaultPreemptionArgs
from extender.values.objects.grouping import group_of
from extender.values.objects.pod import Pod


@final
class DefaultPreemption(fwk.PreEnqueuePlugin, fwk.PostFilterPlugin):
    """Runs the preemption Evaluator with upstream's limits on the number of nodes that it tries."""

    chooses_candidates = True
    preemption_rules: fwk.PreemptionRules

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else DefaultPreemptionArgs()
        check_args(args)
        self._percentage = args.min_candidate_nodes_percentage
        self._absolute = args.min_candidate_nodes_absolute
        enabled = self.feature_gates.enabled
        self._places_groups = enabled("TopologyAwareWorkloadScheduling")
        self._preempts_for_groups = enabled("WorkloadAwarePreemption")
        rules = V1_36 if args.preemption_rules is None else RULES[args.preemption_rules]
        self._has_loop_guard = args.loop_guard is not False
        self.preemption_rules = policy_rules(
            rules, args.protect, args.cost, args.delay, now=self._now, is_going=self._chosen_lately
        )

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """Registers for the deletion of victims; the plugins that refused decide whether one helps."""
        return [fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE, lambda pod, old, new: fwk.QueueingHint.QUEUE_SKIP)]

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        """Holds the pod back during its preemption: an attempt would find the victims still there."""
        handle = self._handle
        if handle is None:
            return fwk.SUCCESS
        running = handle.shared(PREEMPTIONS, RunningPreemptions)
        if running.is_running(pod.uid, handle.live):
            return fwk.unresolvable("waiting for the preemption for this pod to be finished")
        if self._preempts_for_groups and pod.spec.scheduling_group is not None:
            group = handle.objects.pod_groups.get(group_of(pod) or ("", ""))
            if group is not None and running.is_running(group.uid, handle.live):
                return fwk.unresolvable("waiting for the preemption for this pod group to be finished")
        return fwk.SUCCESS

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """Nominates the pod to the best candidate, unless it has to wait before it may preempt."""
        if pod.spec.scheduling_group is not None:
            reason = self._why_not_for_member(pod)
            if reason:
                return fwk.PostFilterResult(fwk.unschedulable(f"preemption: {reason}"))
        # A question has no dispatcher, and asks what would happen after the wait.
        delay_of = self.preemption_rules.delay_of if self.handle.dispatcher is not None else None
        wait = delay_of(pod) if delay_of is not None else 0
        if wait > 0:
            why = f"preemption: not eligible for another {math.ceil(wait)}s, by the delay of preemption"
            return fwk.PostFilterResult(fwk.unschedulable(why), retry_after=wait)
        evaluator = Evaluator(self.handle, self.offset_and_num_candidates, self.preemption_rules)
        outcome = await evaluator.preempt(state, pod, statuses)
        status = outcome.status
        if not status.is_success:
            status = fwk.Status(status.code, (f"preemption: {status.message}",))
        elif outcome.chosen is not None and outcome.chosen.victims and self.handle.dispatcher is not None:
            pause, taken_by = self._guarded(state, pod, outcome.chosen)
            outcome = replace(outcome, last_room_taken_by=taken_by)
            if pause is not None:
                waits = fwk.unschedulable(f"preemption: {pause.reason}")
                outcome = replace(outcome, status=waits, nominated_node=None, chosen=None)
                return fwk.PostFilterResult(waits, preemption=outcome, retry_after=pause.seconds)
        return fwk.PostFilterResult(status, outcome.nominated_node, outcome.chosen, outcome)

    def _guarded(
        self, state: fwk.CycleState, pod: Pod, candidate: fwk.Candidate
    ) -> tuple[Pause | None, tuple[Pod, ...] | None]:
        """Records a preemption ahead; returns a pause if it must wait, and the pod that took the last one's room."""
        now, live = self._now().timestamp(), self.handle.live
        taken_by: tuple[Pod, ...] | None = None
        if self._has_loop_guard and live is not None:
            guard = self.handle.shared(GUARD, self._new_guard)
            pause = guard.pause(pod, state.snapshot, live, now)
            taken_by = guard.room_taken_by(pod)
            if pause is not None:
                return pause, taken_by
            guard.chosen(pod, candidate, state.snapshot)
        self.handle.shared(PREEMPTIONS, RunningPreemptions).choose(candidate.victims, now)
        return None, taken_by

    def _new_guard(self) -> LoopGuard:
        guard = LoopGuard()
        self.handle.shared(fwk.PLUGIN_METRICS, fwk.PluginMetrics).preemption_loops = lambda: (
            guard.num_wasted,
            guard.num_pauses,
        )
        return guard

    def _now(self) -> datetime:
        return self._handle.now() if self._handle is not None else datetime.now(UTC)

    def _chosen_lately(self) -> tuple[str, ...]:
        if self._handle is None:
            return ()
        return self._handle.shared(PREEMPTIONS, RunningPreemptions).chosen_lately(self._now().timestamp())

    def _why_not_for_member(self, pod: Pod) -> str:
        """Returns why a member of a pod group may not preempt for itself; empty if it may."""
        if self._places_groups:
            group = self.handle.objects.pod_groups.get(group_of(pod) or ("", ""))
            if group is None:
                return "pod group for pod not found"
            if group.spec.scheduling_constraints is not None:
                return "not eligible due to placement-based pod group scheduling limitation"
        return "not eligible due to workload aware preemption enabled" if self._preempts_for_groups else ""

    def offset_and_num_candidates(self, num_nodes: int) -> tuple[int, int]:
        """Returns a node to start from, at random unless all are tried, and how many candidates are enough."""
        enough = max(num_nodes * self._percentage // 100, self._absolute)
        if enough >= num_nodes or self.preemption_rules.tries_all_nodes:
            return 0, num_nodes
        return self.handle.random.randrange(num_nodes), enough
