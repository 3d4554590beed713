"""Reservations: the devices of pods, from the choice of a node until the API server has them, and a cycle's claims.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, stateData, Reserve, Unreserve, PreBind;
extendeddynamicresources.go, unreserveExtendedResourceClaim.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, final
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec

from extender.engine import framework as fwk
from extender.engine.framework import storage_calls
from extender.engine.plugins.dynamic_resources.allocated_state import PoolId, PoolState
from extender.engine.plugins.dynamic_resources.allocation import NodeAllocation
from extender.engine.plugins.dynamic_resources.claim_binding import (
    ClaimBindingError,
    ClaimUncertainError,
    bind_claim,
    consumer_of,
    create_special_claim,
    delete_special_claim_in_background,
    have_same_devices,
    id_of,
    name_special_claim,
    read_claim,
)
from extender.engine.plugins.dynamic_resources.node_allocations import LongSearch
from extender.engine.plugins.dynamic_resources.node_claims import ClaimsToAllocate, ExtendedRequests, NodeClaims
from extender.engine.plugins.dynamic_resources.pod_claims import ClaimTracker, each_once, identity, is_reserved_for
from extender.engine.plugins.dynamic_resources.results import NOT_SHARED_YET
from extender.engine.plugins.dynamic_resources.selection import Allowance
from extender.engine.snapshot.axes import Mask
from extender.values.objects.cluster import Key
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import AllocationResult, ResourceClaim

_UNBOUNDED: Final = Allowance()


@final
class ClaimsOfCycle(msgspec.Struct, frozen=True):
    """The claims of the pod, and the cycle's results about them."""

    claims: tuple[ResourceClaim, ...] = ()
    """Those of its spec."""
    unavailable: tuple[tuple[ResourceClaim, Mask], ...] = ()
    """(allocated claim, (N,) the nodes from which its devices cannot be used)."""
    extended: ExtendedRequests | None = None
    """The extended resources that need a special claim on some nodes; None if no device class backs any."""
    joined: Mapping[str, AllocationResult] = msgspec.field(default_factory=dict)
    """Claim -> the pending allocation that it shares with pods of its group, which are assumed in the same cycle."""
    to_allocate: NodeClaims | None = None
    """The unallocated claims and the special claim; None if there is nothing to allocate."""
    allowance: Allowance = _UNBOUNDED
    """The remaining steps and time of the cycle's searches."""
    long_search: LongSearch | None = None
    """The search in a thread, if one was begun in an earlier cycle of the attempt."""
    in_use: Mapping[PoolId, PoolState] = msgspec.field(default_factory=dict)
    """The devices that are in use, for the long search."""
    node_allocations: dict[str, NodeAllocation] = msgspec.field(default_factory=dict)
    """Node -> the result of the allocator there, which does not depend on the pods of the node."""
    claims_on: dict[str, ClaimsToAllocate] = msgspec.field(default_factory=dict)
    """Node -> the claims that the result is for."""
    reserved: dict[str, AllocationResult] = msgspec.field(default_factory=dict)
    """Claim -> the allocation that Reserve chose."""
    bound: dict[str, ResourceClaim] = msgspec.field(default_factory=dict)
    """Claim -> the claim as PreBind wrote it."""
    created: dict[str, ResourceClaim] = msgspec.field(default_factory=dict)
    """Special claim in memory -> the claim that PreBind created for it."""
    uncertain: set[str] = msgspec.field(default_factory=set)
    """Claims that PreBind may have written: it was cancelled, or the response was lost."""

    @property
    def unallocated(self) -> tuple[ResourceClaim, ...]:
        return tuple(
            claim for claim in self.claims if claim.status.allocation is None and identity(claim) not in self.joined
        )

    def special_on(self, node: str) -> ResourceClaim | None:
        claims = self.claims_on.get(node)
        return claims.special if claims is not None else None


@final
class Reservations:
    """Makes, writes and withdraws reservations. State: those that are being withdrawn, and locks of claims that are
    being written: of pods that share one, the first writes its allocation, and the others add themselves.
    """

    def __init__(self, tracker: ClaimTracker, rng: random.Random, now: Callable[[], datetime]) -> None:
        self._tracker = tracker
        self._rng = rng
        self._now = now
        self._withdrawing: dict[tuple[str, str], asyncio.Future[ResourceClaim | None]] = {}
        self._writing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def reserve(self, cycle: ClaimsOfCycle, pod: fwk.Pod, node: str, table: Mapping[Key, ResourceClaim]) -> fwk.Status:
        """Reserves the devices found on the node, so that no other pod gets them. The table is as for `write`."""
        if not cycle.claims and cycle.to_allocate is None:
            return fwk.SUCCESS
        chosen = [(claim, cycle.joined[identity(claim)]) for claim in cycle.claims if identity(claim) in cycle.joined]
        node_claims, node_allocation = cycle.claims_on.get(node), cycle.node_allocations.get(node)
        # Where no claim is wanted, the device plugins of the node offer all the extended resources.
        if cycle.to_allocate is not None and (node_claims is not None or cycle.unallocated):
            if node_claims is None or node_allocation is None or node_allocation.refusal:
                return fwk.error("claim allocation not found for node")
            chosen += zip(node_claims.allocator.claims, node_allocation.allocations, strict=True)
        for claim, allocation in chosen:
            # Reserved again, after the trial of a group or in one that is taken back, it is what it was.
            own_allocation = cycle.reserved.get(identity(claim)) or self._with_share_ids(allocation)
            now = self._tracker.current(claim, table).status.allocation
            other = now or self._tracker.pending(claim)[0]
            if other is not None and not have_same_devices(own_allocation, other):
                return fwk.error(f"claim {claim.key} got allocated elsewhere in the meantime")
            cycle.reserved[identity(claim)] = own_allocation
            if now is None:
                # What is allocated already is no longer pending (kubernetes#140269).
                self._tracker.add_pending(
                    replaced(claim, status=replaced(claim.status, allocation=own_allocation)), pod
                )
        return fwk.SUCCESS

    def as_bound(self, cycle: ClaimsOfCycle, pod: fwk.Pod, table: Mapping[Key, ResourceClaim]) -> list[ResourceClaim]:
        """Returns the claims of the pod's spec as `write` would leave them, which are no longer pending."""
        claims = [self._tracker.current(claim, table) for claim in each_once(cycle.claims)]
        for claim in claims:
            self._tracker.remove_pending(claim, pod)
        return [
            replaced(
                claim,
                status=replaced(
                    claim.status,
                    allocation=claim.status.allocation or cycle.reserved[identity(claim)],
                    reserved_for=[*claim.status.reserved_for, consumer_of(pod)],
                ),
            )
            for claim in claims
            if not is_reserved_for(claim, pod)
        ]

    def withdraw(self, cycle: ClaimsOfCycle, pod: fwk.Pod, node: str, dispatcher: fwk.Dispatcher | None) -> None:
        """Releases the devices. What was already written is withdrawn in the background."""
        for claim in cycle.claims:
            latest = cycle.bound.get(identity(claim), claim)
            is_written = latest.status.allocation is not None and is_reserved_for(latest, pod)
            if dispatcher is not None and (is_written or identity(claim) in cycle.uncertain):
                self._unreserve_in_background(claim, pod, dispatcher)
            else:
                self._tracker.remove_pending(claim, pod)
        special = cycle.special_on(node)
        if special is not None:
            self._withdraw_special(special, pod, cycle.created.get(identity(special)), dispatcher)

    async def write(
        self,
        cycle: ClaimsOfCycle,
        pod: fwk.Pod,
        node: str,
        dispatcher: fwk.Dispatcher,
        table: Mapping[Key, ResourceClaim],
        creations: Counter[str],
    ) -> list[ResourceClaim]:
        """Returns the pod's claims, allocated and reserved for the pod, the special claim last.

        The table has the claims that the watch shows, at any moment; `creations` counts success and failure.

        Raises CallConflict if the API server refused a write again and again, ClaimBindingError if a claim could not be
        bound.
        """
        claims: list[ResourceClaim] = []
        for claim in cycle.claims:
            async with self._writing.setdefault(identity(claim), asyncio.Lock()):
                claims.append(await self._bind(self._tracker.current(claim, table), cycle, pod, dispatcher))
        node_claims = cycle.claims_on.get(node)
        if node_claims is not None and node_claims.special is not None:
            claims.append(
                await self._bind_special(node_claims, node_claims.special, cycle, pod, dispatcher, table, creations)
            )
        return claims

    async def _bind(
        self, claim: ResourceClaim, cycle: ClaimsOfCycle, pod: fwk.Pod, dispatcher: fwk.Dispatcher
    ) -> ResourceClaim:
        withdrawing = self._withdrawing.get((identity(claim), pod.uid))
        if withdrawing is not None:
            # An earlier attempt is still withdrawing its reservation: the state of the claim is only reliable after
            # that.
            await asyncio.wait([withdrawing])
            claim = await read_claim(claim, dispatcher)
        if is_reserved_for(claim, pod):
            return claim
        try:
            bound = await bind_claim(claim, cycle.reserved.get(identity(claim)), pod, dispatcher, self._now())
        except (asyncio.CancelledError, ClaimUncertainError):
            cycle.uncertain.add(identity(claim))
            raise
        except ClaimBindingError:
            self._tracker.remove_pending(claim, pod)
            raise
        self._tracker.assume(bound)
        self._tracker.remove_pending(claim, pod)
        cycle.bound[identity(claim)] = bound
        return bound

    async def _bind_special(
        self,
        node_claims: ClaimsToAllocate,
        special: ResourceClaim,
        cycle: ClaimsOfCycle,
        pod: fwk.Pod,
        dispatcher: fwk.Dispatcher,
        table: Mapping[Key, ResourceClaim],
        creations: Counter[str],
    ) -> ResourceClaim:
        """Creates the special claim, allocates and reserves it, and names it in the pod's status."""
        created = await create_special_claim(special, node_claims.mappings, pod, dispatcher, creations)
        cycle.created[identity(special)] = created
        bound = await bind_claim(created, cycle.reserved.get(identity(special)), pod, dispatcher, self._now())
        self._tracker.assume_created(bound)
        self._look_for(bound, table)
        self._tracker.remove_pending(special, pod)
        await name_special_claim(bound, node_claims.mappings, pod, dispatcher)
        return bound

    def _look_for(self, created: ResourceClaim, table: Mapping[Key, ResourceClaim], pause: float = 0.01) -> None:
        """Looks until the watch shows the claim, so that a later absence means its deletion."""
        if not self._tracker.is_shown(created, table):
            asyncio.get_running_loop().call_later(pause, self._look_for, created, table, min(2 * pause, 1.0))

    def _withdraw_special(
        self, special: ResourceClaim, pod: fwk.Pod, created: ResourceClaim | None, dispatcher: fwk.Dispatcher | None
    ) -> None:
        """Releases the devices of the special claim, and deletes the claim if it was created.

        The devices stay pending until the last write, since the API server may have them until then.
        """
        if created is None or dispatcher is None:
            self._tracker.remove_pending(special, pod)
            return

        def deleted() -> None:
            self._tracker.forget(created)
            self._tracker.remove_pending(special, pod)

        delete_special_claim_in_background(created, dispatcher, deleted)

    def _unreserve_in_background(self, claim: ResourceClaim, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> None:
        """Withdraws the reservation; devices stay pending until the API server has answered."""
        key = identity(claim), pod.uid
        self._withdrawing[key] = withdrawing = dispatcher.submit(
            storage_calls.UnreserveResourceClaim(*id_of(claim), pod.uid)
        )

        def unreserved(future: "asyncio.Future[ResourceClaim | None]") -> None:
            if self._withdrawing.get(key) is future:
                del self._withdrawing[key]
            updated = future.result() if not future.cancelled() else None
            if updated is not None:
                self._tracker.assume(updated)
            self._tracker.remove_pending(claim, pod)

        withdrawing.add_done_callback(unreserved)

    def _with_share_ids(self, allocation: AllocationResult) -> AllocationResult:
        results = [
            replaced(result, share_id=random_uid(self._rng)) if result.share_id == NOT_SHARED_YET else result
            for result in allocation.devices.results
        ]
        return replaced(allocation, devices=replaced(allocation.devices, results=results))


def random_uid(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))
