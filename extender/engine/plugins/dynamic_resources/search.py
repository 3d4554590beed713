"""Search: the search for devices on one node. Each request in turn takes the first devices that fit, with backtracking.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocateOne,
allocateDevice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

import msgspec

from extender.engine.plugins.dynamic_resources import suitable_devices
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState, Amounts, DeviceId, add_amounts
from extender.engine.plugins.dynamic_resources.constraints import AttributeConstraint
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer, Pool
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.engine.plugins.dynamic_resources.results import Pick
from extender.engine.plugins.dynamic_resources.selection import Selection
from extender.engine.plugins.dynamic_resources.suitable_devices import Block, Line, SuitableDevices
from extender.values.objects.devices import Device
from extender.values.objects.node import Node
from extender.values.objects.quantity import nanos_of

CounterSets = dict[str, Amounts]
"""Counter set -> counter -> nanos."""


@final
@dataclass(slots=True, eq=False)
class SharedCounters:
    """The remaining counters of every pool, while devices are tried and given back.

    A pool's devices share counters, so that a physical device can be partitioned in several ways
    (checkAvailableCounters).
    """

    allocated: AllocatedState
    _left: dict[Pool, CounterSets] = field(default_factory=dict)

    def take(self, offer: Offer) -> bool:
        """Takes what the device consumes, if all of it is left; returns whether it did."""
        if not offer.device.consumes_counters:
            return True
        counters = self._left_of(offer.pool)
        _consume(counters, offer.device, -1)
        # A counter may be overdrawn from the start; like upstream, this leaves no room for any device of the pool.
        if all(amount >= 0 for amounts in counters.values() for amount in amounts.values()):
            return True
        _consume(counters, offer.device, +1)
        return False

    def give_back(self, offer: Offer) -> None:
        if offer.device.consumes_counters:
            _consume(self._left_of(offer.pool), offer.device, +1)

    def _left_of(self, pool: Pool) -> CounterSets:
        counters = self._left.get(pool)
        if counters is None:
            counters = self._left[pool] = {name: dict(amounts) for name, amounts in pool.counters.items()}
            for resource_slice in pool.slices:
                for device in resource_slice.spec.devices:
                    if self.allocated.is_in_use(DeviceId(pool.id.driver, pool.id.name, device.name)):
                        _consume(counters, device, -1)
        return counters


def _consume(counter_sets: CounterSets, device: Device, sign: int) -> None:
    for consumption in device.consumes_counters:
        amounts = {name: nanos_of(counter.value) for name, counter in consumption.counters.items()}
        add_amounts(counter_sets.setdefault(consumption.counter_set, {}), amounts, sign)


Place = tuple[int, int]
"""A device on offer: the number of its block, and its place there."""
BEGINNING: Final = (0, 0)
SKIPPED_PER_STEP: Final = 8
"""Blocks that are skipped in the time of a step."""
IN_USE_PER_STEP: Final = 4
"""Devices in use that are skipped in the time of a step."""
CLAIM_RESULTS: Final = 32
"""The number of devices that a claim can hold. Upstream: resourceapi.AllocationResultsMaxSize."""


@final
class Demand(msgspec.Struct, frozen=True, eq=False):
    """A request alternative on one node."""

    alternative: DeviceRequestAlternative
    count: int
    all_devices: tuple[Offer, ...] | None = None
    """The devices that match a request for all devices; None for other requests."""


class _TooManyDevicesError(Exception):
    """The claim would hold more than CLAIM_RESULTS devices; only an alternative with fewer can help."""


@final
@dataclass(slots=True)
class _Use:
    """The use of a device so far: by claims as a whole, or in shares of its capacity."""

    claims: set[int] = field(default_factory=set)
    shares: int = 0
    capacity: Amounts = field(default_factory=dict)


@final
@dataclass(slots=True, eq=False)
class Search:
    """One search on one node. The methods recurse until all claims have devices; each undoes its changes if it fails.

    Devices of one request are only tried in order: other orders would give the same allocation.
    """

    node: Node
    pools: Sequence[Pool]
    """The node's pools in order."""
    demands: Sequence[Sequence[Sequence[Demand]]]
    """For each claim the alternatives of its requests."""
    constraints: Sequence[Sequence[AttributeConstraint]]
    """For each claim the attributes that its devices must share, or must not share."""
    allocated: AllocatedState
    selection: Selection
    suitable: SuitableDevices
    picks: list[list[Pick]] = field(init=False)
    """Per claim, the devices found so far."""
    _counters: SharedCounters = field(init=False)
    _using: dict[DeviceId, _Use] = field(default_factory=dict)
    _lines: dict[tuple[int, str], Line] = field(default_factory=dict)
    _num_skipped: int = 0

    def __post_init__(self) -> None:
        self.picks = [[] for _ in self.demands]
        self._counters = SharedCounters(self.allocated)

    @property
    def num_pools(self) -> int:
        """The number of first pools that the search has looked at; no other pool changes the result."""
        if any(
            demand.all_devices is not None
            for requests in self.demands
            for alternatives in requests
            for demand in alternatives
        ):
            return len(self.pools)
        return max((line.num_pools for line in self._lines.values()), default=0)

    def find(self) -> bool:
        """Finds devices for all claims, and leaves them in `picks`; returns whether it did.

        Raises AllocationError if a selector, slice or constraint is invalid, and as `Allowance.spend`.
        """
        try:
            return self._find_for_claim(0)
        except RecursionError as exc:
            # The recursion is some calls deep per device. A claim holds few, but a pod may have any number of claims.
            raise AllocationError(
                "the claims of the pod have more devices together than can be allocated at once"
            ) from exc

    def _find_for_claim(self, claim: int) -> bool:
        return claim == len(self.demands) or self._find_for_request(claim, 0)

    def _find_for_request(self, claim: int, request: int) -> bool:
        if request == len(self.demands[claim]):
            try:
                return self._find_for_claim(claim + 1)
            except _TooManyDevicesError:
                # Another choice for this claim may leave a smaller alternative to a later one.
                return False
        alternatives = self.demands[claim][request]
        if not alternatives[0].alternative.subrequest:
            return self._find_devices(claim, request, alternatives[0], 0, BEGINNING)
        has_room = False
        for demand in alternatives:
            try:
                if self._find_devices(claim, request, demand, 0, BEGINNING):
                    return True
                has_room = True
            except _TooManyDevicesError:
                continue
        if not has_room:
            raise _TooManyDevicesError
        return False

    def _find_devices(self, claim: int, request: int, demand: Demand, num_found: int, start: Place) -> bool:
        """Finds the devices that a demand lacks beyond the `num_found` ones, and goes on with the next request."""
        self.selection.allowance.spend()
        if demand.all_devices is not None and not demand.all_devices:
            return False
        if num_found >= demand.count:
            return self._find_for_request(claim, request + 1)
        if len(self.picks[claim]) + demand.count - num_found > CLAIM_RESULTS:
            raise _TooManyDevicesError
        if demand.all_devices is not None:
            return self._find_with(claim, request, demand, demand.all_devices[num_found], num_found, BEGINNING)
        line, constraints = self._line(claim, demand), self._concerned(claim, demand.alternative)
        number, first = start
        while (block := line.block(number)) is not None:
            if block.is_checked and any(constraint.excludes(block) for constraint in constraints):
                number, first = number + 1, 0
                if number % SKIPPED_PER_STEP == 0:
                    self.selection.allowance.spend()
                continue
            for place in range(first, len(block.offers)):
                offer = block.offers[place]
                if self._is_available(
                    claim, demand.alternative, offer, is_checked=block.is_checked
                ) and self._find_with(claim, request, demand, offer, num_found, (number, place + 1)):
                    return True
            number, first = number + 1, 0
        return False

    def _line(self, claim: int, demand: Demand) -> Line:
        request = demand.alternative.full_name
        line = self._lines.get((claim, request))
        if line is None:
            blocks_of, check = self.suitable.setdefault((claim, request), {}), partial(self._checked, claim, demand)
            line = self._lines[claim, request] = Line(blocks_of, self.pools, self.allocated, check)
        return line

    def _checked(self, claim: int, demand: Demand, pool: Pool) -> Block:
        """Returns the devices of the pool that a search for this demand alone could take.

        They are all of the pool if that depends on the node, or if some cannot be judged: whether a search comes to
        such a device is for the search to find.
        """
        if any(offer.slice.spec.per_device_node_selection for offer in pool.offers):
            return Block(pool.offers, is_checked=False)
        no_constraints = [()] * len(self.demands)
        alone = Search(self.node, (), self.demands, no_constraints, self.allocated, self.selection, self.suitable)
        try:
            return Block(
                tuple(offer for offer in pool.offers if alone._could_take(claim, demand, offer)), is_checked=True
            )
        except AllocationError:
            return Block(pool.offers, is_checked=False)

    def _could_take(self, claim: int, demand: Demand, offer: Offer) -> bool:
        if not self._is_available(claim, demand.alternative, offer) or not self._take(claim, demand, offer):
            return False
        self._give_back(claim, demand.alternative, offer)
        return True

    def _find_with(self, claim: int, request: int, demand: Demand, offer: Offer, num_found: int, start: Place) -> bool:
        if not self._take(claim, demand, offer):
            return False
        is_found = False
        try:
            is_found = self._find_devices(claim, request, demand, num_found + 1, start)
        finally:
            if not is_found:
                self._give_back(claim, demand.alternative, offer)
        return is_found

    def _is_available(
        self, claim: int, alternative: DeviceRequestAlternative, offer: Offer, *, is_checked: bool = False
    ) -> bool:
        if self._is_in_use(claim, alternative, offer):
            self._num_skipped += 1
            if self._num_skipped % IN_USE_PER_STEP == 0:
                self.selection.allowance.spend()
            return False
        if is_checked:
            self.selection.allowance.spend()
            return True
        return self.selection.selects(alternative, offer, self.node)

    def _is_in_use(self, claim: int, alternative: DeviceRequestAlternative, offer: Offer) -> bool:
        using = self._using.get(offer.id)
        if alternative.has_admin_access:
            return using is not None and claim in using.claims
        return offer.id in self.allocated.devices or (using is not None and bool(using.claims))

    def _has_capacity(self, alternative: DeviceRequestAlternative, offer: Offer) -> bool:
        consumed = self.allocated.capacity.get(offer.id, {})
        using = self._using.get(offer.id)
        if using is not None and using.shares:
            consumed = dict(consumed)
            add_amounts(consumed, using.capacity)
        return suitable_devices.has_capacity(
            alternative.capacity, offer, consumed, in_fractions=self.selection.features.fractional_ranges
        )

    def _take(self, claim: int, demand: Demand, offer: Offer) -> bool:
        """Takes the device if counters, taints and constraints allow it; returns whether it did."""
        alternative = demand.alternative
        if self._is_in_use(claim, alternative, offer) or not self._has_capacity(alternative, offer):
            return False
        if offer.device.consumes_counters and not self.selection.features.partitions:
            return False
        if self.selection.features.taints and not alternative.tolerates(offer):
            return False
        if self._needs_counters(offer) and not self._counters.take(offer):
            return False
        if not self._meets_constraints(claim, demand, offer):
            if self._needs_counters(offer):
                self._counters.give_back(offer)
            return False
        using = self._using.setdefault(offer.id, _Use())
        consumed: Amounts = {}
        if offer.device.allow_multiple_allocations:
            consumed = suitable_devices.consumed_by(
                alternative.capacity, offer, in_fractions=self.selection.features.fractional_ranges
            )
            add_amounts(using.capacity, consumed)
            using.shares += 1
        else:
            using.claims.add(claim)
        self.picks[claim].append(Pick(alternative, offer, consumed))
        return True

    def _give_back(self, claim: int, alternative: DeviceRequestAlternative, offer: Offer) -> None:
        """Undoes `_take`, for the device taken last."""
        pick = self.picks[claim].pop()
        using = self._using[offer.id]
        add_amounts(using.capacity, pick.consumed, -1)
        if offer.device.allow_multiple_allocations:
            using.shares -= 1
        else:
            using.claims.discard(claim)
        if self._needs_counters(offer):
            self._counters.give_back(offer)
        for constraint in self._concerned(claim, alternative):
            constraint.remove()

    def _needs_counters(self, offer: Offer) -> bool:
        """True if the device is not in use yet: a device that is already shared has consumed its counters."""
        if not offer.device.allow_multiple_allocations:
            return True
        using = self._using.get(offer.id)
        return offer.id not in self.allocated.shared and (using is None or not using.shares)

    def _meets_constraints(self, claim: int, demand: Demand, offer: Offer) -> bool:
        alternative = demand.alternative
        added: list[AttributeConstraint] = []
        for constraint in self._concerned(claim, alternative):
            if not constraint.add(offer):
                for earlier in added:
                    earlier.remove()
                if demand.all_devices is not None:
                    raise AllocationError(
                        f"claim {alternative.claim.key}, request {alternative.name}: cannot add device {offer.id} "
                        "because a claim constraint would not be satisfied"
                    )
                return False
            added.append(constraint)
        return True

    def _concerned(self, claim: int, alternative: DeviceRequestAlternative) -> list[AttributeConstraint]:
        return [
            constraint
            for constraint in self.constraints[claim]
            if constraint.concerns(alternative.request, alternative.full_name)
        ]
