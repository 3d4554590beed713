"""Scheduler: pops pods from the queue one at a time, runs their scheduling cycle, and starts their binding.

Upstream: pkg/scheduler/scheduler.go, Run; schedule_one.go, ScheduleOne.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.plugins import IN_TREE
from extender.engine.preemption.preemptions import PREEMPTIONS, RunningPreemptions
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.memory import HASH_BYTES
from extender.engine.runtime.plugin_calls import do_long_work
from extender.engine.scheduler.binding_cycle import UnconfirmedBindings, binding_cycle, wake_other_pods
from extender.engine.scheduler.executor import DEFAULT_PREEMPTION, Executor
from extender.engine.scheduler.failure import handle_scheduling_failure
from extender.engine.scheduler.pod_group_cycle import (
    GroupDecision,
    IgnoredAnnotations,
    group_condition,
    pod_group_cycle,
    pop_members,
    why_not_together,
)
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.engine.scheduler.scheduling_cycle import scheduling_cycle
from extender.engine.scheduler.world import AssumedPod, Failure, World
from extender.values import limits
from extender.values.golang.quoting import quoted
from extender.values.klog.logger import Logger
from extender.values.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, WAITING_ON_PREEMPTION
from extender.values.metrics.tracing import CURRENT
from extender.values.objects.grouping import GroupKey, group_of
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)

PODS_IN_A_ROW: Final = 16
"""So many pods get a node before other tasks get a turn. Decisions in a row take a quarter less, as the caches of the
processor hold what they read.
"""


@final
@dataclass(slots=True)
class _Deferral:
    """An attempt whose cycle begins again after a plugin has done its long work."""

    began: float
    has_turn: bool = False
    done: list[LongWork] = field(default_factory=list)
    """Kept until the attempt is over, since the results of plugins are in it."""


@final
class Scheduler:
    """Schedules the pods of its profiles. State: the world, where the next search begins, unconfirmed bindings."""

    def __init__(
        self,
        world: World,
        frameworks: Mapping[str, Framework],
        percentage_of_nodes_to_score: int = 0,
        *,
        preempts_meanwhile: bool = True,
    ) -> None:
        """Evicts victims while other pods are scheduled if it `preempts_meanwhile`: SchedulerAsyncPreemption."""
        self._world = world
        self._frameworks = frameworks
        self._percentage = percentage_of_nodes_to_score
        self._algorithm = SchedulingAlgorithm(world.metrics)
        self._unconfirmed = UnconfirmedBindings(world)
        self._ignored_annotations = IgnoredAnnotations()
        self._is_stopping = False
        self.is_waiting = True
        """True while it waits for a pod, so that no cycle runs."""
        self._quick_profiles = {
            name
            for name, framework in frameworks.items()
            if all(plugin.name in IN_TREE for plugin in framework.plugins.every)
        }
        self._in_a_row = 0
        """The number of pods that got a node, while none was nominated, since other tasks had a turn."""
        # UID -> when the attempt began, of pods for which a plugin has long work to do.
        self._deferred: dict[str, _Deferral] = {}
        self._resuming: set[asyncio.Task[None]] = set()
        self._long_attempts = asyncio.Semaphore(limits.DEVICE_SEARCHES)
        self._preemptions: RunningPreemptions = next(iter(frameworks.values())).shared(PREEMPTIONS, RunningPreemptions)
        self._executor = Executor(world, self._preemptions)
        self._evict_now = None if preempts_meanwhile else self._executor.evict_now

    def stop(self) -> None:
        """Stops popping pods, including those that already wait."""
        self._is_stopping = True
        self._world.queue.close()
        self._world.binds.close()

    async def run(self) -> None:
        """Schedules until the queue is closed, or until `stop`, and completes all decisions."""
        try:
            await self._run()
        finally:
            for extender in self._world.extenders:
                await extender.aclose()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            flush = tasks.create_task(self._world.queue.run(), name="flush of the queue")
            confirm = tasks.create_task(self._unconfirmed.run(), name="unconfirmed bindings")
            while (info := await self._next()) is not None:
                self.is_waiting = False
                before = self._in_a_row
                await self.schedule_one(info, tasks)
                self.is_waiting = True
                if self._in_a_row == before or self._in_a_row >= min(PODS_IN_A_ROW, self._world.binds.room):
                    # Other tasks get a turn, so that a long queue does not keep out changes of the cluster.
                    self._in_a_row = 0
                    await asyncio.sleep(0)
            for task in [*self._resuming]:
                task.cancel()
            flush.cancel()
            confirm.cancel()

    async def _next(self) -> QueuedPodInfo | None:
        if not self._is_stopping:
            await self._world.binds.below_limit()
        return None if self._is_stopping else await self._world.queue.pop()

    async def schedule_one(self, info: QueuedPodInfo, tasks: asyncio.TaskGroup) -> None:
        """Runs one attempt. An exception in it or in reporting it concerns this pod alone, which is requeued."""
        deferral = self._deferred.pop(info.pod.uid, None)
        # The event loop's clock stands still while a cycle computes.
        began = perf_counter() if deferral is None else deferral.began
        trace = None
        if self._world.tracer is not None:
            trace = self._world.tracer.attempt(began)
            CURRENT.set(trace)  # for this attempt, and for the tasks that it begins
        try:
            # A pod that was resumed may have been deleted or bound meanwhile.
            if deferral is None or self._is_still_pending(info):
                key = group_of(info.pod) if self._world.has_groups else None
                if key is None:
                    await self._attempt(info, began, tasks)
                else:
                    await self._attempt_group(info, key, began, tasks)
        except LongWork as long:
            deferral = deferral or _Deferral(began)
            deferral.done.append(long.with_traceback(None))
            task = tasks.create_task(self._resume_after(long, deferral, info), name=f"long work for {info.key}")
            self._resuming.add(task)
            task.add_done_callback(self._resuming.discard)
            return
        except Exception as exc:
            self._requeue_after_error(info, exc)
        if trace is not None:
            trace.end()
        if deferral is not None:
            self._end(deferral)

    def _requeue_after_error(self, info: QueuedPodInfo, exc: Exception) -> None:
        """Puts a pod back after a failure to handle the result of its attempt."""
        pod, world = info.pod, self._world
        _LOG.exception(exc, "Error occurred", pod=pod)
        world.cluster.forget(pod.uid)
        self._preemptions.end(pod.uid)
        if self._is_still_pending(info):
            world.queue.add_nominated_pod(info.pod, None)
            world.queue.requeue_failed(info)

    def _is_still_pending(self, info: QueuedPodInfo) -> bool:
        """Updates a pod in flight; ends the attempt of one that is gone or bound, and returns False."""
        pod, current = info.pod, self._world.pod_by_key(info.key)
        if current is None or current.uid != pod.uid or current.spec.node_name:
            self._world.queue.done(pod.uid)
            return False
        info.pod = current
        return True

    async def _resume_after(self, long: LongWork, deferral: _Deferral, info: QueuedPodInfo) -> None:
        """Schedules other pods while a plugin works on this one, whose cycle begins again afterwards."""
        try:
            if not deferral.has_turn:
                await self._long_attempts.acquire()
                deferral.has_turn = True
            await do_long_work(long)
            if self._is_still_pending(info):
                self._deferred[info.pod.uid] = deferral
                self._world.queue.resume(info)
                return
        except asyncio.CancelledError:
            # The scheduler stops; nothing was decided about the pod.
            self._world.queue.resume(info)
            raise
        except Exception as exc:
            self._requeue_after_error(info, exc)
        self._end(deferral)

    def _end(self, deferral: _Deferral) -> None:
        if deferral.has_turn:
            self._long_attempts.release()

    async def _attempt(self, info: QueuedPodInfo, began: float, tasks: asyncio.TaskGroup) -> None:
        pod = info.pod
        _LOG.info(4, "About to try and schedule pod", pod=pod)
        framework = self._frameworks.get(pod.scheduler_name)
        if framework is None:
            _LOG.error(f"profile not found for scheduler name {quoted(pod.scheduler_name)}", "Error occurred", pod=pod)
        if framework is None or self._must_be_skipped(framework, pod):
            self._world.queue.done(pod.uid)
            return
        _LOG.info(3, "Attempting to schedule pod", pod=pod)
        try:
            outcome: AssumedPod | Failure = await scheduling_cycle(
                self._world, self._algorithm, framework, pod, self._percentage, self._evict_now
            )
        except LongWork:
            raise
        except Exception as exc:
            _LOG.exception(exc, "Error selecting node for pod", pod=pod)
            self._world.cluster.forget(pod.uid)
            outcome = Failure(fwk.error(str(exc) or type(exc).__name__))
        self._settle(framework, info, outcome, began, tasks)
        # Preemption, a search for devices, a plugin from outside the tree, or a decision about a pod with a long spec
        # may take long. A nominated pod waits for victims: tried before these were seen to go, it would evict others.
        if (
            isinstance(outcome, AssumedPod)
            and pod.scheduler_name in self._quick_profiles
            and not pod.spec.resource_claims
            and not outcome.cycle.nominations.by_node
            and len(outcome.cycle.pod_signature) != HASH_BYTES
        ):
            self._in_a_row += 1

    async def _attempt_group(self, first: QueuedPodInfo, key: GroupKey, began: float, tasks: asyncio.TaskGroup) -> None:
        world, infos = self._world, pop_members(self._world, first, key)
        try:
            wrong, ready = why_not_together([info.pod for info in infos]), []
            for info in infos:
                framework = self._frameworks[info.pod.scheduler_name]
                if wrong:
                    self._settle(framework, info, Failure(fwk.error(wrong)), began, tasks)
                elif self._must_be_skipped(framework, info.pod):
                    world.queue.done(info.pod.uid)
                else:
                    ready.append(info)
            if not ready:
                return
            framework, number = self._frameworks[ready[0].pod.scheduler_name], len(ready)
            _LOG.info(3, "Attempting to schedule pod group", podGroup="/".join(key), pods=number)
            decision = await pod_group_cycle(world, self._algorithm, framework, key, ready, self._percentage)
            self._settle_group(framework, key, decision, began, tasks)
        except Exception as exc:
            for info in infos:
                self._requeue_after_error(info, exc)

    def _settle_group(
        self, framework: Framework, key: GroupKey, decision: GroupDecision, began: float, tasks: asyncio.TaskGroup
    ) -> None:
        result, profile, world = decision.result, framework.profile_name, self._world
        prepared = None
        if decision.victims is not None and decision.group is not None:
            pods = [info.pod for info, _ in decision.members]
            prepared = self._executor.prepare(
                framework, pods[0], decision.victims, DEFAULT_PREEMPTION, decision.group, pods
            )
            if not all(victim.is_terminating for victim in decision.victims.victims):
                world.reporter.group_preempts(pods[0], decision.victims, result.without_policies)
        nominations = [
            self._settle(framework, info, outcome, began, tasks, waits=prepared is not None)
            for info, outcome in decision.members
        ]
        word = WAITING_ON_PREEMPTION if result.waits_for_preemption else UNSCHEDULABLE
        word = SCHEDULED if result.status.is_success else word if result.status.is_rejected else ERROR
        world.metrics.groups.attempted(word, profile, perf_counter() - began)
        if decision.group is not None:
            self._ignored_annotations.tell(framework, world, decision.group)
        condition = group_condition(world, key, result.status)
        if condition is not None:
            world.dispatcher.submit(condition)
        if prepared is not None:
            calls = [call for call in nominations if call is not None]
            tasks.create_task(self._executor.execute_for_group(prepared, calls), name=f"preemption for {'/'.join(key)}")

    def _settle(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        outcome: AssumedPod | Failure,
        began: float,
        tasks: asyncio.TaskGroup,
        *,
        waits: bool = False,
    ) -> fwk.PatchPodStatus | None:
        """Begins the binding of a pod that has a node, or puts back one that has none.

        With `waits` the write of the pod's condition is left to the caller, who gets it.
        """
        reporter, profile, seconds = self._world.reporter, framework.profile_name, perf_counter() - began
        if isinstance(outcome, AssumedPod):
            reporter.decided(info, profile, outcome.node, outcome.evaluated_nodes, outcome.feasible_nodes, seconds)
            trace = CURRENT.get()
            if trace is not None:
                trace.goes_on()
            tasks.create_task(self._bind(framework, info, outcome, began))
        else:
            reporter.failed(info, profile, outcome.status, seconds)
            self._count_failure(framework, outcome, began)
            if waits:
                return handle_scheduling_failure(self._world, framework, info, outcome)
            self._fail(framework, info, outcome, tasks)
        return None

    def _must_be_skipped(self, framework: Framework, pod: Pod) -> bool:
        """Returns whether the pod is terminating or already assumed (skipPodSchedule)."""
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            framework.record_event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            _LOG.info(3, "Skip schedule deleting pod", pod=pod)
            return True
        return self._world.cluster.cache.is_assumed(pod)

    async def _bind(self, framework: Framework, info: QueuedPodInfo, assumed: AssumedPod, began: float) -> None:
        # Read now: an event may requeue the pod while it is being bound, which changes them.
        attempts, first_attempt = info.attempts, info.initial_attempt_timestamp
        was_flushed = info.was_flushed_from_unschedulable
        running = self._world.metrics.running
        running["binding"] += 1
        try:
            failure = await binding_cycle(self._world, framework, assumed)
            if failure is not None:
                self._not_bound(framework, info, assumed, failure, began)
                return
        except Exception as exc:
            self._requeue_after_error(info, exc)
            return
        finally:
            running["binding"] -= 1
            trace = CURRENT.get()
            if trace is not None:
                trace.end()
        self._unconfirmed.add(assumed.pod, assumed.node, assumed.cycle.find(fwk.BINDING_ANNOTATIONS))
        metrics, now = self._world.metrics, asyncio.get_running_loop().time()  # the queue's clock
        metrics.attempted(SCHEDULED, framework.profile_name, perf_counter() - began)
        metrics.scheduled(attempts, None if first_attempt is None else now - first_attempt, was_flushed=was_flushed)

    def _not_bound(
        self, framework: Framework, info: QueuedPodInfo, assumed: AssumedPod, failure: Failure, began: float
    ) -> None:
        self._world.reporter.binding_failed(assumed.pod, failure.status)
        self._count_failure(framework, failure, began)
        call = handle_scheduling_failure(self._world, framework, info, failure)
        if call is not None:
            self._world.dispatcher.submit(call)
        if failure.status.is_rejected:
            wake_other_pods(self._world, assumed.pod)

    def _count_failure(self, framework: Framework, failure: Failure, began: float) -> None:
        result = UNSCHEDULABLE if failure.status.is_rejected else ERROR
        self._world.metrics.attempted(result, framework.profile_name, perf_counter() - began)

    def _fail(self, framework: Framework, info: QueuedPodInfo, failure: Failure, tasks: asyncio.TaskGroup) -> None:
        pod, prepared = info.pod, None
        if failure.candidate is not None:
            prepared = self._executor.prepare(framework, pod, failure.candidate, failure.preempted_by)
        call = handle_scheduling_failure(self._world, framework, info, failure)
        if prepared is not None:
            tasks.create_task(self._executor.execute(prepared, call), name=f"preemption for {pod.key}")
        elif call is not None:
            self._world.dispatcher.submit(call)
