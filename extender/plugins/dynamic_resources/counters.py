"""SharedCounters that the devices of a pool share, so that a physical device can be cut into partitions in several ways.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, checkAvailableCounters (v1.36.2).
"""

from typing import final

from extender.objects.devices import Device
from extender.objects.quantity import nanos_of
from extender.plugins.dynamic_resources.pools import Offer, Pool
from extender.plugins.dynamic_resources.taken import Amounts, DeviceId, Taken, add_amounts

CounterSets = dict[str, Amounts]
"""Counter set -> counter -> nanos."""


@final
class SharedCounters:
    """What is left of the counters of every pool, as devices are tried and given back."""

    __slots__ = ("_left", "_taken")

    def __init__(self, taken: Taken) -> None:
        self._taken = taken
        self._left: dict[Pool, CounterSets] = {}

    def take(self, offer: Offer) -> bool:
        """Take what the device consumes, if all of it is left."""
        if not offer.device.consumes_counters:
            return True
        left = self._left_of(offer.pool)
        _consume(left, offer.device, -1)
        # A counter may be overdrawn from the start; upstream then has no room for any device of the pool.
        if all(amount >= 0 for amounts in left.values() for amount in amounts.values()):
            return True
        _consume(left, offer.device, +1)
        return False

    def give_back(self, offer: Offer) -> None:
        """Undo `take`."""
        if offer.device.consumes_counters:
            _consume(self._left_of(offer.pool), offer.device, +1)

    def _left_of(self, pool: Pool) -> CounterSets:
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = {name: dict(amounts) for name, amounts in pool.counters.items()}
            for resource_slice in pool.slices:
                for device in resource_slice.spec.devices:
                    if self._taken.has_any_of(DeviceId(pool.id.driver, pool.id.name, device.name)):
                        _consume(left, device, -1)
        return left


def _consume(left: CounterSets, device: Device, sign: int) -> None:
    for consumption in device.consumes_counters:
        amounts = {name: nanos_of(counter.value) for name, counter in consumption.counters.items()}
        add_amounts(left.setdefault(consumption.counter_set, {}), amounts, sign)
