"""Allocating claims on one node after the other.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocate (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from typing import final

from extender.objects.devices import AllocationResult, DeviceClass, ResourceClaim
from extender.objects.node import Node
from extender.plugins.dynamic_resources import capacities
from extender.plugins.dynamic_resources.constraints import constraints_of
from extender.plugins.dynamic_resources.errors import AllocationError, NodeAllocationError
from extender.plugins.dynamic_resources.pools import Pool, Slices
from extender.plugins.dynamic_resources.requests import DeviceRequestAlternative, wishes_of
from extender.plugins.dynamic_resources.results import allocation_result
from extender.plugins.dynamic_resources.search import MOST_RESULTS, Demand, Search
from extender.plugins.dynamic_resources.selection import Selection
from extender.plugins.dynamic_resources.taken import Taken


@final
class Allocator:
    """Looks for devices for the same claims on any node. What does not depend on the node is found out once."""

    __slots__ = ("_claims", "_classes", "_selection", "_slices", "_taken", "_wishes")

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        classes: Mapping[str, DeviceClass],
        slices: Slices,
        taken: Taken,
        selection: Selection,
    ) -> None:
        """Nothing is looked at yet."""
        self._claims = claims
        self._classes = classes
        self._slices = slices
        self._taken = taken
        self._selection = selection
        self._wishes: list[list[list[DeviceRequestAlternative]]] | None = None

    def allocate(self, node: Node) -> list[AllocationResult] | None:
        """An allocation for each claim, None if the node has not enough devices.

        Raises:
            AllocationError: a claim, class or slice is wrong.
            NodeAllocationError: a pool of the node is wrong, and the others have not enough devices.
            TimedOutError: the time is up.
        """
        self._selection.check_time()
        pools = self._slices.pools_for(node)
        demands = self._demands(node, pools)
        constraints = [constraints_of(claim) for claim in self._claims]
        offers = [offer for pool in pools for offer in pool.offers]
        search = Search(node, offers, demands, constraints, self._taken, self._selection)
        if search.find():
            return [allocation_result(claim, picks, node) for claim, picks in zip(self._claims, search.picks, strict=True)]
        if any(pool.is_invalid for pool in pools):
            raise NodeAllocationError("invalid resource pools were encountered")
        return None

    def _demands(self, node: Node, pools: Sequence[Pool]) -> list[list[list[Demand]]]:
        """Per claim, per request: the alternatives."""
        if self._wishes is None:
            self._wishes = [wishes_of(claim, self._classes) for claim in self._claims]
        demands = [[[self._demand(wish, node, pools) for wish in request] for request in requests] for requests in self._wishes]
        for claim, of_claim in zip(self._claims, demands, strict=True):
            least = sum(min(demand.count for demand in alternatives) for alternatives in of_claim)
            if least > MOST_RESULTS:
                raise AllocationError(f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}")
        return demands

    def _demand(self, wish: DeviceRequestAlternative, node: Node, pools: Sequence[Pool]) -> Demand:
        if wish.count is not None:
            return Demand(wish, wish.count)
        for pool in pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(
                    f"claim {wish.claim.key}, request {wish.name}: asks for all devices, but resource pool {pool.id} is currently {state}"
                )
        all_of_them = tuple(
            offer
            for pool in pools
            for offer in pool.offers
            if self._selection.has(wish, offer, node)
            and capacities.is_left(wish.capacity, offer.device, self._taken.capacity.get(offer.id, {}))
        )
        return Demand(wish, len(all_of_them), all_of_them)
