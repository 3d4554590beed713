"""Inventory: the devices of a node for a request, and why some are not available. Only explanations use it."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, final

import msgspec
from msgspec.structs import replace

from extender.engine.plugins.dynamic_resources.allocated_state import DeviceId, PoolId, allocated_state_of
from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.node_allocations import LOOP_STEPS
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer, Slices, TaintedSlices
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.engine.plugins.dynamic_resources.suitable_devices import has_capacity
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.node import Node

_STEPS: Final = 10 * LOOP_STEPS
"""The most steps of counting, about 200 ms; it stops then."""


@final
class NodeDevices(msgspec.Struct, frozen=True):
    """The devices of one node for one request: each match is allocated, too small, tainted or free."""

    num_devices: int
    of_class: int
    matching: int
    allocated: tuple[DeviceId, ...]
    small: tuple[Offer, ...]
    """The devices with too little of a requested capacity."""
    tainted: tuple[Offer, ...]
    free: int
    incomplete: tuple[PoolId, ...]
    """The pools that lack slices, and therefore offer no devices."""


@final
class DeviceInventory:
    """The devices of the cluster. Where selectors fail or take long, it answers None and raises nothing."""

    def __init__(self, objects: ClusterObjects, features: DeviceFeatures) -> None:
        rules = objects.device_taint_rules.values() if features.taint_rules else ()
        self._slices = Slices(TaintedSlices().of(objects.resource_slices, rules), features)
        self._claims = objects.resource_claims
        self._allocated = allocated_state_of(self._claims.values())
        self._features = features
        self._matches = Matches()
        self._allowance = Allowance(steps=_STEPS)

    def on(self, node: Node, request: DeviceRequestAlternative) -> NodeDevices | None:
        """Returns the node's devices for a request; None if they are unknown."""
        try:
            return self._on(node, request)
        except (AllocationError, OutOfStepsError):
            return None

    def holders(self, devices: Iterable[DeviceId]) -> Iterator[ResourceClaim]:
        """Yields the claims that hold any of the devices."""
        device_ids = {*devices}
        for claim in self._claims.values():
            results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
            if any(DeviceId(result.driver, result.pool, result.device) in device_ids for result in results):
                yield claim

    def _on(self, node: Node, request: DeviceRequestAlternative) -> NodeDevices:
        pools = self._slices.pools_for(node)
        offers = [offer for pool in pools for offer in pool.offers if self._slices.is_for(offer, node)]
        is_match = partial(self._matches.matches, allowance=self._allowance)
        of_class = [offer for offer in offers if replace(request, selectors=()).matches(offer, is_match)]
        matching = [offer for offer in of_class if request.matches(offer, is_match)]
        allocated: list[DeviceId] = []
        small: list[Offer] = []
        tainted: list[Offer] = []
        for offer in matching:
            is_shared = bool(offer.device.allow_multiple_allocations)
            consumed = self._allocated.capacity.get(offer.id, {}) if is_shared else {}
            if offer.id in self._allocated.devices or (offer.id in self._allocated.shared and not is_shared):
                allocated.append(offer.id)
            elif not has_capacity(request.capacity, offer, consumed, in_fractions=self._features.fractional_ranges):
                small.append(offer)
            elif self._features.taints and not request.tolerates(offer):
                tainted.append(offer)
        return NodeDevices(
            num_devices=len(offers),
            of_class=len(of_class),
            matching=len(matching),
            allocated=tuple(allocated),
            small=tuple(small),
            tainted=tuple(tainted),
            free=len(matching) - len(allocated) - len(small) - len(tainted),
            incomplete=tuple(pool.id for pool in pools if pool.is_incomplete),
        )
