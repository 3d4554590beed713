"""The world that the cycles of a scheduler share, and the values that they pass on."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.reporter import NO_REPORTER, Reporters
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.waiting_pods import HeldPod, WaitingPodsMap
from extender.engine.scheduler.extenders import SchedulingExtender
from extender.values import limits
from extender.values.klog.logger import Logger
from extender.values.metrics import Metrics
from extender.values.metrics.tracing import Tracer
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class PodsInPreBind:
    """The pods by UID whose PreBind is running and can be cancelled (runtime/pods_in_prebind_map.go)."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[fwk.Status]] = {}
        self._why: dict[str, str] = {}

    async def run(self, uid: str, pre_bind: asyncio.Task[fwk.Status]) -> fwk.Status:
        """Returns the status of the PreBind task; Error if it was cancelled."""
        self._tasks[uid] = pre_bind
        try:
            await asyncio.wait([pre_bind])
        finally:
            del self._tasks[uid]
            pre_bind.cancel()
        why = self._why.pop(uid, None)
        if why is not None:
            return fwk.error(why)
        # A plugin may be cancelled by something it waits for, which is an error of the plugin and does not cancel this
        # task.
        return fwk.error("context canceled") if pre_bind.cancelled() else pre_bind.result()

    def cancel(self, uid: str, why: str) -> bool:
        """Cancels the pod's PreBind; False if it is not running."""
        task = self._tasks.get(uid)
        if task is None or task.done():
            return False
        self._why[uid] = why
        return task.cancel()


@final
class BindsInFlight:
    """Counts the bindings that are sent and not answered. At the limit, no further pod is popped.

    Without a limit, as many bindings as the cluster has room for would wait for an absent API server, each with a task
    and a connection. Pods that wait at Permit or for their volumes do not count, because they may wait for other pods.
    Upstream has a goroutine for each.
    """

    def __init__(self, limit: int = limits.BINDS_IN_FLIGHT) -> None:
        self._limit = limit
        self._count = 0
        self._below_limit = asyncio.Event()
        self._below_limit.set()

    def __enter__(self) -> None:
        self._count += 1
        if self._count >= self._limit:
            self._below_limit.clear()

    def __exit__(self, *exc: object) -> None:
        self._count -= 1
        if self._count < self._limit:
            self._below_limit.set()

    @property
    def room(self) -> int:
        """The number of further bindings that may be sent."""
        return self._limit - self._count

    def close(self) -> None:
        """Releases the callers of `below_limit`."""
        self._below_limit.set()

    async def below_limit(self) -> None:
        """Returns once another binding may be sent."""
        await self._below_limit.wait()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The state that cycles change."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting_pods: WaitingPodsMap
    pods_in_pre_bind: PodsInPreBind
    dispatcher: fwk.Dispatcher
    pod_by_key: Callable[[str], Pod | None]
    """namespace/name -> the pod as the API server has it."""
    extenders: tuple[SchedulingExtender, ...] = ()
    fence: Callable[[], str | None] = lambda: None
    """Returns why nothing may be written at the moment; None if writing is allowed. For writes that bypass the
    dispatcher, which checks by itself.
    """
    metrics: Metrics = field(default_factory=Metrics)
    reporter: Reporters = NO_REPORTER
    """They receive the decisions."""
    binds: BindsInFlight = field(default_factory=BindsInFlight)
    nominates_before_binding: bool = True
    """True to nominate the chosen node if binding may take long: NominatedNodeNameForExpectation."""
    tracks_generations: bool = True
    """True to write the judged generation of the pod into conditions: PodObservedGenerationTracking."""
    tracer: Tracer | None = None
    """Traces attempts; None if nothing is traced."""
    has_groups: bool = False
    """True to schedule pod groups as groups: GenericWorkload."""

    def judged_generation(self, pod: Pod) -> int:
        """Returns the observedGeneration for a condition of the pod; 0 for none."""
        return pod.metadata.generation if self.tracks_generations else 0


@final
class AssumedPod(msgspec.Struct, frozen=True):
    """A pod assumed on a node, reserved, and permitted or waiting at Permit (assumedPodInfo and ScheduleResult)."""

    pod: Pod
    """The pod with its node."""
    cycle: Cycle
    waiting: HeldPod | None = None
    evaluated_nodes: int = 0
    feasible_nodes: int = 0

    @property
    def node(self) -> str:
        return self.pod.spec.node_name


@final
class Failure(msgspec.Struct, frozen=True):
    """A failed attempt, with the content of its event and condition."""

    status: fwk.Status
    """The message is that of the condition and the event. They are not written for Skip and Wait."""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominate: str | None = ""
    """The node to nominate the pod to, "" to clear its nomination, None to leave it as it is."""
    candidate: fwk.Candidate | None = None
    """The node to make free for the pod, with the pods to evict from it."""
    preempted_by: str = ""
    """The PostFilter plugin that chose the candidate."""
    retry_after: float = math.inf
    """Seconds until another attempt is worth while without any event."""


def refused_on_one_node(status: fwk.Status) -> Failure:
    """Returns the failure of a pod whose chosen node a plugin refused. Upstream: FitError with one node."""
    diagnosis = fwk.Diagnosis(fwk.NodeStatuses({"": status}))
    message = fwk.fit_error_message(1, diagnosis)
    plugins = frozenset((status.plugin,)) if status.plugin else frozenset()
    return Failure(fwk.unschedulable(message), plugins, plugins if status.code is fwk.Code.PENDING else frozenset())


def activate_pods(world: World, cycle: Cycle) -> None:
    """Activates the pods that plugins wrote into `PODS_TO_ACTIVATE`, and clears it."""
    pods = cycle.find(fwk.PODS_TO_ACTIVATE)
    if pods:
        try:
            world.queue.activate(list(pods.values()))
        except Exception as exc:
            # What plugins wrote there must not fail the pod of this cycle.
            _LOG.exception(exc, "Error activating pods", pods=list(pods))
        pods.clear()


def record_failed_scheduling(framework: Framework, pod: Pod, message: str) -> None:
    """Records the event of a failed attempt, cut between characters if too long (truncateMessage)."""
    encoded, max_bytes = message.encode(), limits.EVENT_NOTE_BYTES
    note = message if len(encoded) <= max_bytes else encoded[: max_bytes - 4].decode(errors="ignore") + " ..."
    framework.record_event(pod, "Warning", "FailedScheduling", "Scheduling", note)
