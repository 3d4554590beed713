"""Simulation: plays a cluster through until nothing more would happen. Pods are placed and preempt others, which are
placed again.

Every decision is that of the scheduling cycle: the same algorithm, the same preemption, the same order of the queue.
Time does not pass: a victim is gone at once, and a pod that a controller recreates exists at once. Nothing is written,
and no extender is called.
"""

import heapq
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, final

from extender.answers.explain.preemption import preemption_answer, victim
from extender.answers.parts import PodName, Victim
from extender.answers.trial import Trial, TrialAttempt, belongs_to_node, is_recreated
from extender.answers.types import Eviction, EvictionLoop, GroupOutcome, Placement, PreemptionAnswer
from extender.answers.what_if.group_outcomes import group_outcome
from extender.answers.what_if.simulated_pods import FailedAttempts, RemovedPod, RemovedPods, SimulatedPod, Why
from extender.engine import framework as fwk
from extender.engine.framework.preemption import STILL_TERMINATING
from extender.engine.scheduler.pod_group_trial import GroupResult
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import GroupKey
from extender.values.objects.pod import Pod

STEPS: Final = 10_000
"""The budget of a simulation: a pod that fits costs one step, one that does not costs ten."""
_STEPS_OF_A_MISFIT: Final = 10
_WITH_RUNNERS_UP: Final = 50
"""The number of preemptions that are listed with their runners-up."""


@final
class Simulation:
    """State: the submitted pods and what became of them, and how many events have happened."""

    def __init__(
        self, trial: Trial, steps: int = STEPS, before_eviction: Callable[[Pod], Awaitable[None]] | None = None
    ) -> None:
        """Nothing has happened yet. It is played through in the trial.

        `before_eviction` is called with each pod, but members of groups, for which others are evicted then.
        """
        self.trial: Final = trial
        self._before_eviction = before_eviction
        self._now = max((framework.now().timestamp() for framework in trial.frameworks.values()), default=0.0)
        self._steps = steps
        self._pods: dict[str, SimulatedPod] = {}
        self._queue: list[tuple[object, int, str]] = []
        self._removed_pods = RemovedPods()
        self.loops: list[EvictionLoop] = []
        """Pods that would evict each other forever."""
        self._failed = FailedAttempts()
        self._groups: dict[GroupKey, GroupOutcome] = {}
        self._group_victims: dict[GroupKey, list[Victim]] = {}
        self._without_policies: dict[GroupKey, list[Victim]] = {}
        self._num_preemptions = 0
        self._num_events = 0

    # What happens from outside.

    def submit(self, pod: Pod, cause: Literal["created", "pending"]) -> None:
        """Has a pod without a node placed."""
        self._enqueue(SimulatedPod(pod, cause, len(self._pods)))

    def remove_node(self, name: str) -> None:
        """Removes the node with its pods; those of controllers are recreated and placed elsewhere."""
        trial, leaving = self.trial, self._pods_that_leave(name)
        trial.disrupt(leaving)  # they are not asked, but they have one healthy pod less
        trial.changed(trial.cluster.nodes[name], None)
        for pod in leaving:
            self._evict(pod, "node removed")
        for pod in self._pods_on(name):
            trial.remove(pod)
        self._num_events += 1

    def drain_node(self, name: str) -> None:
        """Cordons the node and evicts its pods, except those that belong to it; those that must wait last."""
        node = self.trial.cluster.nodes[name]
        self.trial.changed(node, replaced(node, spec=replaced(node.spec, unschedulable=True)))
        drained = self._pods_that_leave(name)
        budgets = zip(drained, self.trial.disrupt(drained), strict=True)
        for pod, waits_for in sorted(budgets, key=lambda item: bool(item[1])):
            self._evict(pod, "drained", waits_for=waits_for)

    def withdraw(self, pod: Pod, why: Literal["scaled down", "replaced"]) -> None:
        """Deletes a pod that its controller does not want any more, wherever it is. Budgets are not asked."""
        cluster = self.trial.cluster
        pod_now = cluster.cache.pod(pod.uid) or cluster.pending.get(pod.uid)
        self._pods.pop(pod.uid, None)
        if pod_now is None:
            return
        eviction = Eviction(victim=victim(pod_now, self._now), node=pod_now.spec.node_name, why=why, returns=False)
        self._removed_pods.add(RemovedPod(eviction))
        self.trial.remove(pod_now)
        self._num_events += 1

    async def run(self) -> None:
        """Places all pods, until nothing more changes or all steps are used up."""
        while self._steps > 0:
            if self._queue:
                await self._place(self._pods[heapq.heappop(self._queue)[2]])
                continue
            retries = [simulated for simulated in self._pods.values() if self._is_worth_another_try(simulated)]
            if not retries:
                break
            for simulated in retries:
                self._enqueue(simulated)

    # What has come of it.

    @property
    def is_complete(self) -> bool:
        """False if a pod was still to be placed when the steps were used up."""
        return not self._queue and not any(map(self._is_worth_another_try, self._pods.values()))

    @property
    def placements(self) -> tuple[Placement, ...]:
        """What became of every pod: first those that were submitted, then those that were evicted."""
        pods = sorted(self._pods.values(), key=lambda pod: (pod.cause == "evicted", pod.turn))
        return tuple(pod.as_answer() for pod in pods)

    @property
    def groups(self) -> tuple[GroupOutcome, ...]:
        """What became of the pod groups, in the order in which they were first tried."""
        return tuple(self._groups.values())

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """In the order in which they would happen."""
        return tuple(removed.as_answer() for removed in self._removed_pods.all)

    # The queue.

    def _enqueue(self, simulated: SimulatedPod) -> None:
        self._pods[simulated.pod.uid] = simulated
        simulated.failed_at = None
        framework = self.trial.frameworks.get(simulated.pod.scheduler_name)
        if framework is None:
            self._fail(simulated, f'no profile here for schedulerName "{simulated.pod.scheduler_name}"', is_final=True)
            return
        key = framework.plugins.queue_sort.sort_key(simulated.pod, float(simulated.turn))
        heapq.heappush(self._queue, (key, simulated.turn, simulated.pod.uid))

    def _is_worth_another_try(self, simulated: SimulatedPod) -> bool:
        return not simulated.is_final and simulated.failed_at is not None and simulated.failed_at < self._num_events

    # One pod.

    async def _place(self, simulated: SimulatedPod) -> None:
        if not simulated.is_waiting:
            return  # it was tried with its group meanwhile
        why_gated = self.trial.why_gated(simulated.pod)
        if why_gated:
            self._fail(simulated, why_gated)
            return
        key = self.trial.frameworks[simulated.pod.scheduler_name].group_of(simulated.pod)
        if key is not None:
            await self._place_group(key)
            return
        while not simulated.node and simulated.failed_at is None and self._steps > 0:
            await self._attempt(simulated)
        if not simulated.node and simulated.failed_at is None:
            self._enqueue(simulated)  # pods were evicted for it, and there are no steps left to place it

    async def _attempt(self, simulated: SimulatedPod) -> None:
        """Tries to place the pod once. If it has no node then, it has failed, or others were evicted for it."""
        failure = self._failed.get(simulated.pod, self._num_events)
        if failure is not None:
            self._steps -= 1
            self._fail(simulated, *failure)
            return
        attempt = self.trial.schedule(simulated.pod)
        if attempt.refusal is not None:
            self._steps -= _STEPS_OF_A_MISFIT
            await self._make_room(simulated, attempt)
        else:
            self._steps -= 1
            self._settle(simulated, attempt.node, attempt.message)

    def _settle(self, simulated: SimulatedPod, node: str, message: str) -> None:
        if not node:
            self._fail(simulated, message)
            return
        self._num_events += 1
        simulated.node = node
        if simulated.removed is not None:
            simulated.removed.lands_on, simulated.removed.message = node, ""

    async def _make_room(self, simulated: SimulatedPod, attempt: TrialAttempt) -> None:
        result, message = await self.trial.preempt(attempt)
        outcome = result.preemption
        preemption = None
        if outcome is not None:
            self._num_preemptions += 1
            limit = limits.CANDIDATES if self._num_preemptions <= _WITH_RUNNERS_UP else 1
            preemption = preemption_answer(outcome, attempt.cycle.snapshot, simulated.pod, self._now, limit)
        candidate = result.candidate
        if outcome is not None and outcome.why_not_eligible == STILL_TERMINATING:
            # Its victims are terminating already: they are gone now.
            simulated.message, simulated.preemption = message, preemption
            for victim_pod in self._pods_on(simulated.pod.status.nominated_node_name):
                if victim_pod.is_terminating:
                    self.trial.remove(victim_pod)
            self._num_events += 1
        elif candidate is None or not candidate.victims or not result.nominated_node:
            self._failed.add(simulated.pod, self._num_events, (message, preemption))
            self._fail(simulated, message, preemption, nominate=result.nominated_node)
        elif (loop := self._removed_pods.loop(simulated.pod, candidate)) is not None:
            self.loops.append(loop)
            self._fail(simulated, message, is_final=True)
        else:
            if self._before_eviction is not None:
                await self._before_eviction(simulated.pod)
            if simulated.preemption is None or not simulated.preemption.node:
                # People are shown the first message. It may take more than one preemption until the pod fits.
                simulated.message, simulated.preemption = simulated.message or message, preemption
            self._preempt(simulated, candidate, preemption)

    def _preempt(self, simulated: SimulatedPod, candidate: fwk.Candidate, preemption: PreemptionAnswer | None) -> None:
        victims_by_uid = {} if preemption is None else {entry.pod.uid: entry for entry in preemption.victims}
        simulated.evicts += self._evict_for(simulated, candidate, victims_by_uid)
        self._nominate(simulated, candidate.node)

    def _evict_for(
        self, preemptor: SimulatedPod, candidate: fwk.Candidate, by_uid: Mapping[str, Victim] = MappingProxyType({})
    ) -> list[Victim]:
        self.trial.disrupt(candidate.victims)
        victims = [by_uid.get(pod.uid) or victim(pod, self._now) for pod in candidate.victims]
        for pod, victim_answer in zip(candidate.victims, victims, strict=True):
            self._evict(pod, "preempted", victim_answer=victim_answer, preemptor=preemptor)
        return victims

    def _nominate(self, simulated: SimulatedPod, node: str) -> None:
        if simulated.pod.status.nominated_node_name != node:
            nominated = replaced(simulated.pod, status=replaced(simulated.pod.status, nominated_node_name=node))
            self.trial.changed(simulated.pod, nominated)
            simulated.pod = nominated

    def _fail(
        self,
        simulated: SimulatedPod,
        message: str,
        preemption: PreemptionAnswer | None = None,
        *,
        nominate: str | None = "",
        is_final: bool = False,
    ) -> None:
        """Notes that the pod fits nowhere; it is nominated to `nominate`, empty for no node, None to leave that."""
        if nominate is not None:
            self._nominate(simulated, nominate)
        simulated.message, simulated.failed_at = message, self._num_events
        simulated.preemption = preemption or simulated.preemption
        simulated.is_final = simulated.is_final or is_final
        if simulated.removed is not None:
            simulated.removed.message = message

    # A pod group.

    async def _place_group(self, key: GroupKey) -> None:
        while self._steps > 0:
            members = [pod for pod in self._pods.values() if pod.is_waiting and self._is_ready_in(pod, key)]
            members.sort(key=lambda member: -member.pod.priority)
            result, victims = await self.trial.try_group(key, [member.pod for member in members])
            self._steps -= len(members) if result.status.is_success else _STEPS_OF_A_MISFIT * len(members)
            if result.without_policies is not None:
                alone = [victim(pod, self._now) for pod in result.without_policies.victims]
                self._without_policies.setdefault(key, []).extend(alone)
            evicted, instead_of = self._group_victims.get(key, ()), self._without_policies.get(key, ())
            self._groups[key] = group_outcome(self.trial.cluster, key, len(members), result, evicted, instead_of)
            by_uid = {member.pod.uid: member for member in members}
            own_candidates = [(by_uid[pod.uid], candidate) for pod, candidate in _own_candidates(result)]
            if result.status.is_success or (victims is None and not own_candidates):
                for simulated, outcome in zip(members, self.trial.place_group(result, len(members)), strict=True):
                    self._settle(simulated, *outcome)
                return
            candidates = [victims] if victims is not None else [candidate for _, candidate in own_candidates]
            loops = [self._removed_pods.loop(members[0].pod, candidate) for candidate in candidates]
            if (loop := next(filter(None, loops), None)) is not None:
                self.loops.append(loop)
                for simulated in members:
                    self._fail(simulated, result.status.message, is_final=True)
                return
            if victims is not None:
                self._group_victims.setdefault(key, []).extend(self._evict_for(members[0], victims))
            for simulated, candidate in own_candidates:
                self._preempt(simulated, candidate, None)
        for simulated in self._pods.values():
            if simulated.is_waiting and self._is_ready_in(simulated, key):
                self._enqueue(simulated)  # there are no steps left to place it

    def _is_ready_in(self, simulated: SimulatedPod, key: GroupKey) -> bool:
        framework = self.trial.frameworks.get(simulated.pod.scheduler_name)
        return (
            framework is not None
            and framework.group_of(simulated.pod) == key
            and not self.trial.why_gated(simulated.pod)
        )

    # Pods that leave.

    def _pods_that_leave(self, node: str) -> list[Pod]:
        return [pod for pod in self._pods_on(node) if not (pod.is_terminating or belongs_to_node(pod))]

    def _pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.trial.cluster.cache.pods if pod.spec.node_name == node]

    def _evict(
        self,
        pod: Pod,
        why: Why,
        *,
        victim_answer: Victim | None = None,
        preemptor: SimulatedPod | None = None,
        waits_for: tuple[str, ...] = (),
    ) -> None:
        eviction = Eviction(
            victim=victim_answer or victim(pod, self._now),
            node=pod.spec.node_name,
            why=why,
            by=None if preemptor is None else PodName.of(preemptor.pod),
            returns=is_recreated(pod),
            depth=1 if preemptor is None else preemptor.depth + 1,
            waits_for=waits_for,
        )
        removed = RemovedPod(eviction)
        self._removed_pods.add(removed)
        recreated_pod = self.trial.evict(pod)
        self._num_events += 1
        simulated = self._pods.get(pod.uid)
        if simulated is None and recreated_pod is not None:
            simulated = SimulatedPod(recreated_pod, "evicted", len(self._pods))
        if simulated is None:
            return
        simulated.node, simulated.message, simulated.preemption = "", "", None
        simulated.removed, simulated.depth = removed, eviction.depth
        simulated.waits_for = simulated.waits_for or waits_for
        if recreated_pod is not None:
            simulated.pod = recreated_pod
            self._enqueue(simulated)
        else:
            simulated.message, simulated.is_final = "it is evicted and not recreated (no owner)", True


def _own_candidates(result: GroupResult) -> list[tuple[Pod, fwk.Candidate]]:
    if not result.waits_for_preemption:
        return []
    needing = [(member.pod, member.failure.candidate) for member in result.members if member.failure is not None]
    return [(pod, candidate) for pod, candidate in needing if candidate is not None and candidate.victims]
