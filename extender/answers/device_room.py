"""The devices of each class on each node, and how many of them claims hold: what the map shows of Dynamic Resource
Allocation.

Selectors may take long, so that devices are counted again only when slices, classes or claims change.
Devices in slices of no single node are not counted, because they are on none.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, final

from extender.answers.cluster_map import Devices, ResourceOnNode
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState, allocated_state_of
from extender.engine.plugins.dynamic_resources.device_counts import ClassDevices
from extender.engine.plugins.dynamic_resources.errors import OutOfStepsError
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches
from extender.values.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.values.objects.node import Node

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Comes before the name of a class where pods request its devices as an extended resource."""
MOST_SECONDS: Final = 1.0
"""The time for one count. What is left is counted the next time, since it is kept which devices match."""


@final
class DeviceRoom:
    """Counts the devices of one cluster. State: what was counted last, of which objects, and which devices match which
    selectors.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._matches = Matches()
        self._of: Sequence[object] = ()
        self._room: Devices = {}

    def now(self) -> Devices:
        """Returns the devices of each node; without those that could not be counted in time."""
        objects = self._cluster.cache.objects
        if not objects.resource_slices or not objects.device_classes:
            return {}
        slices = [each for each in objects.resource_slices.values() if each.spec.node_name]
        classes, claims = list(objects.device_classes.values()), list(objects.resource_claims.values())
        nodes = [
            self._cluster.nodes[name]
            for name in dict.fromkeys(each.spec.node_name for each in slices)
            if name in self._cluster.nodes
        ]
        of: list[object] = [*slices, *classes, *claims, *nodes]
        if len(of) != len(self._of) or not all(one is other for one, other in zip(of, self._of, strict=True)):
            self._room, is_whole = self._counted(slices, classes, claims, nodes)
            self._of = of if is_whole else ()
        return self._room

    def _counted(
        self,
        slices: Sequence[ResourceSlice],
        classes: Sequence[DeviceClass],
        claims: Sequence[ResourceClaim],
        nodes: Sequence[Node],
    ) -> tuple[Devices, bool]:
        """Returns (what was counted, whether that is all)."""
        of_slices = Slices(slices)
        self._matches.prune(of_slices.num_devices)
        devices, allocated = ClassDevices(of_slices, self._matches), allocated_state_of(claims)
        allowance = Allowance(slice_seconds=MOST_SECONDS)
        found: dict[str, list[ResourceOnNode]] = defaultdict(list)
        try:
            for node in nodes:
                found[node.name] += _on(node, classes, devices, allocated, allowance)
        except OutOfStepsError:
            return {name: tuple(each) for name, each in found.items()}, False
        return {name: tuple(each) for name, each in found.items()}, True


def _on(
    node: Node, classes: Sequence[DeviceClass], devices: ClassDevices, allocated: AllocatedState, allowance: Allowance
) -> list[ResourceOnNode]:
    found = []
    for each in classes:
        there = devices.on(node, each, allowance)
        if there:
            used = sum(map(allocated.is_in_use, there))
            found.append(ResourceOnNode(name=f"{CLASS_PREFIX}{each.name}", allocatable=len(there), requested=used))
    return found
