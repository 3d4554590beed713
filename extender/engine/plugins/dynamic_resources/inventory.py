"""Inventory: which devices a node has for a request, and why some cannot be had. It is for explanations alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

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
"""The steps that counting may take, about 200 ms; what is left then is not counted."""


@final
@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one node, as one request sees them: each that matches is held, too small, tainted or free."""

    there: int
    of_class: int
    matching: int
    held: tuple[DeviceId, ...]
    small: tuple[Offer, ...]
    """Those that have too little of a capacity that is asked for."""
    tainted: tuple[Offer, ...]
    free: int
    incomplete: tuple[PoolId, ...]
    """Pools of which slices are missing, so that they offer no devices."""


@final
class DeviceInventory:
    """The devices of the cluster. It raises nothing: where selectors fail or take long, nothing is known."""

    def __init__(self, objects: ClusterObjects, features: DeviceFeatures) -> None:
        rules = objects.device_taint_rules.values() if features.taint_rules else ()
        self._slices = Slices(TaintedSlices().of(objects.resource_slices, rules), features)
        self._claims = objects.resource_claims
        self._allocated = allocated_state_of(self._claims.values())
        self._features = features
        self._matches = Matches()
        self._allowance = Allowance(steps=_STEPS)

    def on(self, node: Node, wanted: DeviceRequestAlternative) -> NodeDevices | None:
        """Returns what the node has for a request; None if that is not known."""
        try:
            return self._on(node, wanted)
        except (AllocationError, OutOfStepsError):
            return None

    def holders(self, devices: Iterable[DeviceId]) -> Iterator[ResourceClaim]:
        """Yields the claims that hold any of the devices."""
        wanted = {*devices}
        for claim in self._claims.values():
            results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
            if any(DeviceId(each.driver, each.pool, each.device) in wanted for each in results):
                yield claim

    def _on(self, node: Node, wanted: DeviceRequestAlternative) -> NodeDevices:
        pools = self._slices.pools_for(node)
        offers = [offer for pool in pools for offer in pool.offers if self._slices.is_for(offer, node)]
        is_match = partial(self._matches.matches, allowance=self._allowance)
        of_class = [offer for offer in offers if replace(wanted, selectors=()).matches(offer, is_match)]
        matching = [offer for offer in of_class if wanted.matches(offer, is_match)]
        held: list[DeviceId] = []
        small: list[Offer] = []
        tainted: list[Offer] = []
        for offer in matching:
            is_shared = bool(offer.device.allow_multiple_allocations)
            taken = self._allocated.capacity.get(offer.id, {}) if is_shared else {}
            if offer.id in self._allocated.devices or (offer.id in self._allocated.shared and not is_shared):
                held.append(offer.id)
            elif not has_capacity(wanted.capacity, offer, taken, in_fractions=self._features.fractional_ranges):
                small.append(offer)
            elif self._features.taints and not wanted.tolerates(offer):
                tainted.append(offer)
        return NodeDevices(
            there=len(offers),
            of_class=len(of_class),
            matching=len(matching),
            held=tuple(held),
            small=tuple(small),
            tainted=tuple(tainted),
            free=len(matching) - len(held) - len(small) - len(tainted),
            incomplete=tuple(pool.id for pool in pools if pool.is_incomplete),
        )
