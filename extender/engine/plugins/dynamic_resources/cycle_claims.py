"""ClaimsOfCycle: the claims of a pod in one cycle.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, stateData; claims.go (v1.36.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from extender.engine.plugins.dynamic_resources.allocated_state import PoolId, PoolState
from extender.engine.plugins.dynamic_resources.node_allocations import LongSearch, NodeAllocation
from extender.engine.plugins.dynamic_resources.node_claims import ClaimsToAllocate, ExtendedRequests, NodeClaims
from extender.engine.plugins.dynamic_resources.selection import Allowance
from extender.engine.snapshot.axes import Mask
from extender.values.objects.devices import AllocationResult, ResourceClaim


@final
@dataclass(frozen=True, slots=True)
class ClaimsOfCycle:
    """The claims of the pod, and what the cycle finds out about them."""

    claims: tuple[ResourceClaim, ...] = ()
    """Those of its spec."""
    unavailable: tuple[tuple[ResourceClaim, Mask], ...] = ()
    """(allocated claim, (N,) the nodes from which its devices cannot be used)."""
    extended: ExtendedRequests | None = None
    """The extended resources that need a special claim on some nodes; None if no device class backs any."""
    to_allocate: NodeClaims | None = None
    """For the unallocated claims and the special claim; None if there is nothing to allocate."""
    allowance: Allowance = field(default_factory=Allowance)
    """What the searches of the cycle may still spend."""
    long_search: LongSearch | None = None
    """The search in a thread, if one was begun in an earlier cycle of the attempt."""
    in_use: Mapping[PoolId, PoolState] = field(default_factory=dict)
    """The devices that are in use, for the long search."""
    node_allocations: dict[str, NodeAllocation] = field(default_factory=dict)
    """Node -> the result of the allocator there. It does not depend on the pods of the node, so that one search is
    enough.
    """
    claims_on: dict[str, ClaimsToAllocate] = field(default_factory=dict)
    """Node -> the claims that the result is for."""
    reserved: dict[str, AllocationResult] = field(default_factory=dict)
    """Claim -> the allocation that Reserve chose."""
    written: dict[str, ResourceClaim] = field(default_factory=dict)
    """Claim -> the claim as PreBind wrote it."""
    created: dict[str, ResourceClaim] = field(default_factory=dict)
    """Special claim in memory -> the claim that PreBind created for it."""
    uncertain: set[str] = field(default_factory=set)
    """Claims that PreBind may have written: it was cancelled, or the response was lost."""

    @property
    def unallocated(self) -> tuple[ResourceClaim, ...]:
        """The claims that need devices."""
        return tuple(claim for claim in self.claims if claim.status.allocation is None)

    def special_on(self, node: str) -> ResourceClaim | None:
        """Returns the special claim as the node needs it; None if it needs none."""
        wanted = self.claims_on.get(node)
        return wanted.special if wanted is not None else None
