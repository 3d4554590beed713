"""What allocated claims have taken of the cluster's devices.

Upstream: framework/plugins/dynamicresources/allocateddevices.go, foreachAllocatedDevice;
dynamic-resource-allocation/structured/schedulerapi/types.go (v1.36.2).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

from extender.objects.devices import ResourceClaim
from extender.objects.quantity import nanos_of


class PoolId(NamedTuple):
    """A pool of a driver."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class DeviceId(NamedTuple):
    """A device of a pool."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


NANO = 10**9

Amounts = dict[str, int]
"""Name of a capacity or counter -> nanos."""


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """Devices that are taken as a whole, devices that are shared, and what is taken of those."""

    devices: set[DeviceId] = field(default_factory=set)
    shared: set[DeviceId] = field(default_factory=set)
    capacity: dict[DeviceId, Amounts] = field(default_factory=dict)

    def has_any_of(self, device: DeviceId) -> bool:
        """Whether the device is in use, wholly or in part."""
        return device in self.devices or device in self.shared


def taken_by(claims: Iterable[ResourceClaim]) -> Taken:
    """Everything that the claims hold. Admin access holds nothing."""
    taken = Taken()
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                taken.devices.add(device)
                continue
            taken.shared.add(device)
            if result.consumed_capacity:
                consumed = {name: nanos_of(amount) for name, amount in result.consumed_capacity.items()}
                add_amounts(taken.capacity.setdefault(device, {}), consumed)
    return taken


def add_amounts(to: Amounts, amounts: Amounts, sign: int = 1) -> None:
    """Add every amount, or take it away again with sign -1."""
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + sign * amount
