"""Allocator: allocates the claims of a pod on one node after the other.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import msgspec

from extender.engine.plugins.dynamic_resources import suitable_devices
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedState
from extender.engine.plugins.dynamic_resources.constraints import constraints_of
from extender.engine.plugins.dynamic_resources.device_features import ALL_FEATURES, DeviceFeatures
from extender.engine.plugins.dynamic_resources.pod_claims import each_once
from extender.engine.plugins.dynamic_resources.pools import AllocationError, NodeAllocationError, Pool, Slices
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative, alternatives_of
from extender.engine.plugins.dynamic_resources.results import allocation_result
from extender.engine.plugins.dynamic_resources.search import CLAIM_RESULTS, Demand, Search
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, Selection
from extender.engine.plugins.dynamic_resources.suitable_devices import SuitableDevices
from extender.values.objects.devices import AllocationResult, DeviceClass, ResourceClaim
from extender.values.objects.node import Node

FIRST_REQUEST_STEPS: Final = 3
"""The steps that each request counts for when the claims are read first."""


@final
class NodeAllocation(msgspec.Struct, frozen=True):
    """An allocation for each unallocated claim of the pod on one node, or the reason why there is none."""

    allocations: tuple[AllocationResult, ...] = ()
    refusal: str = ""
    names_claim: bool = False
    """Whether the refusal holds for this claim alone."""
    error: AllocationError | None = None
    """A claim, class or slice is invalid, so that the cycle fails."""
    num_pools: int | None = None
    """The result depends on this many of the node's first pools; None: on all."""


_NOT_ENOUGH: Final = NodeAllocation(refusal="cannot allocate all claims")


@final
@dataclass(slots=True, eq=False)
class Allocator:
    """Allocates the same claims on any node, and computes once what no node changes."""

    claims: Sequence[ResourceClaim]
    classes: Mapping[str, DeviceClass]
    slices: Slices
    allocated: AllocatedState
    matches: Matches
    features: DeviceFeatures = ALL_FEATURES
    suitable: SuitableDevices = field(default_factory=dict)
    """The results of earlier searches for claims of the same content, slices and classes."""
    _alternatives: list[list[list[DeviceRequestAlternative]]] | None = None

    def allocate(self, node: Node, allowance: Allowance) -> NodeAllocation:
        """Returns allocations for the claims on the node.

        Raises AllocationError for an invalid claim, class or slice, NodeAllocationError if a pool of the node is
        invalid and the others have not enough devices, or is incomplete or invalid and all devices are asked for, and
        as `Allowance.spend`.
        """
        num_requests = sum(len(claim.spec.devices.requests) for claim in self.claims)
        allowance.spend(1 + num_requests * (1 if self._alternatives is not None else FIRST_REQUEST_STEPS))
        selection = Selection(self.slices, self.matches, allowance, self.features)
        pools = self.slices.pools_for(node)
        demands = self._demands(node, pools, selection)
        constraints = [constraints_of(claim) for claim in self.claims]
        search = Search(node, pools, demands, constraints, self.allocated, selection, self.suitable)
        if search.find():
            results = tuple(
                allocation_result(claim, picks, node) for claim, picks in zip(self.claims, search.picks, strict=True)
            )
            return NodeAllocation(results, num_pools=search.num_pools)
        if any(pool.is_invalid for pool in pools):
            raise NodeAllocationError("invalid resource pools were encountered")
        return _NOT_ENOUGH

    def _demands(self, node: Node, pools: Sequence[Pool], selection: Selection) -> list[list[list[Demand]]]:
        if self._alternatives is None:
            of_each = {id(claim): alternatives_of(claim, self.classes) for claim in each_once(self.claims)}
            self._alternatives = [of_each[id(claim)] for claim in self.claims]
        demands = [
            [[self._demand(alternative, node, pools, selection) for alternative in request] for request in requests]
            for requests in self._alternatives
        ]
        for claim, requests in zip(self.claims, demands, strict=True):
            count = sum(min(demand.count for demand in alternatives) for alternatives in requests)
            if count > CLAIM_RESULTS:
                raise AllocationError(
                    f"claim {claim.key}: number of requested devices {count} exceeds the claim limit of {CLAIM_RESULTS}"
                )
        return demands

    def _demand(
        self, alternative: DeviceRequestAlternative, node: Node, pools: Sequence[Pool], selection: Selection
    ) -> Demand:
        if alternative.count is not None:
            return Demand(alternative, alternative.count)
        for pool in pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                # Other nodes may do (kubernetes#141898).
                raise NodeAllocationError(
                    f"claim {alternative.claim.key}, request {alternative.name}: asks for all devices, but resource "
                    f"pool {pool.id} is currently {state}",
                    names_claim=True,
                )
        all_devices = tuple(
            offer
            for pool in pools
            for offer in pool.offers
            if selection.selects(alternative, offer, node)
            # One that would be large enough, but for what others have of it, belongs to all (kubernetes#140769).
            and suitable_devices.has_capacity(
                alternative.capacity, offer, {}, in_fractions=self.features.fractional_ranges
            )
        )
        return Demand(alternative, len(all_devices), all_devices)
