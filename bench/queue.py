"""The queue: many pods come and are tried; many that were refused are held against one change, with the hints of all
in-tree plugins.
"""

import gc
import time
from collections.abc import Callable

from extender.engine.framework import ActionType, ClusterEvent, EventResource
from extender.engine.framework.events import EVENT_ASSIGNED_POD_DELETE
from extender.engine.plugins import IN_TREE
from extender.engine.queue import QueuedPodInfo, SchedulingQueue
from extender.engine.runtime.queueing_hints import gating_plugin, queueing_hint_map, registrations
from extender.testing import label_term, make_framework, make_node, make_pod
from extender.values.objects.pod import Pod

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)

WEB = make_pod().label(app="web").req(cpu="1", memory="1Gi")
OLD = make_node("n").capacity(cpu="8", memory="32Gi").label(zone="a").obj()
NEW = make_node("n").capacity(cpu="8", memory="32Gi").label(zone="b").obj()
RUNNING = make_pod("running").label(app="web").node("n").obj()

CHANGES = (
    ("a node comes, big enough", "NodeResourcesFit", WEB, NODE_ADD, None, NEW),
    ("a node comes, too small", "NodeResourcesFit", WEB.req(cpu="64"), NODE_ADD, None, NEW),
    (
        "a node gets the right label",
        "NodeAffinity",
        WEB.node_affinity(label_term("zone", "In", "b")),
        NODE_LABEL,
        OLD,
        NEW,
    ),
    ("a node changes its zone", "PodTopologySpread", WEB.spread(1, "zone", app="web"), NODE_LABEL, OLD, NEW),
    (
        "a pod is gone from near",
        "InterPodAffinity",
        WEB.pod_anti_affinity("zone", app="web"),
        EVENT_ASSIGNED_POD_DELETE,
        RUNNING,
        None,
    ),
    ("a pod is gone; no matter", "TaintToleration", WEB, EVENT_ASSIGNED_POD_DELETE, RUNNING, None),
)


def run(num_pods: int = 100_000, num_refused: int = 20_000) -> None:
    """Print a line for each way of a pod through the queue."""
    gc.disable()  # a collection that falls into one line or another would decide it
    _through(num_pods)
    _held_against_a_change(num_refused)
    gc.enable()


def _through(num_pods: int) -> None:
    queue = make_queue()
    pods = [WEB.name(f"p{number}").priority(number % 10).obj() for number in range(num_pods)]
    popped: list[QueuedPodInfo] = []
    print(f"{num_pods} pods through the queue, microseconds each")
    _print("come", num_pods, lambda: _add_all(queue, pods))
    _print("are popped", num_pods, lambda: popped.extend(_pop_all(queue)))
    _print("come back refused", num_pods, lambda: _refuse(queue, popped, "NodeResourcesFit"))


def _add_all(queue: SchedulingQueue, pods: list[Pod]) -> None:
    for pod in pods:
        queue.add(pod)


def _held_against_a_change(num_refused: int) -> None:
    print(f"\n{num_refused} refused pods and one change, microseconds each")
    for what, plugin, builder, event, old, new in CHANGES:
        queue = make_queue()
        for number in range(num_refused):
            queue.add(builder.name(f"p{number}").obj())
        _refuse(queue, _pop_all(queue), plugin)
        _print(what, num_refused, lambda: queue.move_all_to_active_or_backoff_queue(event, old, new))  # noqa: B023  (called at once)


def make_queue() -> SchedulingQueue:
    """A queue with the hints and gates of all in-tree plugins."""
    framework = make_framework(*IN_TREE.values())
    plugins = framework.plugins

    def gate(pod: Pod, last_gated_by: str) -> str:
        return gating_plugin(plugins.pre_enqueue, pod, last_gated_by)

    hints = {"default-scheduler": queueing_hint_map(registrations(plugins))}
    return SchedulingQueue(plugins.queue_sort.sort_key, hints, gate, now=lambda: 0.0, pod_lister=lambda uid: None)


def _pop_all(queue: SchedulingQueue) -> list[QueuedPodInfo]:
    return [*iter(queue.pop_nowait, None)]


def _refuse(queue: SchedulingQueue, pods: list[QueuedPodInfo], plugin: str) -> None:
    for info in pods:
        info.set_rejector_plugins([plugin])
        queue.add_unschedulable_if_not_present(info)


def _print(what: str, num_pods: int, work: Callable[[], object]) -> None:
    began = time.process_time()
    work()
    print(f"  {what:<30} {(time.process_time() - began) / num_pods * 1e6:6.1f}", flush=True)
