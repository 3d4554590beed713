"""Claims allocated on a node, for tests that read like tables."""

from collections.abc import Sequence

from extender.engine.plugins.dynamic_resources.allocated_state import allocated_state_of
from extender.engine.plugins.dynamic_resources.allocation import Allocator
from extender.engine.plugins.dynamic_resources.device_features import ALL_FEATURES, DeviceFeatures
from extender.engine.plugins.dynamic_resources.pools import Slices
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches
from extender.testing import make_node
from extender.values.objects.devices import ResourceClaim, ResourceSlice
from tests.kit.devices import Manifest, allocation_of, make_claim, make_device_class

NODE = make_node("n").label(zone="a").obj()

CLASSES = {
    "any": make_device_class("any"),
    "big": make_device_class("big", 'device.attributes["gpu.example.com"].size > 1'),
}


def holding(*devices: Manifest | str) -> ResourceClaim:
    """A claim that has devices of the pool."""
    return make_claim("holding", allocation=allocation_of(*devices))


def allocator(
    claims: Sequence[ResourceClaim],
    slices: Sequence[ResourceSlice],
    holders: Sequence[ResourceClaim] = (),
    features: DeviceFeatures = ALL_FEATURES,
) -> Allocator:
    """An allocator for the claims in a cluster with these slices, where some claims hold devices."""
    all_slices = Slices(slices, features)
    return Allocator(claims, CLASSES, all_slices, allocated_state_of(holders), Matches(), features)


def allocated(
    *claims: ResourceClaim,
    slices: Sequence[ResourceSlice],
    holders: Sequence[ResourceClaim] = (),
    features: DeviceFeatures = ALL_FEATURES,
) -> list[list[str]] | None:
    """`request=device` of every claim; None if the node has not enough devices."""
    allocations = allocator(claims, slices, holders, features).allocate(NODE, Allowance()).allocations
    if not allocations:
        return None
    return [
        [f"{result.request}={result.device}" for result in allocation.devices.results] for allocation in allocations
    ]
