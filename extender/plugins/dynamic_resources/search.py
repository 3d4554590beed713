"""The search for devices on one node: every request in turn, the first devices that fit, and back if that leads nowhere.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocateOne, allocateDevice (v1.36.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from extender.objects.node import Node
from extender.plugins.dynamic_resources import capacities
from extender.plugins.dynamic_resources.constraints import AttributeConstraint
from extender.plugins.dynamic_resources.counters import SharedCounters
from extender.plugins.dynamic_resources.errors import AllocationError
from extender.plugins.dynamic_resources.pools import Offer
from extender.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.plugins.dynamic_resources.results import Pick
from extender.plugins.dynamic_resources.selection import Selection
from extender.plugins.dynamic_resources.taken import Amounts, DeviceId, Taken, add_amounts

MOST_RESULTS: Final = 32
"""Devices that a claim can hold. Upstream: resourceapi.AllocationResultsMaxSize."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A wish on a certain node."""

    wish: DeviceRequestAlternative
    count: int
    all_of_them: tuple[Offer, ...] | None = None
    """The devices that a wish for all devices means; None for other wishes."""


class _TooManyDevicesError(Exception):
    """The claim would hold more than MOST_RESULTS devices; only an alternative with fewer can help."""


@final
@dataclass(slots=True)
class _Using:
    """How a device is used by what was found so far: by which claims as a whole, or how often in part and what is taken of its capacity."""

    claims: set[int] = field(default_factory=set)
    shares: int = 0
    capacity: Amounts = field(default_factory=dict)


@final
class Search:
    """One search on one node. The methods call each other until all claims are served; each undoes what it did if it fails.

    Devices of one request are taken in their order only: the other orders would be the same allocation.
    """

    def __init__(
        self,
        node: Node,
        offers: Sequence[Offer],
        demands: Sequence[Sequence[Sequence[Demand]]],
        constraints: Sequence[Sequence[AttributeConstraint]],
        taken: Taken,
        selection: Selection,
    ) -> None:
        """Nothing is found yet.

        Arguments:
            offers: the devices for the node, in the order in which they are tried.
            demands: per claim, per request: the alternatives.
            constraints: per claim; they know of no device yet.
        """
        self.picks: list[list[Pick]] = [[] for _ in demands]
        """Per claim: the devices found so far."""
        self._node = node
        self._offers = offers
        self._demands = demands
        self._constraints = constraints
        self._taken = taken
        self._selection = selection
        self._counters = SharedCounters(taken)
        self._using: dict[DeviceId, _Using] = {}

    def find(self) -> bool:
        """Serve all claims; then `picks` has their devices.

        Raises:
            AllocationError: a selector, slice or constraint is wrong.
            TimedOutError: the time is up.
        """
        try:
            return self._find_for_claim(0)
        except RecursionError as exc:
            # Every device is some calls deeper; claims hold few, but a pod may have any number of claims.
            raise AllocationError("the claims of the pod have more devices together than can be allocated at once") from exc

    def _find_for_claim(self, claim: int) -> bool:
        """Serve this claim and all that follow."""
        return claim == len(self._demands) or self._find_for_request(claim, 0)

    def _find_for_request(self, claim: int, request: int) -> bool:
        if request == len(self._demands[claim]):
            try:
                return self._find_for_claim(claim + 1)
            except _TooManyDevicesError:
                # Another choice for this claim may leave a smaller alternative to a later one.
                return False
        alternatives = self._demands[claim][request]
        if not alternatives[0].wish.alternative:
            return self._find_devices(claim, request, alternatives[0], 0, 0)
        has_room = False
        for demand in alternatives:
            try:
                if self._find_devices(claim, request, demand, 0, 0):
                    return True
                has_room = True
            except _TooManyDevicesError:
                continue
        if not has_room:
            raise _TooManyDevicesError
        return False

    def _find_devices(self, claim: int, request: int, demand: Demand, found: int, start: int) -> bool:
        """Find the devices that a demand still lacks, and go on with the next request.

        Arguments:
            found: how many it has.
            start: the first device on offer to look at.
        """
        self._selection.check_time()
        if demand.all_of_them is not None and not demand.all_of_them:
            return False
        if found >= demand.count:
            return self._find_for_request(claim, request + 1)
        if len(self.picks[claim]) + demand.count - found > MOST_RESULTS:
            raise _TooManyDevicesError
        if demand.all_of_them is not None:
            return self._find_with(claim, request, demand, demand.all_of_them[found], found, 0)
        for place in range(start, len(self._offers)):
            offer = self._offers[place]
            if self._may_have(claim, demand.wish, offer) and self._find_with(claim, request, demand, offer, found, place + 1):
                return True
        return False

    def _find_with(self, claim: int, request: int, demand: Demand, offer: Offer, found: int, start: int) -> bool:
        """Go on with this device, if it can be had."""
        if not self._take(claim, demand, offer):
            return False
        is_found = False
        try:
            is_found = self._find_devices(claim, request, demand, found + 1, start)
        finally:
            if not is_found:
                self._give_back(claim, demand.wish, offer)
        return is_found

    def _may_have(self, claim: int, wish: DeviceRequestAlternative, offer: Offer) -> bool:
        """Whether the device is free, selected and large enough; what is cheap to know is asked first."""
        if self._is_in_use(claim, wish, offer):
            return False
        return self._selection.has(wish, offer, self._node) and self._is_left(wish, offer)

    def _is_in_use(self, claim: int, wish: DeviceRequestAlternative, offer: Offer) -> bool:
        using = self._using.get(offer.id)
        if wish.has_admin_access:
            return using is not None and claim in using.claims
        return offer.id in self._taken.devices or (using is not None and bool(using.claims))

    def _is_left(self, wish: DeviceRequestAlternative, offer: Offer) -> bool:
        taken = self._taken.capacity.get(offer.id, {})
        using = self._using.get(offer.id)
        if using is not None and using.shares:
            taken = dict(taken)
            add_amounts(taken, using.capacity)
        return capacities.is_left(wish.capacity, offer.device, taken)

    def _take(self, claim: int, demand: Demand, offer: Offer) -> bool:
        """Take the device, if counters, taints and constraints allow it."""
        wish = demand.wish
        if self._is_in_use(claim, wish, offer) or not self._is_left(wish, offer) or not wish.tolerates(offer):
            return False
        if self._needs_counters(offer) and not self._counters.take(offer):
            return False
        if not self._meets_constraints(claim, demand, offer):
            if self._needs_counters(offer):
                self._counters.give_back(offer)
            return False
        using = self._using.setdefault(offer.id, _Using())
        consumed: Amounts = {}
        if offer.device.allow_multiple_allocations:
            consumed = capacities.consumed_by(wish.capacity, offer.device)
            add_amounts(using.capacity, consumed)
            using.shares += 1
        else:
            using.claims.add(claim)
        self.picks[claim].append(Pick(wish, offer, consumed))
        return True

    def _give_back(self, claim: int, wish: DeviceRequestAlternative, offer: Offer) -> None:
        """Undo `_take`; always the last device taken."""
        pick = self.picks[claim].pop()
        using = self._using[offer.id]
        add_amounts(using.capacity, pick.consumed, -1)
        if offer.device.allow_multiple_allocations:
            using.shares -= 1
        else:
            using.claims.discard(claim)
        if self._needs_counters(offer):
            self._counters.give_back(offer)
        for constraint in self._concerned(claim, wish):
            constraint.remove(wish.request)

    def _needs_counters(self, offer: Offer) -> bool:
        """Whether the device would be new in use: a device that is shared already has its counters."""
        if not offer.device.allow_multiple_allocations:
            return True
        using = self._using.get(offer.id)
        return offer.id not in self._taken.shared and (using is None or not using.shares)

    def _meets_constraints(self, claim: int, demand: Demand, offer: Offer) -> bool:
        wish = demand.wish
        added: list[AttributeConstraint] = []
        for constraint in self._concerned(claim, wish):
            if not constraint.add(wish.request, offer):
                for earlier in added:
                    earlier.remove(wish.request)
                if demand.all_of_them is not None:
                    raise AllocationError(
                        f"claim {wish.claim.key}, request {wish.name}: cannot add device {offer.id} because a claim constraint "
                        "would not be satisfied"
                    )
                return False
            added.append(constraint)
        return True

    def _concerned(self, claim: int, wish: DeviceRequestAlternative) -> list[AttributeConstraint]:
        return [constraint for constraint in self._constraints[claim] if constraint.concerns(wish.request, wish.full_name)]
