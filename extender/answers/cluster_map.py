"""The cluster as a map: every node with its capacity and the requests on it; in a small cluster with its pods, too.
With the devices of each class on each node, and how many of them claims hold: what the map shows of Dynamic Resource
Allocation.

Selectors may take long, so that devices are counted again only when slices, classes or claims change. Devices in slices
of no single node are not counted, because they are on none.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Final, final

import numpy as np

from extender.answers.overviews import ClusterMap, NodeOnMap, PodOnNode, ResourceOnNode
from extender.answers.parts import PodName
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState, allocated_state_of
from extender.engine.plugins.dynamic_resources.device_counts import ClassDevices
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import CPU, MEMORY
from extender.values import limits
from extender.values.objects.devices import DeviceClass
from extender.values.objects.node import BETA_ZONE_LABEL, ZONE_LABEL, Node
from extender.values.objects.quantity import QuantityError, RawQuantity, value_of

_ON_THEIR_OWN: Final = frozenset(("cpu", "memory", "pods"))

Devices = Mapping[str, tuple[ResourceOnNode, ...]]
"""Node -> the device classes of which it has devices."""
_NO_DEVICES: Final[Devices] = MappingProxyType({})


@final
class ClusterMaps:
    """Maps of one cluster. State: the last one, and its nodes, which are drawn again only where they have changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: ClusterMap | None = None
        self._nodes: dict[str, NodeOnMap] = {}
        """In the order of the map."""
        self._generation = -1
        self._shows_pods = False
        self._devices: Devices = _NO_DEVICES

    def now(self, devices: Devices = _NO_DEVICES) -> ClusterMap:
        snapshot = self._cluster.cache.update_snapshot()
        self._draw(snapshot, devices)
        priority_classes = self._cluster.cache.objects.priority_classes
        classes = {name: priority_class.value for name, priority_class in priority_classes.items()}
        last = self._last
        if last is not None and last.generation == snapshot.generation and last.priority_classes == classes:
            return last
        pods = snapshot.pods
        self._last = ClusterMap(
            generation=snapshot.generation,
            nodes=tuple(self._nodes.values()),
            num_pods=int(snapshot.nodes.pod_count.sum()),
            priorities=tuple(np.unique(pods.priority[pods.node >= 0]).tolist()),
            priority_classes=classes,
            has_pods=self._shows_pods,
        )
        return self._last

    def _draw(self, snapshot: Snapshot, devices: Devices) -> None:
        nodes = snapshot.nodes
        shows_pods = len(nodes) <= limits.MAP_NODES_WITH_PODS and int(nodes.pod_count.sum()) <= limits.MAP_PODS
        changed = snapshot.changes.since(self._generation)
        if changed is None or shows_pods != self._shows_pods:
            names = list(nodes.index)
            self._nodes = {name: node for name, node in self._nodes.items() if name in nodes.index}
        else:
            names = [nodes.objects[place].name for place in changed.tolist()]
        if devices != self._devices:
            names += [name for name in nodes.index if devices.get(name) != self._devices.get(name)]
            self._last = None
        self._generation, self._shows_pods, self._devices = snapshot.generation, shows_pods, devices
        drawn = {
            name: _node(snapshot, nodes.index[name], devices.get(name, ()), with_pods=shows_pods) for name in names
        }
        is_in_order = all(name in self._nodes and self._nodes[name].zone == node.zone for name, node in drawn.items())
        self._nodes |= drawn
        if not is_in_order:
            in_order = sorted(self._nodes.values(), key=lambda node: (node.zone, natural(node.name)))
            self._nodes = {node.name: node for node in in_order}


def node_on_map(cluster: Cluster, name: str, devices: Devices = _NO_DEVICES) -> NodeOnMap | None:
    """Returns one node with its pods; None if there is no such node."""
    snapshot = cluster.cache.update_snapshot()
    place = snapshot.nodes.index.get(name)
    return None if place is None else _node(snapshot, place, devices.get(name, ()), with_pods=True)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a sort key that puts node-9 before node-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name))


def _node(snapshot: Snapshot, place: int, devices: tuple[ResourceOnNode, ...], *, with_pods: bool) -> NodeOnMap:
    columns = snapshot.nodes
    node = columns.objects[place]
    return NodeOnMap(
        name=node.name,
        zone=node.labels.get(ZONE_LABEL) or node.labels.get(BETA_ZONE_LABEL, ""),
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
    pods = []
    for slot in snapshot.pods.on_node[place]:
        pod, row = snapshot.pod_at(slot), snapshot.pods.requests[slot]
        pods.append(
            PodOnNode(
                pod=PodName(namespace=pod.namespace, name=pod.name, uid=pod.uid, priority=pod.priority),
                cpu=int(row[CPU]),
                memory=int(row[MEMORY]),
                requests={
                    snapshot.resources[code]: int(row[code]) for code in np.flatnonzero(row).tolist() if code > MEMORY
                },
                terminating=pod.is_terminating,
            )
        )
    pods.sort(key=lambda entry: (-entry.pod.priority, -entry.cpu, -entry.memory, entry.pod.namespace, entry.pod.name))
    return tuple(pods)


def _resources(snapshot: Snapshot, place: int) -> Iterator[ResourceOnNode]:
    columns = snapshot.nodes
    for name, quantity in columns.objects[place].status.allocatable.items():
        if name in _ON_THEIR_OWN:
            continue
        code = snapshot.resources.code_of(name)
        if 0 <= code < snapshot.num_resources:
            allocatable, requested = int(columns.allocatable[place, code]), int(columns.requested[place, code])
        else:
            allocatable, requested = _amount(quantity), 0  # no pod requests it
        yield ResourceOnNode(name=name, allocatable=allocatable, requested=requested)


def _amount(quantity: RawQuantity) -> int:
    try:
        return value_of(quantity)
    except QuantityError:
        return 0


def _wrong(node: Node) -> Iterator[str]:
    """Yields the conditions that tell of a problem: Ready if it does not hold, any other if it does."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            if condition.status != "True":
                yield "NotReady"
        elif condition.status == "True":
            yield condition.type


CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Comes before the name of a class where pods request its devices as an extended resource."""


@final
class DeviceRoom:
    """Counts the devices of one cluster. State: the last counts with their objects, and what selectors match."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._matches = Matches()
        self._counted_objects: Sequence[object] = ()
        self._room: Devices = {}

    def now(self) -> Devices:
        """Returns the devices of each node; without those that could not be counted in time."""
        objects = self._cluster.cache.objects
        if not objects.resource_slices or not objects.device_classes:
            return {}
        slices = [item for item in objects.resource_slices.values() if item.spec.node_name]
        classes, claims = list(objects.device_classes.values()), list(objects.resource_claims.values())
        nodes = [
            self._cluster.nodes[name]
            for name in dict.fromkeys(item.spec.node_name for item in slices)
            if name in self._cluster.nodes
        ]
        counted_objects: list[object] = [*slices, *classes, *claims, *nodes]
        if len(counted_objects) == len(self._counted_objects) and all(
            one is other for one, other in zip(counted_objects, self._counted_objects, strict=True)
        ):
            return self._room
        self._counted_objects = counted_objects
        of_slices = Slices(slices)
        self._matches.prune(of_slices.num_devices)
        devices, allocated = ClassDevices(of_slices, self._matches), allocated_state_of(claims)
        allowance = Allowance(slice_seconds=limits.DEVICE_COUNT_SECONDS)
        devices_by_node: dict[str, list[ResourceOnNode]] = defaultdict(list)
        try:
            for node in nodes:
                devices_by_node[node.name] += _on(node, classes, devices, allocated, allowance)
        except OutOfStepsError:
            self._counted_objects = ()  # the next one counts again
        self._room = {name: tuple(resources) for name, resources in devices_by_node.items()}
        return self._room


def _on(
    node: Node, classes: Sequence[DeviceClass], devices: ClassDevices, allocated: AllocatedState, allowance: Allowance
) -> list[ResourceOnNode]:
    resources = []
    for device_class in classes:
        node_devices = devices.on(node, device_class, allowance)
        if node_devices:
            number, used = len(node_devices), sum(map(allocated.is_in_use, node_devices))
            name = f"{CLASS_PREFIX}{device_class.name}"
            resources.append(ResourceOnNode(name=name, allocatable=number, requested=used))
    return resources
