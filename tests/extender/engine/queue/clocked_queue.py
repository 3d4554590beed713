"""A queue with a clock, hints and gates that the test controls."""

from collections.abc import Callable, Mapping
from typing import Any

from extender.engine.framework import ActionType, ClusterEvent, EventResource, QueueingHint, QueueingHintFn
from extender.engine.framework.events import QueueingHintFunction
from extender.engine.plugins.queueing import PrioritySort
from extender.engine.queue import QueuedPodInfo, SchedulingQueue
from extender.testing import PodBuilder
from extender.values.objects.pod import Pod

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
POD_LABEL = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
PVC_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)


def always(pod: Pod, old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE


def never(pod: Pod, old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE_SKIP


def broken(pod: Pod, old: object, new: object) -> QueueingHint:
    raise ValueError("the hint is broken")


def open_gate_named(pod: Pod) -> str:
    """Pods with the label gate=closed are gated by the plugin Gate."""
    return "Gate" if pod.labels.get("gate") == "closed" else ""


Registered = Mapping[ClusterEvent, Mapping[str, QueueingHintFn]]
NODES: Registered = {NODE_ADD: {"Fit": always}}


class ClockedQueue:
    """A queue at a time that tests move, and the pods that its lister knows."""

    def __init__(
        self, registered: Registered = NODES, gate: Callable[[Pod], str] = lambda pod: "", **options: Any
    ) -> None:
        self.now = 1000.0
        self.store: dict[str, Pod] = {}
        hints = {event: [QueueingHintFunction(*row) for row in hints.items()] for event, hints in registered.items()}
        self.queue = SchedulingQueue(
            PrioritySort().sort_key,
            {"default-scheduler": hints},
            lambda pod, _: gate(pod),
            now=lambda: self.now,
            pod_lister=self.store.get,
            **options,
        )

    def add(self, *builders: PodBuilder) -> None:
        """The pods come, a millisecond apart."""
        for builder in builders:
            pod = builder.obj()
            self.store[pod.key] = pod
            self.queue.add(pod)
            self.now += 0.001

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop_nowait()
        assert info is not None
        return info

    def in_flight(self, builder: PodBuilder) -> QueuedPodInfo:
        """A pod that came and is in flight."""
        self.add(builder)
        return self.pop()

    def refuse(self, info: QueuedPodInfo, *plugins: str, pending: tuple[str, ...] = ()) -> None:
        """The pod comes back from its attempt; it failed if nobody refused it."""
        info.set_rejector_plugins(plugins, pending)
        self.queue.add_unschedulable_if_not_present(info)

    def refused(self, builder: PodBuilder, *plugins: str, pending: tuple[str, ...] = ()) -> QueuedPodInfo:
        """A pod that came, was tried, and came back."""
        info = self.in_flight(builder)
        self.refuse(info, *plugins, pending=pending)
        return info

    def places(self) -> dict[str, str]:
        """Pod name -> where it is; a pod in two places is told as such."""
        queue = self.queue
        by_pod: dict[str, str] = {}
        for place, infos in (
            ("active", queue.pods_in_active_q()),
            ("backoff", queue.pods_in_backoff_q()),
            ("error backoff", queue.pods_in_backoff_q(failed=True)),
            ("unschedulable", queue.unschedulable_pods()),
            ("in flight", queue.in_flight_pods()),
        ):
            for info in infos:
                label = "gated" if place == "unschedulable" and info.is_gated else place
                by_pod[info.pod.name] = f"{by_pod[info.pod.name]}, {label}" if info.pod.name in by_pod else label
        return by_pod
