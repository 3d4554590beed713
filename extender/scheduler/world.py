"""What the cycles of a scheduler work on, and the values they hand on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from extender import framework as fwk
from extender.cache.cluster import Cluster
from extender.http_extender import HTTPExtender
from extender.klog.logger import Logger
from extender.metrics import Metrics
from extender.objects.pod import Pod
from extender.queue.scheduling_queue import SchedulingQueue
from extender.records.reporter import NO_REPORTER, Guarded
from extender.runtime.cycle import Cycle
from extender.runtime.framework import Framework
from extender.runtime.waiting_pods import HeldPod, WaitingPodsMap

_LOG: Final = Logger(__name__)


@final
class PodsInPreBind:
    """Pods whose PreBind is under way, by UID: it can still be called off. Upstream: runtime/pods_in_prebind_map.go (v1.36.2)."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[fwk.Status]] = {}
        self._why: dict[str, str] = {}

    async def run(self, uid: str, pre_bind: asyncio.Task[fwk.Status]) -> fwk.Status:
        """What PreBind says; Error, if it was called off."""
        self._tasks[uid] = pre_bind
        try:
            await asyncio.wait([pre_bind])
        finally:
            del self._tasks[uid]
            pre_bind.cancel()
        why = self._why.pop(uid, None)
        if why is not None:
            return fwk.error(why)
        # A plugin may be cancelled by what it waits for, which is no reason for us to stop.
        return fwk.error("context canceled") if pre_bind.cancelled() else pre_bind.result()

    def cancel(self, uid: str, why: str) -> bool:
        """Call it off; False if it is not under way."""
        task = self._tasks.get(uid)
        if task is None or task.done():
            return False
        self._why[uid] = why
        return task.cancel()


MOST_BINDS: Final = 1000
"""Bindings that may be asked for and not be answered."""


@final
class BindsUnderWay:
    """How many bindings are asked for and not answered. While they are too many, nobody else is decided about.

    Otherwise an API server that is away would be asked for as many as the cluster has room for, each with a task and a connection to be.
    Pods that wait at Permit or for their volumes do not count: others may have to come first. Upstream: a goroutine for each.
    """

    def __init__(self, most: int = MOST_BINDS) -> None:
        self._most = most
        self._count = 0
        self._are_few = asyncio.Event()
        self._are_few.set()

    def __enter__(self) -> None:
        self._count += 1
        if self._count >= self._most:
            self._are_few.clear()

    def __exit__(self, *exc: object) -> None:
        self._count -= 1
        if self._count < self._most:
            self._are_few.set()

    def close(self) -> None:
        """Nobody is to wait any more."""
        self._are_few.set()

    async def are_few(self) -> None:
        """Returns when another one may be asked for."""
        await self._are_few.wait()


@final
@dataclass(frozen=True, slots=True)
class World:
    """All that cycles change."""

    cluster: Cluster
    queue: SchedulingQueue
    waiting_pods: WaitingPodsMap
    pods_in_pre_bind: PodsInPreBind
    dispatcher: fwk.Dispatcher
    pod_by_key: Callable[[str], Pod | None]
    """namespace/name -> the pod as the API server has it."""
    extenders: tuple[HTTPExtender, ...] = ()
    """Those that the configuration names, in the order in which they are asked."""
    fence: Callable[[], str | None] = lambda: None
    """Why nothing may be written at the moment; None if it may. For what does not go through the dispatcher, which asks by itself."""
    metrics: Metrics = field(default_factory=Metrics)
    """What is counted on the way."""
    reporter: Guarded = NO_REPORTER
    """Who is told what is decided."""
    binds: BindsUnderWay = field(default_factory=BindsUnderWay)
    """Whether the API server, or who binds instead, keeps up."""


@final
@dataclass(frozen=True, slots=True)
class Decided:
    """The pod has a node: it is assumed there, reserved, and permitted or waiting for that."""

    pod: Pod
    """The pod with its node."""
    cycle: Cycle
    waiting: HeldPod | None = None
    evaluated_nodes: int = 0
    """Nodes that were looked at."""
    feasible_nodes: int = 0
    """Those of them on which the pod could have run."""

    @property
    def node(self) -> str:
        """Where it goes."""
        return self.pod.spec.node_name


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that came to nothing, and what is to be said of it."""

    status: fwk.Status
    """Its message is the one of the condition and the event; none are written if it is empty."""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominate: str | None = ""
    """The node to promise to the pod, "" to take a promise back, None to leave it as it is."""
    candidate: fwk.Candidate | None = None
    """The node that is to be made free for the pod, and the pods to evict from it."""
    preempted_by: str = ""
    """The PostFilter plugin that chose the candidate."""


def refused_on_one_node(status: fwk.Status) -> Failure:
    """A node was chosen, and a plugin would not have it. Upstream: FitError with one node."""
    diagnosis = fwk.Diagnosis(fwk.NodeStatuses({"": status}))
    message = fwk.fit_error_message(1, diagnosis)
    plugins = frozenset((status.plugin,)) if status.plugin else frozenset()
    return Failure(fwk.unschedulable(message), plugins, plugins if status.code is fwk.Code.PENDING else frozenset())


def activate_pods(world: World, cycle: Cycle) -> None:
    """Have the pods tried next that plugins asked for in this cycle; asked once is tried once."""
    pods = cycle.find(fwk.PODS_TO_ACTIVATE)
    if pods:
        try:
            world.queue.activate(list(pods.values()))
        except Exception as exc:
            # What plugins write there is theirs; the pod of this cycle has nothing to do with it.
            _LOG.exception(exc, "Error activating pods", pods=list(pods))
        pods.clear()


def record_failed_scheduling(framework: Framework, pod: Pod, message: str) -> None:
    """Tell people that an attempt came to nothing.

    A message that is too long is cut; upstream may cut a character in two there.

    Upstream: schedule_one.go, truncateMessage.
    """
    encoded = message.encode()
    note = message if len(encoded) <= MAX_NOTE else encoded[: MAX_NOTE - 4].decode(errors="ignore") + " ..."
    framework.record_event(pod, "Warning", "FailedScheduling", "Scheduling", note)


MAX_NOTE = 1024
"""Bytes of an event's note."""
