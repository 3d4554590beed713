"""Scheduler: takes pods from the queue, one at a time, decides, and lets the bindings run.

Upstream: pkg/scheduler/scheduler.go, Run; schedule_one.go, ScheduleOne (v1.36.2).
"""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Final, final

from extender import framework as fwk
from extender.golang.quoting import quoted
from extender.klog.logger import Logger
from extender.metrics import ERROR, SCHEDULED, UNSCHEDULABLE
from extender.objects.pod import Pod
from extender.preemption.preemptions import PREEMPTIONS, Preemptions
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.runtime.framework import Framework
from extender.scheduler.binding_cycle import UnconfirmedBindings, binding_cycle, free_its_room_for_others
from extender.scheduler.executor import Executor
from extender.scheduler.failure import handle_scheduling_failure
from extender.scheduler.schedule_pod import SchedulingAlgorithm
from extender.scheduler.scheduling_cycle import scheduling_cycle
from extender.scheduler.world import Decided, Failure, World

_LOG: Final = Logger(__name__)


@final
class Scheduler:
    """Decides for the pods of its profiles. State: the world's, where the next sampled search begins, bindings not seen yet."""

    def __init__(self, world: World, frameworks: Mapping[str, Framework], percentage_of_nodes_to_score: int = 0) -> None:
        """Nothing happens before `run`."""
        self._world = world
        self._frameworks = frameworks
        self._percentage = percentage_of_nodes_to_score
        self._algorithm = SchedulingAlgorithm(world.metrics)
        self._unconfirmed = UnconfirmedBindings(world)
        self._is_stopping = False
        self._preemptions: Preemptions = next(iter(frameworks.values())).shared(PREEMPTIONS, Preemptions)
        self._executor = Executor(world, self._preemptions)

    def stop(self) -> None:
        """Take up no more pods, those that wait included."""
        self._is_stopping = True
        self._world.queue.close()
        self._world.binds.close()

    async def run(self) -> None:
        """Schedule until the queue is closed, or until `stop`; what has been decided by then is done before this returns."""
        try:
            await self._run()
        finally:
            for extender in self._world.extenders:
                await extender.aclose()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as acting:
            flushing = acting.create_task(self._world.queue.run(), name="flush of the queue")
            confirming = acting.create_task(self._unconfirmed.run(), name="unconfirmed bindings")
            while (info := await self._next()) is not None:
                await self.schedule_one(info, acting)
                # Let whoever waits for the network have a turn: a long queue must not keep the cluster's news out.
                await asyncio.sleep(0)
            flushing.cancel()
            confirming.cancel()

    async def _next(self) -> QueuedPodInfo | None:
        """The pod to be tried next; None if no more are taken up."""
        if not self._is_stopping:
            await self._world.binds.are_few()
        return None if self._is_stopping else await self._world.queue.pop()

    async def schedule_one(self, info: QueuedPodInfo, acting: asyncio.TaskGroup) -> None:
        """One attempt. Whatever goes wrong in it, or in telling of it, is this pod's affair alone, and the pod is not lost."""
        try:
            await self._attempt(info, acting)
        except Exception as exc:
            self._take_back(info, exc)

    def _take_back(self, info: QueuedPodInfo, exc: Exception) -> None:
        """What was to be done about an attempt has gone wrong itself."""
        pod, world = info.pod, self._world
        _LOG.exception(exc, "Error occurred", pod=pod)
        world.cluster.forget(pod.uid)
        self._preemptions.end(pod.uid)
        known = world.pod_by_key(pod.key)
        if known is None or known.uid != pod.uid or known.spec.node_name:
            world.queue.done(pod.uid)
            return
        info.pod = known
        world.queue.add_nominated_pod(known, None)
        world.queue.take_back(info)

    async def _attempt(self, info: QueuedPodInfo, acting: asyncio.TaskGroup) -> None:
        pod = info.pod
        _LOG.info(4, "About to try and schedule pod", pod=pod)
        framework = self._frameworks.get(pod.scheduler_name)
        if framework is None:
            _LOG.error(f"profile not found for scheduler name {quoted(pod.scheduler_name)}", "Error occurred", pod=pod)
        if framework is None or self._must_be_skipped(framework, pod):
            self._world.queue.done(pod.uid)
            return
        _LOG.info(3, "Attempting to schedule pod", pod=pod)
        began = perf_counter()  # the loop's own clock stands still while something is worked out
        try:
            outcome = await scheduling_cycle(self._world, self._algorithm, framework, pod, self._percentage)
        except Exception as exc:
            _LOG.exception(exc, "Error selecting node for pod", pod=pod)
            self._world.cluster.forget(pod.uid)
            outcome = Failure(fwk.error(str(exc) or type(exc).__name__))
        reporter, profile, seconds = self._world.reporter, framework.profile_name, perf_counter() - began
        if isinstance(outcome, Decided):
            reporter.decided(info, profile, outcome.node, outcome.evaluated_nodes, outcome.feasible_nodes, seconds)
            acting.create_task(self._bind(framework, info, outcome, began), name=f"binding of {pod.key}")
        else:
            reporter.failed(info, profile, outcome.status, seconds)
            self._count_failure(framework, outcome, began)
            self._fail(framework, info, outcome, acting)

    def _must_be_skipped(self, framework: Framework, pod: Pod) -> bool:
        """Upstream: skipPodSchedule."""
        if pod.is_terminating:
            framework.record_event(pod, "Warning", "FailedScheduling", "Scheduling", f"skip schedule deleting pod: {pod.key}")
            _LOG.info(3, "Skip schedule deleting pod", pod=pod)
            return True
        return self._world.cluster.cache.is_assumed(pod)

    async def _bind(self, framework: Framework, info: QueuedPodInfo, decided: Decided, began: float) -> None:
        # As they are now: an event may bring the pod back to the queue while it is being bound.
        attempts, first_waited, was_flushed = info.attempts, info.initial_attempt_timestamp, info.was_flushed_from_unschedulable
        running = self._world.metrics.running
        running["binding"] += 1
        try:
            failure = await binding_cycle(self._world, framework, decided)
            if failure is not None:
                self._not_bound(framework, info, decided, failure, began)
                return
        except Exception as exc:
            self._take_back(info, exc)
            return
        finally:
            running["binding"] -= 1
        self._unconfirmed.add(decided.pod)
        metrics, now = self._world.metrics, asyncio.get_running_loop().time()  # the queue's clock
        metrics.attempted(SCHEDULED, framework.profile_name, perf_counter() - began)
        metrics.scheduled(attempts, None if first_waited is None else now - first_waited, was_flushed=was_flushed)

    def _not_bound(self, framework: Framework, info: QueuedPodInfo, decided: Decided, failure: Failure, began: float) -> None:
        self._world.reporter.not_bound(decided.pod, failure.status)
        self._count_failure(framework, failure, began)
        call = handle_scheduling_failure(self._world, framework, info, failure)
        if call is not None:
            self._world.dispatcher.submit(call)
        if failure.status.is_rejected:
            free_its_room_for_others(self._world, decided.pod)

    def _count_failure(self, framework: Framework, failure: Failure, began: float) -> None:
        result = UNSCHEDULABLE if failure.status.is_rejected else ERROR
        self._world.metrics.attempted(result, framework.profile_name, perf_counter() - began)

    def _fail(self, framework: Framework, info: QueuedPodInfo, failure: Failure, acting: asyncio.TaskGroup) -> None:
        pod, prepared = info.pod, None
        if failure.candidate is not None:
            prepared = self._executor.prepare(framework, pod, failure.candidate, failure.preempted_by)
        call = handle_scheduling_failure(self._world, framework, info, failure)
        if prepared is not None:
            acting.create_task(self._executor.execute(prepared, call), name=f"preemption for {pod.key}")
        elif call is not None:
            self._world.dispatcher.submit(call)
