"""The cluster as a map: every node with its capacity and the requests on it; in a small cluster with its pods, too."""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Final, final

import msgspec
import numpy as np

from extender.answers.types import Answer
from extender.cache.cluster import Cluster
from extender.objects.node import BETA_ZONE_LABEL, ZONE_LABEL, Node
from extender.objects.quantity import QuantityError, RawQuantity, value_of
from extender.records.values import PodName
from extender.snapshot import Snapshot
from extender.snapshot.axes import CPU, MEMORY

MAX_NODES_WITH_PODS: Final = 120
MAX_PODS: Final = 4000
"""The pods of a larger cluster are only in the answers about single nodes."""

_STEP: Final = 500
"""Nodes that are drawn at a time, which takes some 12 ms."""

_ON_THEIR_OWN: Final = frozenset(("cpu", "memory", "pods"))


@final
class PodOnNode(Answer, frozen=True, kw_only=True):
    """A pod and its requests."""

    pod: PodName
    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """Bytes."""
    requests: dict[str, int] = msgspec.field(default_factory=dict)
    """What it requests of other resources, such as GPUs."""
    terminating: bool = False


@final
class ResourceOnNode(Answer, frozen=True, kw_only=True):
    """A resource other than cpu, memory and pods: an extended resource, or the devices of a class."""

    name: str
    """Of a device class: deviceclass.resource.kubernetes.io/ and its name, under which pods may request it."""
    allocatable: int
    requested: int


@final
class NodeOnMap(Answer, frozen=True, kw_only=True):
    """A node. Cpu in millicores, memory in bytes."""

    name: str
    zone: str = ""
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """key=value:effect."""
    cpu: int = 0
    """The allocatable amount, as `memory` is."""
    memory: int = 0
    requested_cpu: int = 0
    requested_memory: int = 0
    max_pods: int = 0
    num_pods: int = 0
    resources: tuple[ResourceOnNode, ...] = ()
    """The extended resources and device classes of the node, by name."""
    conditions: tuple[str, ...] = ()
    """What is wrong with it: NotReady, and the other conditions that hold, such as DiskPressure."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    pods: tuple[PodOnNode, ...] = ()
    """Highest priority first, the largest of equal ones first; see `ClusterMap.has_pods`."""


@final
class ClusterMap(Answer, frozen=True, kw_only=True):
    """GET /v1/cluster: nodes by zone and name."""

    generation: int
    """A number that changes whenever the nodes or pods change."""
    nodes: tuple[NodeOnMap, ...]
    num_pods: int = 0
    priorities: tuple[int, ...] = ()
    """The distinct priorities of pods that have a node, lowest first."""
    priority_classes: dict[str, int] = msgspec.field(default_factory=dict)
    """PriorityClass -> its value, for those that are known."""
    has_pods: bool = True
    """Whether the nodes list their pods; GET /v1/cluster/{node} lists those of one node in any case."""


Devices = Mapping[str, tuple[ResourceOnNode, ...]]
"""Node -> the device classes of which it has devices."""
_NO_DEVICES: Final[Devices] = MappingProxyType({})


def cluster_map(cluster: Cluster) -> ClusterMap:
    """Returns the cluster as it is now."""
    return ClusterMaps(cluster).now()


@final
@dataclass(frozen=True, slots=True)
class _Kept:
    """A node of the last map, and what it was made from."""

    shown: NodeOnMap
    node: Node
    requested: list[int]
    num_pods: int
    devices: tuple[ResourceOnNode, ...]
    order: tuple[str, tuple[tuple[int, str], ...]]
    """Sorts nodes by zone and name."""


@final
class ClusterMaps:
    """Maps of one cluster. State: the last one, of which the nodes that have not changed since are used again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: ClusterMap | None = None
        self._nodes: dict[str, _Kept] = {}
        self._devices: Devices = _NO_DEVICES

    def drawing(self, devices: Devices = _NO_DEVICES) -> Iterator[None]:
        """Draws what has changed on a large map, step by step, so that `now`, which comes next, has little to do."""
        start = 0
        while not self._is_last((snapshot := self._cluster.cache.update_snapshot()).generation, devices) and start < len(snapshot.nodes):
            if start:
                yield
                snapshot = self._cluster.cache.update_snapshot()
            self._devices = devices
            self._nodes |= self._drawn(snapshot, slice(start, start + _STEP), with_pods=_has_pods(snapshot))
            start += _STEP

    def now(self, devices: Devices = _NO_DEVICES) -> ClusterMap:
        """Returns the cluster as it is now, with these devices."""
        snapshot = self._cluster.cache.update_snapshot()
        classes = {name: each.value for name, each in self._cluster.cache.objects.priority_classes.items()}
        last = self._last
        if last is not None and self._is_last(snapshot.generation, devices) and last.priority_classes == classes:
            return last
        self._devices = devices
        nodes, pods, has_pods = snapshot.nodes, snapshot.pods, _has_pods(snapshot)
        drawn = self._drawn(snapshot, slice(None), with_pods=has_pods)
        # In the order of the last map, which is sorted but for what has changed since.
        known = (each for name, each in (self._nodes | drawn).items() if name in drawn)
        self._nodes = {each.node.name: each for each in sorted(known, key=attrgetter("order"))}
        self._last = ClusterMap(
            generation=snapshot.generation,
            nodes=tuple(each.shown for each in self._nodes.values()),
            num_pods=int(nodes.pod_count.sum()),
            priorities=tuple(np.unique(pods.priority[pods.node >= 0]).tolist()),
            priority_classes=classes,
            has_pods=has_pods,
        )
        return self._last

    def _is_last(self, generation: int, devices: Devices) -> bool:
        return self._last is not None and self._last.generation == generation and self._devices == devices

    def _drawn(self, snapshot: Snapshot, places: slice, *, with_pods: bool) -> dict[str, _Kept]:
        columns, drawn = snapshot.nodes, dict[str, _Kept]()
        rows = zip(columns.objects[places], columns.requested[places].tolist(), columns.pod_count[places].tolist(), strict=True)
        for place, (node, requested, num_pods) in enumerate(rows, places.start or 0):
            name = node.name
            kept, has = self._nodes.get(name), self._devices.get(name, ())
            # Pods may change without any number: where they are or were shown, the node is made again.
            if (
                with_pods or kept is None or kept.node is not node or kept.requested != requested or kept.num_pods != num_pods
                or kept.devices != has or kept.shown.pods
            ):  # fmt: skip
                shown = _node(snapshot, place, has, with_pods=with_pods)
                kept = _Kept(shown, node, requested, num_pods, has, (shown.zone, natural(name)))
            drawn[name] = kept
        return drawn


def _has_pods(snapshot: Snapshot) -> bool:
    return len(snapshot.nodes) <= MAX_NODES_WITH_PODS and int(snapshot.nodes.pod_count.sum()) <= MAX_PODS


def node_on_map(cluster: Cluster, name: str, devices: Devices = _NO_DEVICES) -> NodeOnMap | None:
    """Returns one node with its pods; None if there is no such node."""
    snapshot = cluster.cache.update_snapshot()
    place = snapshot.nodes.index.get(name)
    return None if place is None else _node(snapshot, place, devices.get(name, ()), with_pods=True)


def hiding(shown: NodeOnMap, may_see: Container[str]) -> NodeOnMap:
    """Returns the node without the names of pods in other namespaces than these."""
    pods = tuple(each if each.pod.hidden or each.pod.namespace in may_see else _hidden(each) for each in shown.pods)
    return msgspec.structs.replace(shown, pods=pods)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a sort key that puts node-9 before node-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name))


def _hidden(pod: PodOnNode) -> PodOnNode:
    return msgspec.structs.replace(pod, pod=PodName(namespace="", name="", priority=pod.pod.priority, hidden=True))


def _node(snapshot: Snapshot, place: int, devices: tuple[ResourceOnNode, ...], *, with_pods: bool) -> NodeOnMap:
    columns = snapshot.nodes
    node = columns.objects[place]
    return NodeOnMap(
        name=node.name,
        zone=_zone(node),
        cordoned=bool(columns.unschedulable[place]),
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints),
        cpu=int(columns.allocatable[place, CPU]),
        memory=int(columns.allocatable[place, MEMORY]),
        requested_cpu=int(columns.requested[place, CPU]),
        requested_memory=int(columns.requested[place, MEMORY]),
        max_pods=int(columns.allowed_pods[place]),
        num_pods=int(columns.pod_count[place]),
        resources=tuple(sorted((*_resources(snapshot, place), *devices), key=attrgetter("name"))),
        conditions=tuple(_wrong(node)),
        labels=node.labels,
        pods=_pods(snapshot, place) if with_pods else (),
    )


def _pods(snapshot: Snapshot, place: int) -> tuple[PodOnNode, ...]:
    found = []
    for slot in snapshot.pods.on_node[place]:
        pod, row = snapshot.pod_at(slot), snapshot.pods.requests[slot]
        found.append(
            PodOnNode(
                pod=PodName(namespace=pod.namespace, name=pod.name, uid=pod.uid, priority=pod.priority),
                cpu=int(row[CPU]),
                memory=int(row[MEMORY]),
                requests={snapshot.resources[code]: int(row[code]) for code in np.flatnonzero(row).tolist() if code > MEMORY},
                terminating=pod.is_terminating,
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.pod.priority, -each.cpu, -each.memory, each.pod.namespace, each.pod.name)))


def _resources(snapshot: Snapshot, place: int) -> Iterator[ResourceOnNode]:
    columns = snapshot.nodes
    for name, written in columns.objects[place].status.allocatable.items():
        if name in _ON_THEIR_OWN:
            continue
        code = snapshot.resources.code_of(name)
        if 0 <= code < snapshot.num_resources:
            there, requested = int(columns.allocatable[place, code]), int(columns.requested[place, code])
        else:
            there, requested = _amount(written), 0  # no pod requests it
        yield ResourceOnNode(name=name, allocatable=there, requested=requested)


def _amount(written: RawQuantity) -> int:
    try:
        return value_of(written)
    except QuantityError:
        return 0


def _wrong(node: Node) -> Iterator[str]:
    """Yields the conditions that tell of a problem: Ready if it does not hold, any other if it does."""
    for each in node.status.conditions:
        if each.type == "Ready":
            if each.status != "True":
                yield "NotReady"
        elif each.status == "True":
            yield each.type


def _zone(node: Node) -> str:
    return node.labels.get(ZONE_LABEL) or node.labels.get(BETA_ZONE_LABEL, "")
