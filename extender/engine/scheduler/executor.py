"""Executor: evicts the victims of the candidate that PostFilter chose, the last one last.

Unlike upstream, the nomination is written before the first victim is evicted, and a victim is deleted by its UID: a
crash in between loses neither the nomination nor another pod that has a victim's name by then.

Upstream: pkg/scheduler/framework/preemption/executor.go.
"""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Final, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.framework.pod_calls import PodCondition
from extender.engine.preemption.preemptions import RunningPreemptions
from extender.engine.runtime.framework import Framework
from extender.engine.scheduler.world import World
from extender.values.klog.logger import Logger
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod

MESSAGE: Final = "preempting to accommodate a higher priority"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
"""The one plugin that preempts for groups."""
IN_MEMORY: Final = " (in kube-scheduler memory)."

_LOG: Final = Logger(__name__)


@final
class PreparedCandidate(msgspec.Struct, frozen=True):
    """A candidate whose victims are to be evicted for a preemptor."""

    framework: Framework
    preemptor: Pod
    """The pod; for a group one of its pods."""
    candidate: fwk.Candidate
    plugin: str
    """The PostFilter plugin that chose the candidate."""
    lower_nominees: tuple[Pod, ...]
    """Nominees of lower priority, whose nomination is cleared, so that they look for another node."""
    group: PodGroup | None = None
    """The group for which the victims have to go; None for a pod by itself."""
    members: tuple[Pod, ...] = ()
    """The pods of the group that wait for it."""

    @property
    def uid(self) -> str:
        return self.preemptor.uid if self.group is None else self.group.uid

    @property
    def kind(self) -> str:
        """The kind of the preemptor in messages."""
        return "pod" if self.group is None else "podgroup"


@final
class Executor:
    """Evicts victims while the preemptor waits in the queue."""

    def __init__(self, world: World, preemptions: RunningPreemptions) -> None:
        self._world = world
        self._preemptions = preemptions

    def prepare(
        self,
        framework: Framework,
        preemptor: Pod,
        candidate: fwk.Candidate,
        plugin: str,
        group: PodGroup | None = None,
        members: Sequence[Pod] = (),
    ) -> PreparedCandidate:
        """Holds the preemptor, or the members of its group, back until `execute` or `execute_for_group`.

        Call it before they return to the queue.
        """
        nominees = self._lower_nominees(preemptor, candidate.node) if group is None else ()
        prepared = PreparedCandidate(framework, preemptor, candidate, plugin, nominees, group, tuple(members))
        if _to_evict(candidate):
            self._preemptions.begin(prepared.uid)
            self._world.metrics.victims.observe(len(candidate.victims))
        return prepared

    async def execute_for_group(self, prepared: PreparedCandidate, nominations: Sequence[fwk.PatchPodStatus]) -> None:
        """Writes the members' nominations, evicts the victims, and requeues the members. Failures are logged."""
        world, is_done, began = self._world, False, perf_counter()
        try:
            for nomination in nominations:
                world.dispatcher.submit(nomination)
            with world.metrics.doing(prepared.plugin):
                await self.evict_victims(prepared)
            is_done = True
        except Exception as exc:
            _log_failure(exc, prepared)
        finally:
            self._preemptions.end(prepared.uid)
        world.reporter.preemption_ended(prepared.preemptor, done=is_done)
        self._finish(prepared, perf_counter() - began, is_done=is_done)

    def _lower_nominees(self, preemptor: Pod, node: str) -> tuple[Pod, ...]:
        nominees = self._world.queue.nominated_pods().get(node, [])
        # The nominator may hold a pod with its status before the last attempt; the patch must start from what the API
        # server has.
        lower = (nominee for nominee in nominees if nominee.priority < preemptor.priority)
        pairs = ((nominee, self._world.pod_by_key(nominee.key)) for nominee in lower)
        return tuple(now for nominee, now in pairs if now is not None and now.uid == nominee.uid)

    async def evict_now(self, framework: Framework, preemptor: Pod, candidate: fwk.Candidate, plugin: str) -> None:
        """Evicts the victims, all at the same time, and then clears lower nominations; the preemptor has none yet.

        Raises CallError if a victim could not be evicted; the others may be.

        Upstream: prepareCandidate, which runs where the feature gate SchedulerAsyncPreemption is off.
        """
        world, is_done = self._world, False
        world.metrics.victims.observe(len(candidate.victims))
        prepared = PreparedCandidate(
            framework, preemptor, candidate, plugin, self._lower_nominees(preemptor, candidate.node)
        )
        try:
            with world.metrics.doing(plugin):
                await self._evict_all(prepared, _to_evict(candidate))
            is_done = True
        finally:
            world.reporter.preemption_ended(preemptor, done=is_done)
        for nominee in prepared.lower_nominees:
            world.dispatcher.submit(fwk.PatchPodStatus.of(nominee, nominated_node_name=""))

    async def _evict_all(self, prepared: PreparedCandidate, victims: Sequence[Pod]) -> None:
        """Evicts victims at the same time. A failure does not stop the others, and is raised at the end."""
        for failure in await asyncio.gather(
            *(self._evict(prepared, victim) for victim in victims), return_exceptions=True
        ):
            if failure is not None:
                raise failure

    async def execute(self, prepared: PreparedCandidate, nomination: fwk.PatchPodStatus | None) -> None:
        """Writes the nomination, evicts the victims, and requeues the preemptor. Failures are logged.

        Without a nomination the preemptor is gone or needs none, and no pod is evicted.
        """
        world, preemptor, is_done, began = self._world, prepared.preemptor, False, perf_counter()
        try:
            current = world.pod_by_key(preemptor.key)
            if nomination is None or current is None or current.spec.node_name:
                return
            await world.dispatcher.perform(nomination)
            with world.metrics.doing(prepared.plugin):
                await self.evict_victims(prepared)
            is_done = True
        except Exception as exc:
            _log_failure(exc, prepared)
        finally:
            self._preemptions.end(preemptor.uid)
            world.reporter.preemption_ended(preemptor, done=is_done)
        self._finish(prepared, perf_counter() - began, is_done=is_done)

    def _finish(self, prepared: PreparedCandidate, seconds: float, *, is_done: bool) -> None:
        """Counts a preemption that is over, and requeues the preemptor, or the members of its group."""
        try:
            if _to_evict(prepared.candidate):
                self._world.metrics.preemptions.observe(seconds, "success" if is_done else "error")
            for pod in prepared.members or (prepared.preemptor,):
                self._requeue(prepared, pod, is_done=is_done)
        except Exception as exc:
            _log_failure(exc, prepared)

    async def evict_victims(self, prepared: PreparedCandidate) -> None:
        """Clears lower nominations, and evicts the victims that are not leaving already: all but the last at the same
        time, then the last.

        The preemptor may be tried again as soon as the last victim is terminating, so that must not happen before the
        others are. Raises CallError if one could not be evicted; unless it was the last, that one is left alone.

        Upstream: prepareCandidate, prepareCandidateAsync.
        """
        preemptor, node, victims = prepared.preemptor, prepared.candidate.node, prepared.candidate.victims
        to_evict = _to_evict(prepared.candidate)
        for victim in victims:
            if victim.is_terminating:
                about = {"preemptor": preemptor, "node": node, "victim": victim}
                _LOG.info(2, "Victim Pod is already being deleted, skipping the API call for it", **about)
        if not to_evict:
            # Pods of lower priority keep their nominations, so that they evict nobody elsewhere before the room is
            # taken. `evict_now` clears them nevertheless.
            return
        numbers = {"numVictims": len(victims), "numVictimsToDelete": len(to_evict)}
        _LOG.info(2, "Start the preemption asynchronously", preemptor=preemptor, node=node, **numbers)
        for nominee in prepared.lower_nominees:
            self._world.dispatcher.submit(fwk.PatchPodStatus.of(nominee, nominated_node_name=""))
        result = "error"
        *first_victims, last = to_evict
        try:
            await self._evict_all(prepared, first_victims)
            self._preemptions.evict_last(prepared.uid, last)
            await self._evict(prepared, last)
            result = "success"
        finally:
            self._preemptions.end(prepared.uid)
            _LOG.info(2, "Async Preemption finished completely", preemptor=preemptor, node=node, result=result)

    async def _evict(self, prepared: PreparedCandidate, victim: Pod) -> None:
        """Cancels the victim's binding if it is not bound yet, else deletes it (PreemptPod)."""
        preemptor, node = prepared.preemptor, prepared.candidate.node
        note = f"Preempted by {prepared.kind} {prepared.uid} on node {node}"
        waiting = self._world.waiting_pods.get(victim.uid)
        if (
            waiting is not None and waiting.preempt(prepared.plugin, "preempted")
        ) or self._world.pods_in_pre_bind.cancel(victim.uid, f"preempted by {prepared.plugin}"):
            _LOG.info(2, "Preemptor pod preempted a waiting pod", preemptor=preemptor, waitingPod=victim, node=node)
            _record_event(prepared, victim, note + IN_MEMORY)
            return
        message = f"{preemptor.scheduler_name}: {MESSAGE} {prepared.kind}"
        condition = PodCondition(
            "DisruptionTarget", "True", "PreemptionByScheduler", message, self._world.judged_generation(victim)
        )
        try:
            await self._world.dispatcher.perform(fwk.PatchPodStatus.of(victim, condition))
            await self._world.dispatcher.perform(fwk.DeletePod.of(victim))
        except (fwk.CallNotFound, fwk.CallConflict):
            # Another pod that has the victim's name by now is left alone.
            _LOG.info(2, "Victim Pod is already deleted", preemptor=preemptor, victim=victim, node=node)
            return
        except fwk.CallMerged:
            _LOG.info(2, "Victim Pod is evicted for another pod, too", preemptor=preemptor, victim=victim, node=node)
            return
        except fwk.CallError as exc:
            _LOG.error(exc, "Tried to preempted pod", pod=victim, preemptor=preemptor)
            raise
        _LOG.info(2, "Preemptor Pod preempted victim Pod", preemptor=preemptor, victim=victim, node=node)
        _record_event(prepared, victim, note)

    def _requeue(self, prepared: PreparedCandidate, preemptor: Pod, *, is_done: bool) -> None:
        """Requeues the preemptor, a pod or a member of the group, unless an event will do so."""
        world = self._world
        current = world.pod_by_key(preemptor.key)
        if current is None or current.uid != preemptor.uid:
            return
        if not is_done:
            # Upstream activates it at once; what the API server has just refused it may well refuse again.
            world.queue.retry_after_failure(current)
            return
        info, last = world.queue.get(current.key), _to_evict(prepared.candidate)[-1:]
        if info is not None and info.is_gated and all(world.cluster.cache.pod(victim.uid) is None for victim in last):
            # The event of its deletion came while the preemptor was held back. Upstream waits for another one.
            world.queue.activate([current])


def _to_evict(candidate: fwk.Candidate) -> list[Pod]:
    return [victim for victim in candidate.victims if not victim.is_terminating]


def _record_event(prepared: PreparedCandidate, victim: Pod, note: str) -> None:
    prepared.framework.record_event(victim, "Normal", "Preempted", "Preempting", note)


def _log_failure(exc: Exception, prepared: PreparedCandidate) -> None:
    about = {"preemptor": prepared.preemptor, "node": prepared.candidate.node}
    if isinstance(exc, fwk.CallError):
        _LOG.error(exc, "Error occurred during async preemption", **about)
    else:
        _LOG.exception(exc, "Error occurred during async preemption", **about)
