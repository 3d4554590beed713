"""Pools of devices as one node sees them.

A driver publishes a pool as one or more slices of one generation. A slice is for one node, for the nodes that a
selector matches, or for all nodes. While a driver replaces a generation, the pool is incomplete.

Upstream: dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, final

from extender.engine.plugins.dynamic_resources.allocated_state import Amounts, DeviceId, PoolId
from extender.engine.plugins.dynamic_resources.device_features import ALL_FEATURES, DeviceFeatures
from extender.values.objects.devices import Device, DeviceTaintRule, ResourceSlice, with_taints_of
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.node import Node
from extender.values.objects.node_selectors import ParsedNodeSelector, strict_node_selector_of
from extender.values.objects.quantity import nanos_of

KEPT_NODES: Final = 32_768
"""The most nodes whose pools are remembered."""


class AllocationError(Exception):
    """A claim, class, slice or selector is invalid, as upstream words it; other nodes need not be tried."""


class NodeAllocationError(Exception):
    """The node's pools are incomplete or invalid; other nodes may do."""

    def __init__(self, why: str, *, names_claim: bool = False) -> None:
        super().__init__(why)
        self.names_claim = names_claim


def are_same(objects: Sequence[object], other_objects: Sequence[object]) -> bool:
    """Returns whether both have the same objects in the same order."""
    return len(objects) == len(other_objects) and all(map(operator.is_, objects, other_objects))


@final
class Offer:
    """A device that a node can use."""

    __slots__ = ("device", "id", "pool", "slice")

    def __init__(self, pool: "Pool", resource_slice: ResourceSlice, device: Device) -> None:
        self.pool = pool
        self.slice = resource_slice
        self.device = device
        self.id = DeviceId(pool.id.driver, pool.id.name, device.name)


@final
class Pool:
    """A pool as one node sees it. It offers no devices while it is incomplete or invalid."""

    __slots__ = ("counters", "id", "is_alike", "is_incomplete", "is_invalid", "offers", "slices")

    def __init__(
        self,
        pool_id: PoolId,
        usable: Sequence[ResourceSlice] = (),
        slices: Sequence[ResourceSlice] = (),
        counters: Mapping[str, Amounts] | None = None,
        *,
        is_incomplete: bool = False,
        is_invalid: bool = False,
    ) -> None:
        self.id = pool_id
        self.slices = tuple(slices)
        """All slices of the generation, for whichever nodes."""
        self.counters = dict(counters or {})
        """Counter set -> counter -> the amount that the devices of the pool share."""
        self.is_incomplete = is_incomplete
        self.is_invalid = is_invalid
        self.offers = tuple(
            Offer(self, resource_slice, device) for resource_slice in usable for device in resource_slice.spec.devices
        )
        """By slice name, then in the slice's order: allocation takes the first device that fits."""
        self.is_alike = not any(
            one.spec.node_name is not None
            or one.spec.per_device_node_selection
            or any(device.binds_to_node for device in one.spec.devices)
            for one in usable
        )
        """True if an allocation of its devices does not depend on the node."""

    @property
    def has_binding_conditions(self) -> bool:
        """True if a device of it takes time to prepare; such pools are tried last."""
        return any(offer.device.binding_conditions for offer in self.offers)


@final
class NodePools(tuple[Pool, ...]):
    """The pools with devices for some nodes, in the order in which they are tried."""

    head: tuple[Pool, ...]
    """The leading pools that do not depend on the node, shared by all nodes that start with them."""


@final
class Slices:
    """All slices of the cluster, until a driver publishes others. Caches the pools of nodes."""

    def __init__(self, slices: Sequence[ResourceSlice] = (), features: DeviceFeatures = ALL_FEATURES) -> None:
        self._all = slices
        self._features = features
        self._for_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._by_pool: dict[PoolId, list[ResourceSlice]] = {}
        # Slices live as long as this object, so that their ids are valid keys.
        self._made: dict[tuple[int, ...], Pool | None] = {}
        self._pools: dict[tuple[int, ...], NodePools] = {}
        self._heads: dict[tuple[int, ...], tuple[Pool, ...]] = {}
        self._of_node: dict[str, tuple[Node, NodePools]] = {}
        self._selectors: dict[int, ParsedNodeSelector] = {}
        self.num_devices = 0
        for resource_slice in slices:
            spec = resource_slice.spec
            self.num_devices += len(spec.devices)
            self._by_pool.setdefault(_pool_of(resource_slice), []).append(resource_slice)
            if (spec.shared_counters or spec.per_device_node_selection is not None) and not features.partitions:
                continue  # it counts among the slices of its pool all the same
            if spec.node_name and not spec.shared_counters:
                self._for_node.setdefault(spec.node_name, []).append(resource_slice)
            else:
                self._shared.append(resource_slice)

    def are_same(self, slices: Sequence[ResourceSlice]) -> bool:
        return are_same(slices, self._all)

    def pools_for(self, node: Node) -> NodePools:
        """Returns the pools with devices for the node in order; AllocationError if a node selector is invalid."""
        cached = self._of_node.get(node.name)
        if cached is not None and cached[0] is node:
            return cached[1]
        relevant = self._relevant_for(node)
        key = tuple(map(id, relevant))
        pools = self._pools.get(key)
        if pools is None:
            pools = self._pools[key] = self._pools_of(relevant)
        if len(self._of_node) >= KEPT_NODES:
            self._of_node.clear()
        self._of_node[node.name] = node, pools
        return pools

    def offers_for(self, node: Node) -> Iterator[Offer]:
        """Yields all devices for the node, also those of incomplete or invalid pools. Raises as `pools_for`."""
        for resource_slice in self._relevant_for(node):
            yield from (
                offer for offer in Pool(_pool_of(resource_slice), [resource_slice]).offers if self.is_for(offer, node)
            )

    def is_for(self, offer: Offer, node: Node) -> bool:
        """True if the device itself is for the node, in a slice that selects nodes per device."""
        return not offer.slice.spec.per_device_node_selection or self._matches(node, offer.slice, offer.device)

    def _relevant_for(self, node: Node) -> list[ResourceSlice]:
        return [
            *self._for_node.get(node.name, ()),
            *(shared for shared in self._shared if self._is_relevant(shared, node)),
        ]

    def _is_relevant(self, resource_slice: ResourceSlice, node: Node) -> bool:
        spec = resource_slice.spec
        if spec.shared_counters:
            # A pool needs its counters on every node.
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return self._matches(node, resource_slice)
        if not spec.per_device_node_selection:
            return False
        return any(self._matches(node, resource_slice, device) for device in spec.devices)

    def _matches(self, node: Node, resource_slice: ResourceSlice, device: Device | None = None) -> bool:
        """True if the slice, or the device in a slice that selects nodes per device, is for the node."""
        where = resource_slice.spec if device is None else device
        if where.node_name:
            return node.name == where.node_name
        if where.all_nodes or where.node_selector is None:
            return bool(where.all_nodes)
        # The selector belongs to a slice, which lives as long as this object, so that its id is a valid key.
        parsed = self._selectors.get(id(where.node_selector))
        if parsed is None:
            try:
                parsed = self._selectors[id(where.node_selector)] = strict_node_selector_of(where.node_selector)
            except SelectorError as exc:
                selecting = "slice" if device is None else f"device {device.name} in slice"
                raise AllocationError(
                    f"gather pool information: failed to perform node selection for {selecting} "
                    f"{resource_slice.metadata.name}: failed to parse node selector: {exc}"
                ) from exc
        return parsed.matches(node)

    def _pools_of(self, relevant: Iterable[ResourceSlice]) -> NodePools:
        by_pool: dict[PoolId, list[ResourceSlice]] = {}
        for resource_slice in relevant:
            same = by_pool.setdefault(_pool_of(resource_slice), [])
            generation = resource_slice.spec.pool.generation
            if same and generation > same[0].spec.pool.generation:
                same.clear()
            if not same or generation == same[0].spec.pool.generation:
                same.append(resource_slice)
        unordered = [
            pool for pool_id, slices in sorted(by_pool.items()) if (pool := self._pool(pool_id, slices)) is not None
        ]
        pools = NodePools(sorted(unordered, key=lambda pool: pool.has_binding_conditions))
        head = tuple(takewhile(lambda pool: pool.is_alike, pools))
        pools.head = self._heads.setdefault(tuple(map(id, head)), head)
        return pools

    def _pool(self, pool_id: PoolId, usable: list[ResourceSlice]) -> Pool | None:
        """Returns the pool, the same one for all nodes that can use these slices; None as for `_new_pool`."""
        key = tuple(map(id, usable))
        if key not in self._made:
            self._made[key] = self._new_pool(pool_id, usable)
        return self._made[key]

    def _new_pool(self, pool_id: PoolId, usable: list[ResourceSlice]) -> Pool | None:
        """Returns the pool; None if there is a newer generation, which has nothing for the node."""
        described = usable[0].spec.pool
        slices = usable
        if len(usable) != described.resource_slice_count:
            all_slices = self._by_pool[pool_id]
            if any(other.spec.pool.generation > described.generation for other in all_slices):
                return None
            slices = [other for other in all_slices if other.spec.pool.generation == described.generation]
            if len(slices) != described.resource_slice_count:
                return Pool(pool_id, is_incomplete=True)
        with_devices = sorted(
            (one for one in usable if not one.spec.shared_counters), key=lambda one: one.metadata.name
        )
        names = [device.name for resource_slice in with_devices for device in resource_slice.spec.devices]
        counters, has_counters = _counters(usable), self._features.partitions
        if len(names) != len(set(names)) or counters is None or (has_counters and not _are_known(counters, slices)):
            return Pool(pool_id, is_invalid=True)
        return Pool(pool_id, with_devices, slices, counters)


def _pool_of(resource_slice: ResourceSlice) -> PoolId:
    return PoolId(resource_slice.spec.driver, resource_slice.spec.pool.name)


def _counters(slices: Iterable[ResourceSlice]) -> dict[str, Amounts] | None:
    """Returns counter set -> counter -> nanos; None if two sets have the same name."""
    sets = [counter_set for resource_slice in slices for counter_set in resource_slice.spec.shared_counters]
    counters = {one.name: {name: nanos_of(counter.value) for name, counter in one.counters.items()} for one in sets}
    return counters if len(counters) == len(sets) else None


def _are_known(counters: Mapping[str, Amounts], slices: Iterable[ResourceSlice]) -> bool:
    return all(
        consumption.counter_set in counters and counters[consumption.counter_set].keys() >= consumption.counters.keys()
        for resource_slice in slices
        for device in resource_slice.spec.devices
        for consumption in device.consumes_counters
    )


@final
class TaintedSlices:
    """Adds the taints of DeviceTaintRules to slices. State: the last rules, and each slice with its tainted copy."""

    def __init__(self) -> None:
        self._rules: list[DeviceTaintRule] = []
        self._tainted: dict[str, tuple[ResourceSlice, ResourceSlice]] = {}

    def of(self, slices: Mapping[str, ResourceSlice], rules: Iterable[DeviceTaintRule]) -> list[ResourceSlice]:
        """Returns the tainted slices; unchanged ones are the same objects as before."""
        listed = [*rules]
        if not are_same(listed, self._rules):
            self._rules, self._tainted = listed, {}
        if not listed:
            return [*slices.values()]
        before, self._tainted = self._tainted, {}
        for name, resource_slice in slices.items():
            earlier = before.get(name)
            of_slice = earlier if earlier is not None and earlier[0] is resource_slice else None
            self._tainted[name] = of_slice or (resource_slice, with_taints_of(listed, resource_slice))
        return [tainted for _, tainted in self._tainted.values()]
