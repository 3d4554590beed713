"""AllocatedState: the devices of the cluster that allocated claims hold.

Upstream: framework/plugins/dynamicresources/allocateddevices.go, foreachAllocatedDevice;
dynamic-resource-allocation/structured/schedulerapi/types.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import msgspec

from extender.values.objects.devices import DeviceRequestAllocationResult, ResourceClaim
from extender.values.objects.quantity import nanos_of


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
"""Name of a capacity or counter -> nanos. Capacities have their short names."""


PoolState = frozenset[tuple[DeviceId, bool, tuple[tuple[str, int], ...]]]
"""The devices of a pool in use: (device, whether allocated as a whole, consumed capacities)."""


@final
class AllocatedState(msgspec.Struct, frozen=True):
    """Devices allocated as a whole, shared devices, and the consumed capacities of these."""

    devices: set[DeviceId] = msgspec.field(default_factory=set)
    shared: set[DeviceId] = msgspec.field(default_factory=set)
    capacity: dict[DeviceId, Amounts] = msgspec.field(default_factory=dict)
    versions: dict[PoolId, int] = msgspec.field(default_factory=dict)
    """If states of one `AllocatedDevices` have the same version of a pool, its allocations are equal; 0: never used."""

    def by_pool(self) -> Mapping[PoolId, PoolState]:
        """Returns the devices in use by pool; equal values leave the same devices free."""
        devices: dict[PoolId, list[tuple[DeviceId, bool, tuple[tuple[str, int], ...]]]] = {}
        for device in self.devices | self.shared:
            consumed = tuple(sorted(self.capacity.get(device, {}).items()))
            devices.setdefault(PoolId(device.driver, device.pool), []).append(
                (device, device in self.devices, consumed)
            )
        return {pool: frozenset(states) for pool, states in devices.items()}

    def is_in_use(self, device: DeviceId) -> bool:
        """True if the device is allocated, as a whole or in part."""
        return device in self.devices or device in self.shared

    def version_of(self, pool: PoolId) -> int:
        return self.versions.get(pool, 0)


def allocated_state_of(claims: Iterable[ResourceClaim]) -> AllocatedState:
    """Returns everything that the claims hold."""
    return AllocatedDevices().held_by(claims)


@final
@dataclass(slots=True, eq=False)
class AllocatedDevices:
    """The devices that claims hold, from one cycle to the next. State: the last cycle's claims and devices.

    A cycle follows only the claims that have changed; upstream follows the events of claims.
    """

    _claims: dict[int, ResourceClaim] = field(default_factory=dict)
    """By id(claim); the claim is kept, so that no other one can get its id."""
    _wholes: Counter[DeviceId] = field(default_factory=Counter)
    """The number of claims with the whole device; a claim counts twice while it is pending and written."""
    _shares: Counter[DeviceId] = field(default_factory=Counter)
    _state: AllocatedState = field(default_factory=AllocatedState)
    _last_version: int = 0

    def held_by(self, claims: Iterable[ResourceClaim]) -> AllocatedState:
        """Returns what the claims hold, admin access excepted, as a value that threads may use."""
        now = dict(zip(map(id, listed := list(claims)), listed, strict=True))
        removed, added = self._claims.keys() - now.keys(), now.keys() - self._claims.keys()
        changes = [(self._claims[claim_id], -1) for claim_id in removed] + [(now[claim_id], +1) for claim_id in added]
        self._claims = now
        if any(claim.status.allocation is not None for claim, _ in changes):
            old = self._state
            self._state = AllocatedState(set(old.devices), set(old.shared), dict(old.capacity), dict(old.versions))
            self._last_version += 1
            for claim, sign in changes:
                self._apply(claim, sign)
        return self._state

    def _apply(self, claim: ResourceClaim, sign: int) -> None:
        state = self._state
        for result in results_of(claim):
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            state.versions[PoolId(result.driver, result.pool)] = self._last_version
            if result.share_id is None:
                _count(self._wholes, device, sign, state.devices)
                continue
            _count(self._shares, device, sign, state.shared)
            if result.consumed_capacity:
                # A dictionary of its own for this state: earlier ones keep theirs.
                consumed = dict(state.capacity.get(device, {}))
                for name, amount in result.consumed_capacity.items():
                    add_amounts(consumed, {short_name(name, result.driver): nanos_of(amount)}, sign)
                state.capacity[device] = consumed
            if device not in state.shared:
                state.capacity.pop(device, None)


def _count(holders: Counter[DeviceId], device: DeviceId, sign: int, devices: set[DeviceId]) -> None:
    holders[device] += sign
    if holders[device]:
        devices.add(device)
    else:
        del holders[device]
        devices.discard(device)


def results_of(claim: ResourceClaim) -> Sequence[DeviceRequestAllocationResult]:
    """Returns the devices that are allocated to the claim, none before it is allocated."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


def short_name(name: str, driver: str) -> str:
    """Returns the name of a capacity without the domain, if that is the driver's own."""
    return name.removeprefix(f"{driver}/")


def add_amounts(to: Amounts, amounts: Amounts, sign: int = 1) -> None:
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + sign * amount
