"""A scheduler's world without a cluster behind it: changes are told by hand, and writes are noted down."""

from dataclasses import dataclass
from typing import Any, final

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.queueing import PrioritySort, SchedulingGates
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.queueing_hints import gating_plugin, hints_of_profile
from extender.engine.scheduler.event_handlers import EventHandlers
from extender.engine.scheduler.world import PodsInPreBind, World
from extender.testing import NodeBuilder, PodBuilder, make_framework
from extender.values.objects.pod import Pod
from tests.kit.writes import RecordedWrites

PROFILE = "default-scheduler"


@final
@dataclass
class Stage:
    """Its time stands still until it is set."""

    world: World
    framework: Framework
    handlers: EventHandlers
    writes: RecordedWrites
    now: list[float]

    def tell(self, old: PodBuilder | Pod | None, new: PodBuilder | Pod | None) -> None:
        self.handlers.changed(_pod(old), _pod(new))

    def node(self, node: NodeBuilder) -> None:
        self.handlers.changed(None, node.obj())

    def popped(self) -> QueuedPodInfo:
        info = self.world.queue.pop_nowait()
        assert info is not None
        return info

    def refused(self, pod: PodBuilder, *plugins: str) -> QueuedPodInfo:
        """The pod came, was tried, and was refused by these plugins; long ago."""
        self.tell(None, pod)
        info = self.popped()
        info.set_rejector_plugins(plugins)
        self.world.queue.add_unschedulable_if_not_present(info)
        self.now[0] += 1000
        return info

    def is_tried(self, pod: PodBuilder) -> bool:
        return any(info.pod.uid == pod.obj().uid for info in self.world.queue.pods_in_active_q())

    def waits(self, pod: PodBuilder) -> bool:
        info = self.world.queue.get(pod.obj().key)
        return info is not None and info.pod.uid == pod.obj().uid

    def calls_of(self, kind: type[Any]) -> list[Any]:
        return [call for call in self.writes.calls if isinstance(call, kind)]


def a_stage(*plugins: fwk.Plugin) -> Stage:
    """Call it where a loop runs."""
    cluster, pods, now = Cluster(), dict[str, Pod](), [1000.0]
    writes = RecordedWrites(cluster.cache)
    framework = make_framework(SchedulingGates, NodeResourcesFit, *plugins, dispatcher=writes, live=cluster.cache)
    queue = SchedulingQueue(
        PrioritySort().sort_key,
        {PROFILE: hints_of_profile(framework.plugins)},
        lambda pod, last: gating_plugin(framework.plugins.pre_enqueue, pod, last),
        now=lambda: now[0],
        pod_lister=pods.get,
    )
    world = World(
        cluster=cluster,
        queue=queue,
        waiting_pods=framework.waiting_pods,
        pods_in_pre_bind=PodsInPreBind(),
        dispatcher=writes,
        pod_by_key=pods.get,
    )
    return Stage(world, framework, EventHandlers(world, {PROFILE}, pods), writes, now)


def _pod(pod: PodBuilder | Pod | None) -> Pod | None:
    return pod.obj() if isinstance(pod, PodBuilder) else pod
