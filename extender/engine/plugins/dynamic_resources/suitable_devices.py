"""SuitableDevices: the devices of each pool that a request could have, given what allocated claims hold.

A search only takes devices away, so that it need not look at unsuitable ones again. In a cluster
whose first pools are used up this is most of a search.

A device that allows multiple allocations is shared until its capacity is used up; of other devices a request may demand
a minimum.

Upstream, for capacities: dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from extender.engine.plugins.dynamic_resources.allocated_state import NANO, AllocatedState, Amounts, short_name
from extender.engine.plugins.dynamic_resources.pools import Offer, Pool
from extender.values.objects.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceAttribute,
    DeviceCapacity,
)
from extender.values.objects.quantity import nanos_of


@final
@dataclass(slots=True, eq=False)
class Block:
    """Devices of one pool, in the order in which they are tried."""

    offers: Sequence[Offer]
    is_checked: bool = field(kw_only=True)
    """Whether they are those checked to be free, selected and large enough on any node, rather than all of the pool."""
    _values: dict[str, list[DeviceAttribute | None]] = field(default_factory=dict)

    def values_of(self, attribute: str) -> list[DeviceAttribute | None]:
        values = self._values.get(attribute)
        if values is None:
            values = []
            for offer in self.offers:
                if (value := attribute_of(offer, attribute)) not in values:
                    values.append(value)
            self._values[attribute] = values
        return values


SuitableDevices = dict[tuple[int, str], dict[Pool, tuple[int, Block]]]
"""Number of a claim and full name of a request -> pool -> (the version of the pool for which it holds, the devices).

Entries are added by the event loop and by the thread that does long work.
"""


@final
@dataclass(slots=True, eq=False)
class Line:
    """The devices that one search tries for a request, in blocks that are looked up as the search comes to them."""

    checked_blocks: dict[Pool, tuple[int, Block]]
    pools: Sequence[Pool]
    allocated: AllocatedState
    check: Callable[[Pool], Block]
    """Finds the devices of a pool without a valid block."""
    num_pools: int = 0
    """The number of pools that the search has come to."""
    _blocks: list[Block] = field(default_factory=list)
    _unchecked: Pool | None = None

    def block(self, number: int) -> Block | None:
        """Returns a block; None if there are not so many. Pools without any have none. Raises as `Allowance.spend`."""
        while number >= len(self._blocks):
            if self._unchecked is not None:
                # The search goes on behind this pool: later ones will be spared what cannot be had. A pool in which a
                # search ends is not checked, since its first free device is likely to do.
                pool, self._unchecked = self._unchecked, None
                self.checked_blocks[pool] = (self.allocated.version_of(pool.id), self.check(pool))
            if self.num_pools == len(self.pools):
                return None
            pool = self.pools[self.num_pools]
            self.num_pools += 1
            cached = self.checked_blocks.get(pool)
            if cached is None or cached[0] != self.allocated.version_of(pool.id):
                self._unchecked = pool
                self._blocks.append(Block(pool.offers, is_checked=False))
            elif cached[1].offers:
                self._blocks.append(cached[1])
        return self._blocks[number]


def attribute_of(offer: Offer, name: str) -> DeviceAttribute | None:
    """Returns the attribute of a fully qualified name; the device may omit the domain if it is the driver's."""
    attributes = offer.device.attributes
    domain, slash, identifier = name.partition("/")
    attribute = attributes.get(name)
    if attribute is None and slash and domain == offer.id.driver:
        attribute = attributes.get(identifier)
    return attribute


def consumed_by(requested: Mapping[str, int], offer: Offer, *, in_fractions: bool = False) -> Amounts:
    """Returns capacity (short name) -> the amount that a request consumes, rounded up to what the device allows.

    `in_fractions` is the feature gate DRAFractionalCapacityRange: ranges with fractions are computed in thousandths.
    """
    amounts, driver = _by_short_name(requested, offer), offer.id.driver
    return {
        short_name(name, driver): _consumed(amounts.get(short_name(name, driver)), capacity, in_fractions)
        for name, capacity in offer.device.capacity.items()
    }


def has_capacity(
    requested: Mapping[str, int], offer: Offer, consumed: Mapping[str, int], *, in_fractions: bool = False
) -> bool:
    """True if the device has what the request consumes beside the nanos taken so far, and allows these amounts.

    Capacities are requested, published and taken by their short or their qualified name (kubernetes#142202).
    """
    capacities = {short_name(name, offer.id.driver): capacity for name, capacity in offer.device.capacity.items()}
    if not _by_short_name(requested, offer).keys() <= capacities.keys():
        return False
    for name, amount in consumed_by(requested, offer, in_fractions=in_fractions).items():
        capacity = capacities[name]
        if capacity.request_policy is not None and not _is_allowed(amount, capacity.request_policy, in_fractions):
            return False
        if amount < 0 or consumed.get(name, 0) + amount > nanos_of(capacity.value):
            return False
    return True


def _by_short_name(requested: Mapping[str, int], offer: Offer) -> Mapping[str, int]:
    return {short_name(name, offer.id.driver): amount for name, amount in requested.items()}


def _consumed(requested: int | None, capacity: DeviceCapacity, in_fractions: bool) -> int:
    policy = capacity.request_policy
    if requested is None:
        return nanos_of(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, _unit(policy.valid_range, in_fractions))
    return next((value for value in map(nanos_of, policy.valid_values) if requested <= value), requested)


def _rounded_up(requested: int, valid: CapacityRequestPolicyRange, unit: int) -> int:
    """Returns the smallest allowed amount that is enough, in multiples of the unit if there is a step."""
    minimum = nanos_of(valid.min or 0)
    if requested < minimum:
        return minimum
    if valid.step is None or not _multiple(nanos_of(valid.step), unit):
        return requested
    start, step = _multiple(minimum, unit), _multiple(nanos_of(valid.step), unit)
    return (start - (start - _multiple(requested, unit)) // step * step) * unit


def _is_allowed(amount: int, policy: CapacityRequestPolicy, in_fractions: bool) -> bool:
    if policy.default is not None and amount == nanos_of(policy.default):
        return True
    if policy.valid_range is not None:
        valid = policy.valid_range
        if valid.max is not None and amount > nanos_of(valid.max):
            return False
        unit = _unit(valid, in_fractions)
        step = _multiple(nanos_of(valid.step), unit) if valid.step is not None else 0
        return not step or (_multiple(amount, unit) - _multiple(nanos_of(valid.min or 0), unit)) % step == 0
    return not policy.valid_values or amount in map(nanos_of, policy.valid_values)


def _unit(valid: CapacityRequestPolicyRange, in_fractions: bool) -> int:
    """Returns the unit in nanos of computations in the range: a thousandth if a bound or the step has a fraction."""
    bounds = (bound for bound in (valid.min, valid.max, valid.step) if bound is not None)
    return NANO // 1000 if in_fractions and any(nanos_of(bound) % NANO for bound in bounds) else NANO


def _multiple(nanos: int, unit: int) -> int:
    return -(-nanos // unit)
