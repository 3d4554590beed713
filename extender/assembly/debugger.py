"""CacheDebugger: logs the scheduler's state, and its differences from the API server's.

Upstream: pkg/scheduler/backend/cache/debugger, dumper.go, comparer.go.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, final

from extender.client.informers.informers import Informers
from extender.engine.cache.cluster import Cluster
from extender.engine.cache.dump import NodeDump
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.snapshot.axes import NATIVE_RESOURCES
from extender.values.klog.logger import Lines, Logger
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class CacheDebugger:
    """Reads the cache and the queue, changes nothing, and writes its findings to the log.

    Arguments:
        queue: that of the scheduler; None if there is none.
        profiles: scheduler names of the pods that belong into the queue.
    """

    def __init__(
        self, informers: Informers, cluster: Cluster, queue: SchedulingQueue | None, profiles: Collection[str]
    ) -> None:
        self._informers = informers
        self._cluster = cluster
        self._queue = queue
        self._profiles = profiles

    def debug(self) -> None:
        self.compare()
        self.dump()

    def compare(self) -> None:
        """Logs the nodes and pods that are missed in the cache, and those that are redundant there.

        Unlike upstream, pods whose attempt is running are not missed, and pods of other schedulers are not expected in
        the queue.
        """
        _LOG.info(3, "Cache comparer started")
        nodes = self._cluster.cache.dump()
        missed, redundant = _compared((node.metadata.name for node in self._informed("nodes")), nodes)
        if missed or redundant:
            _LOG.info(0, "Cache mismatch", missedNodes=missed, redundantNodes=redundant)
        expected = (pod for pod in self._informed("pods") if pod.spec.node_name or pod.scheduler_name in self._profiles)
        cached_uids = {pod.uid for pod in self._cluster.cache.pods}
        if self._queue is not None:
            cached_uids |= {info.pod.uid for info in (*waiting_in(self._queue), *self._queue.in_flight_pods())}
        else:
            cached_uids |= self._cluster.pending.keys()
        missed, redundant = _compared((pod.uid for pod in expected if not pod.is_terminal), cached_uids)
        if missed or redundant:
            _LOG.info(0, "Cache mismatch", missedPods=missed, redundantPods=redundant)
        _LOG.info(3, "Cache comparer finished")

    def dump(self) -> None:
        pods_on: dict[str, list[Pod]] = {}
        for pod in self._cluster.cache.pods:
            pods_on.setdefault(pod.spec.node_name, []).append(pod)
        nominated = self._queue.nominated_pods() if self._queue is not None else {}
        nodes = (
            _node_text(name, node, pods_on.get(name, ()), nominated.get(name, ()))
            for name, node in self._cluster.cache.dump().items()
        )
        # As upstream, with an empty line between two nodes.
        _LOG.info(0, "Dump of cached NodeInfo", nodes=Lines("\n\n".join(nodes)))
        if self._queue is not None:
            counts = self._queue.pending_counts()
            unschedulable = counts["unschedulable"] + counts["gated"]
            summary = f"activeQ:{counts['active']}; backoffQ:{counts['backoff']}; unschedulablePods:{unschedulable}"
            pods = "".join(_pod_text(info.pod) for info in waiting_in(self._queue))
            _LOG.info(0, "Dump of scheduling queue", summary=summary, pods=Lines(pods))

    def _informed(self, resource: str) -> Iterable[Any]:
        reflectors = (reflector for reflector in self._informers.reflectors if reflector.kind.resource == resource)
        return (item for reflector in reflectors for item in reflector.objects.values())


def waiting_in(queue: SchedulingQueue) -> list[QueuedPodInfo]:
    """Returns the pods that wait, gated ones included."""
    return [
        *queue.pods_in_active_q(),
        *queue.pods_in_backoff_q(),
        *queue.pods_in_backoff_q(failed=True),
        *queue.unschedulable_pods(),
    ]


def _compared(actual: Iterable[str], cached: Iterable[str]) -> tuple[list[str], list[str]]:
    expected, cached_names = set(actual), set(cached)
    return sorted(expected - cached_names), sorted(cached_names - expected)


def _node_text(name: str, node: NodeDump, pods: Collection[Pod], nominated: Collection[Pod]) -> str:
    parts = [
        f"Node name: {name}\nDeleted: {str(not node.has_node).lower()}\nRequested Resources: "
        f"{_resource_text(node.requested, 0)}\n"
        f"Allocatable Resources: {_resource_text(node.allocatable, node.allowed_pods)}\nScheduled Pods(number: "
        f"{len(pods)}):\n",
        *map(_pod_text, pods),
    ]
    if nominated:
        parts += [f"Nominated Pods(number: {len(nominated)}):\n", *map(_pod_text, nominated)]
    return "".join(parts)


def _pod_text(pod: Pod) -> str:
    return (
        f"name: {pod.metadata.name}, namespace: {pod.namespace}, uid: {pod.uid}, phase: {pod.status.phase}, "
        f"nominated node: {pod.status.nominated_node_name}\n"
    )


def _resource_text(amounts: Mapping[str, int], allowed_pods: int) -> str:
    """Returns the amounts as Go prints upstream's framework.Resource."""
    cpu, memory, storage = (amounts.get(name, 0) for name in NATIVE_RESOURCES)
    scalars = " ".join(f"{name}:{amount}" for name, amount in sorted(amounts.items()) if name not in NATIVE_RESOURCES)
    numbers = f"MilliCPU:{cpu} Memory:{memory} EphemeralStorage:{storage} AllowedPodNumber:{allowed_pods}"
    return f"&{{{numbers} ScalarResources:map[{scalars}]}}"
