"""AllocatedState: the devices of the cluster that allocated claims hold.

Upstream: framework/plugins/dynamicresources/allocateddevices.go, foreachAllocatedDevice;
dynamic-resource-allocation/structured/schedulerapi/types.go (v1.36.2).
"""

from collections.abc import Iterable, Mapping
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


PoolState = frozenset[tuple[DeviceId, bool, tuple[tuple[str, int], ...]]]
"""The devices of a pool that are in use: whether as a whole, and what is consumed of their capacities."""


@final
@dataclass(frozen=True, slots=True)
class AllocatedState:
    """Devices that are allocated as a whole, devices that are shared, and what is consumed of those."""

    devices: set[DeviceId] = field(default_factory=set)
    shared: set[DeviceId] = field(default_factory=set)
    capacity: dict[DeviceId, Amounts] = field(default_factory=dict)

    def by_pool(self) -> Mapping[PoolId, PoolState]:
        """Returns what is allocated of each pool; two states of a pool are equal if the same is left of it."""
        devices: dict[PoolId, list[tuple[DeviceId, bool, tuple[tuple[str, int], ...]]]] = {}
        for device in self.devices | self.shared:
            consumed = tuple(sorted(self.capacity.get(device, {}).items()))
            devices.setdefault(PoolId(device.driver, device.pool), []).append((device, device in self.devices, consumed))
        return {pool: frozenset(states) for pool, states in devices.items()}

    def is_in_use(self, device: DeviceId) -> bool:
        """True if the device is allocated, as a whole or in part."""
        return device in self.devices or device in self.shared


def allocated_state_of(claims: Iterable[ResourceClaim]) -> AllocatedState:
    """Returns everything that the claims hold. Admin access holds nothing."""
    state = AllocatedState()
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                state.devices.add(device)
                continue
            state.shared.add(device)
            if result.consumed_capacity:
                consumed = {name: nanos_of(amount) for name, amount in result.consumed_capacity.items()}
                add_amounts(state.capacity.setdefault(device, {}), consumed)
    return state


def add_amounts(to: Amounts, amounts: Amounts, sign: int = 1) -> None:
    """Adds every amount, or subtracts it with sign -1."""
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + sign * amount
