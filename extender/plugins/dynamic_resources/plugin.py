"""DynamicResources: allocates the devices that the claims of pods request.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (v1.36.2).
"""

import asyncio
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, final
from uuid import UUID
from weakref import WeakValueDictionary

import numpy as np

from extender import framework as fwk
from extender.config.args_validation import check_args
from extender.config.plugin_args import DynamicResourcesArgs
from extender.objects.decoding import replaced
from extender.objects.devices import AllocationResult, DeviceClass, DeviceRequest, ResourceClaim
from extender.objects.label_selectors import SelectorError
from extender.objects.node_selectors import strict_node_selector_of
from extender.plugins.dynamic_resources import advice
from extender.plugins.dynamic_resources.allocated_state import PoolId, PoolState, allocated_state_of
from extender.plugins.dynamic_resources.allocation import Allocator
from extender.plugins.dynamic_resources.claim_binding import (
    ClaimBindingError,
    ClaimUncertainError,
    bind_claim,
    drivers_to_wait_for,
    outcome_of_wait,
    read_claim,
    wait_for_devices,
)
from extender.plugins.dynamic_resources.errors import AllocationError, OutOfStepsError
from extender.plugins.dynamic_resources.hints import ClaimHints
from extender.plugins.dynamic_resources.node_allocations import LOOP_STEPS, LongSearch, NodeAllocation, allocation_on
from extender.plugins.dynamic_resources.pod_claims import (
    ClaimError,
    ClaimTracker,
    claims_of,
    has_binding_conditions,
    has_failed_binding,
    identity,
    is_held_by_others,
    is_reserved_for,
)
from extender.plugins.dynamic_resources.pools import Slices
from extender.plugins.dynamic_resources.results import NOT_SHARED_YET, score
from extender.plugins.dynamic_resources.selection import Allowance, Matches
from extender.snapshot.axes import Int64s, Mask
from extender.snapshot.matching import node_selector_mask

NO_CLAIMS: Final = "no new claims to deallocate"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
STILL_NOT: Final = "still not schedulable"
NOT_HERE: Final = "resourceclaim not available on the node"


@final
@dataclass(frozen=True, slots=True)
class _ClaimsOfCycle:
    """The claims of the pod, and what the cycle finds out about them."""

    claims: tuple[ResourceClaim, ...] = ()
    unavailable: tuple[tuple[ResourceClaim, Mask], ...] = ()
    """(allocated claim, (N,) the nodes from which its devices cannot be used)."""
    allocator: Allocator | None = None
    """For the unallocated claims; None if all are allocated."""
    allowance: Allowance = field(default_factory=Allowance)
    """What the searches of the cycle may still spend."""
    long_search: LongSearch | None = None
    """The search in a thread, if one was begun in an earlier cycle of the attempt."""
    in_use: Mapping[PoolId, PoolState] = field(default_factory=dict)
    """The devices that are in use, for the long search."""
    node_allocations: dict[str, NodeAllocation] = field(default_factory=dict)
    """Node -> the result of the allocator there. It does not depend on the pods of the node, so that one search is enough."""
    reserved: dict[str, AllocationResult] = field(default_factory=dict)
    """Claim -> the allocation that Reserve chose."""
    written: dict[str, ResourceClaim] = field(default_factory=dict)
    """Claim -> the claim as PreBind wrote it."""
    uncertain: set[str] = field(default_factory=set)
    """Claims that PreBind may have written: it was cancelled, or the response was lost."""

    @property
    def unallocated(self) -> tuple[ResourceClaim, ...]:
        """The claims that need devices."""
        return tuple(claim for claim in self.claims if claim.status.allocation is None)


_CLAIMS: Final = fwk.StateKey[_ClaimsOfCycle]("DynamicResources")
_TRACKER: Final = fwk.StateKey[ClaimTracker]("DynamicResources")


@final
class DynamicResources(
    fwk.PreEnqueuePlugin,
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PostFilterPlugin,
    fwk.ScorePlugin,
    fwk.ReservePlugin,
    fwk.PreBindPlugin,
    fwk.AdvicePlugin,
):
    """Restricts pods to nodes where their claims are, or can be, allocated.

    State: the claim tracker, which all profiles share; the reservations being withdrawn; and, as caches, the pools of nodes and the
    devices that selectors match. Searches that take long go on in a thread (`node_allocations`).
    """

    looks_at_pods = False

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else DynamicResourcesArgs()
        check_args(args)
        has_timeout = self.feature_gates.enabled("DRASchedulerFilterTimeout")
        self._filter_timeout = args.filter_timeout.nanoseconds / 1e9 if has_timeout and args.filter_timeout.nanoseconds else math.inf
        self._binding_timeout = timedelta(microseconds=args.binding_timeout.nanoseconds / 1e3)
        self._now: Callable[[], datetime] = handle.now if handle is not None else lambda: datetime.now(UTC)
        self._tracker = handle.shared(_TRACKER, ClaimTracker) if handle is not None else ClaimTracker()
        self._unreserving: dict[tuple[str, str], asyncio.Future[ResourceClaim | None]] = {}
        self._slices = Slices()
        self._matches = Matches()
        # A search lives as long as the attempt that it is for: the caller of the plugin keeps it.
        self._long_searches: WeakValueDictionary[tuple[str, str], LongSearch] = WeakValueDictionary()
        self._hints = ClaimHints(lambda: self.handle.objects.resource_claims)

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return self._hints.events()

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        """Holds pods back until their claims exist."""
        try:
            claims_of(pod, self.handle.objects.resource_claims)
        except ClaimError as exc:
            return fwk.unresolvable(str(exc))
        return fwk.SUCCESS

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without claims. The state is written in any case, because PostFilter depends on it."""
        state.write(_CLAIMS, _ClaimsOfCycle())
        try:
            claims = claims_of(pod, self._tracker.latest(snapshot.objects.resource_claims))
        except ClaimError as exc:
            return fwk.PreFilterResult(fwk.unresolvable(str(exc)))
        if not claims:
            return fwk.PreFilterResult(fwk.SKIP)
        unavailable: list[tuple[ResourceClaim, Mask]] = []
        for claim in claims:
            if claim.status.allocation is not None:
                try:
                    unavailable.append((claim, self._unavailable(claim, claim.status.allocation, snapshot)))
                except SelectorError as exc:
                    return fwk.PreFilterResult(fwk.error(str(exc)))
                continue
            if self._tracker.is_pending(claim):
                return fwk.PreFilterResult(fwk.unresolvable(f"resource claim {claim.key} is in the process of being allocated"))
            refusal = _refusal_of_requests(claim, snapshot.objects.device_classes)
            if refusal is not None:
                return fwk.PreFilterResult(refusal)
        state.write(_CLAIMS, self._cycle_of(pod, claims, unavailable, snapshot))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods frees no device in this cycle.

        Raises:
            AllocationError: a claim, class or slice is invalid.
            LongWork: the search for devices goes on in a thread.
            TimeoutError: the search for devices took too long.
        """
        cycle = state.read(_CLAIMS)
        not_here = np.zeros(len(rows), np.bool_)
        for _, nodes in cycle.unavailable:
            not_here |= nodes[rows.node]
        refused_here = fwk.reject(not_here, NOT_HERE, unresolvable=True)
        if cycle.allocator is None:
            return refused_here
        return fwk.first_of([self._allocate(pod, cycle, cycle.allocator, rows), refused_here])

    async def post_filter(self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """Deallocates a claim that kept the pod off a node and has no other consumer, so that it can be allocated elsewhere.

        Without an API server nothing is written, and the result is the same.

        Raises:
            NotFoundError: an earlier plugin refused the pod, so that PreFilter did not run.
        """
        cycle = state.read(_CLAIMS)
        if not cycle.claims:
            return fwk.PostFilterResult(fwk.unschedulable(NO_CLAIMS))
        index = state.snapshot.nodes.index
        kept_away = [
            index[node]
            for node, status in statuses.explicit.items()
            if status.plugin == self.name and NOT_HERE in status.reasons and node in index
        ]
        for claim, nodes in cycle.unavailable:
            if nodes[kept_away].any() and not is_held_by_others(claim, pod):
                return fwk.PostFilterResult(await self._deallocated(claim))
        return fwk.PostFilterResult(fwk.unschedulable(STILL_NOT))

    async def _deallocated(self, claim: ResourceClaim) -> fwk.Status:
        if self.handle.dispatcher is not None:
            meta = claim.metadata
            try:
                await self.handle.dispatcher.perform(
                    fwk.DeallocateResourceClaim(claim.namespace, meta.name, meta.uid, meta.resource_version)
                )
            except fwk.CallError as exc:
                return fwk.error(str(exc))
        return fwk.unschedulable(DEALLOCATED)

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) higher for more preferred subrequests; 0 if all claims are allocated."""
        cycle = state.find(_CLAIMS)
        if cycle is None or cycle.allocator is None:
            return np.zeros(len(rows), np.int64)
        return np.array([_score(cycle, node) for node in rows.names], np.int64)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return fwk.default_normalize_score(scores)

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Reserves the devices found on the node, so that no other pod gets them."""
        cycle = state.read(_CLAIMS)
        if cycle.allocator is None:
            return fwk.SUCCESS
        found = cycle.node_allocations.get(node)
        if found is None or found.refusal:
            return fwk.error("claim allocation not found for node")
        for claim, allocation in zip(cycle.unallocated, found.allocations, strict=True):
            chosen = cycle.reserved[identity(claim)] = self._with_share_ids(allocation)
            self._tracker.add_pending(replaced(claim, status=replaced(claim.status, allocation=chosen)))
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """Releases the devices reserved for the pod's claims; what was already written is withdrawn in the background."""
        cycle = state.find(_CLAIMS)
        if cycle is None:
            return
        dispatcher = self._handle.dispatcher if self._handle is not None else None
        for claim in cycle.claims:
            latest = cycle.written.get(identity(claim), claim)
            is_written = latest.status.allocation is not None and is_reserved_for(latest, pod)
            if dispatcher is not None and (is_written or identity(claim) in cycle.uncertain):
                self._unreserve_in_background(claim, pod, dispatcher)
            else:
                self._tracker.remove_pending(claim)

    def _unreserve_in_background(self, claim: ResourceClaim, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> None:
        """Withdraws the claim's reservation. It stays pending until the API server responds, since only then the owner of the devices is
        known."""
        key = identity(claim), pod.uid
        self._unreserving[key] = unreserving = dispatcher.submit(
            fwk.UnreserveResourceClaim(claim.namespace, claim.metadata.name, claim.metadata.uid, pod.uid)
        )

        def unreserved(future: "asyncio.Future[ResourceClaim | None]") -> None:
            if self._unreserving.get(key) is future:
                del self._unreserving[key]
            written = future.result() if not future.cancelled() else None
            if written is not None:
                self._tracker.assume(written)
            self._tracker.remove_pending(claim)

        unreserving.add_done_callback(unreserved)

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        return fwk.PreFlight(fwk.SUCCESS if state.read(_CLAIMS).claims else fwk.SKIP, allow_parallel=True)

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Writes allocations and reservations of the pod's claims, and waits until their devices are usable on the node."""
        cycle, dispatcher, live = state.read(_CLAIMS), self.handle.dispatcher, self.handle.live
        if not cycle.claims:
            return fwk.SUCCESS
        if dispatcher is None or live is None:
            return fwk.error("binding resource claims: there is no API server to bind through")
        try:
            claims = [await self._bind(claim, cycle, pod, dispatcher) for claim in cycle.claims]
            if any(map(has_binding_conditions, claims)):
                text = f"waiting for binding conditions for device on node {node}"
                self.handle.record_event(pod, "Normal", "BindingConditionsPending", "Scheduling", text)
                table = live.objects.resource_claims
                began, failed = asyncio.get_running_loop().time(), None
                try:
                    await wait_for_devices(claims, lambda: self._tracker.latest(table), self._binding_timeout, self._now)
                except ClaimBindingError as exc:
                    failed = exc
                    raise
                finally:
                    waits = self.handle.shared(fwk.PLUGIN_METRICS, fwk.PluginMetrics).device_waits
                    for driver in sorted(drivers_to_wait_for(claims)):
                        waits.observe(asyncio.get_running_loop().time() - began, pod.scheduler_name, driver, outcome_of_wait(failed))
        except (fwk.CallError, ClaimBindingError) as exc:
            return fwk.error(str(exc))
        return fwk.SUCCESS

    async def _bind(self, claim: ResourceClaim, cycle: _ClaimsOfCycle, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> ResourceClaim:
        """Returns the claim, allocated and reserved for the pod."""
        unreserving = self._unreserving.get((identity(claim), pod.uid))
        if unreserving is not None:
            # An earlier attempt is still withdrawing its reservation: the state of the claim is only reliable after that.
            await asyncio.wait([unreserving])
            claim = await read_claim(claim, dispatcher)
        if is_reserved_for(claim, pod):
            return claim
        try:
            bound = await bind_claim(claim, cycle.reserved.get(identity(claim)), pod, dispatcher, self._now())
        except (asyncio.CancelledError, ClaimUncertainError):
            cycle.uncertain.add(identity(claim))
            raise
        except ClaimBindingError:
            self._tracker.remove_pending(claim)
            raise
        self._tracker.assume(bound)
        self._tracker.remove_pending(claim)
        cycle.written[identity(claim)] = bound
        return bound

    def _with_share_ids(self, allocation: AllocationResult) -> AllocationResult:
        results = [
            replaced(result, share_id=str(UUID(int=self.handle.random.getrandbits(128), version=4)))
            if result.share_id == NOT_SHARED_YET
            else result
            for result in allocation.devices.results
        ]
        return replaced(allocation, devices=replaced(allocation.devices, results=results))

    def _cycle_of(
        self, pod: fwk.Pod, claims: Sequence[ResourceClaim], unavailable: Sequence[tuple[ResourceClaim, Mask]], snapshot: fwk.Snapshot
    ) -> _ClaimsOfCycle:
        unallocated = [claim for claim in claims if claim.status.allocation is None]
        if not unallocated:
            return _ClaimsOfCycle(tuple(claims), tuple(unavailable))
        objects = snapshot.objects
        slices = list(objects.resource_slices.values())
        if not self._slices.are_same(slices):
            self._slices = Slices(slices)
        self._matches.prune(self._slices.num_devices)
        allocated = allocated_state_of(self._tracker.holders(objects.resource_claims))
        allocator = Allocator(unallocated, objects.device_classes, self._slices, allocated, self._matches)
        long_search = self._long_searches.get((pod.key, pod.uid))
        if long_search is not None and not _are_same(long_search.inputs, _inputs_of(allocator)):
            long_search = None
        steps = math.inf if not self.may_defer else 0 if long_search is not None else LOOP_STEPS
        return _ClaimsOfCycle(
            tuple(claims),
            tuple(unavailable),
            allocator,
            Allowance(steps=steps, seconds=self._filter_timeout),
            long_search,
            allocated.by_pool() if long_search is not None else {},
        )

    def _allocate(self, pod: fwk.Pod, cycle: _ClaimsOfCycle, allocator: Allocator, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows whose node has not enough devices. This loops over nodes, since devices are not a column."""
        refusals: dict[str, Mask] = {}
        nodes = [rows.snapshot.nodes.objects[place] for place in rows.node.tolist()]
        for row, node in enumerate(nodes):
            found = cycle.node_allocations.get(node.name)
            if found is None:
                if cycle.long_search is not None:
                    found = cycle.long_search.allocation_on(node, allocator, cycle.in_use)
                with suppress(OutOfStepsError):
                    found = found or allocation_on(node, allocator, cycle.allowance)
                if found is None:
                    raise self._deferred(pod, cycle, allocator, nodes[row:])
                cycle.node_allocations[node.name] = found
            if found.error is not None:
                raise AllocationError(str(found.error))
            if found.refusal:
                refusals.setdefault(found.refusal, np.zeros(len(rows), np.bool_))[row] = True
        return fwk.first_of([fwk.accept(len(rows)), *(fwk.reject(mask, reason, unresolvable=True) for reason, mask in refusals.items())])

    def _deferred(self, pod: fwk.Pod, cycle: _ClaimsOfCycle, allocator: Allocator, nodes: Sequence[fwk.Node]) -> fwk.LongWork:
        """Returns the search of these nodes as work for a thread. The caller keeps it, and with it the search, for the next cycle."""
        search = cycle.long_search
        if search is None:
            search = self._long_searches[pod.key, pod.uid] = LongSearch(_inputs_of(allocator), self._filter_timeout)
        return fwk.LongWork(partial(search.search, nodes, allocator))

    def _unavailable(self, claim: ResourceClaim, allocation: AllocationResult, snapshot: fwk.Snapshot) -> Mask:
        """(N,) the nodes from which the claim's devices cannot be used; all of them if preparing the devices failed."""
        if has_failed_binding(claim, self._binding_timeout, self._now()):
            return np.ones(len(snapshot.nodes), np.bool_)
        if allocation.node_selector is None:
            return np.zeros(len(snapshot.nodes), np.bool_)
        return ~node_selector_mask(snapshot, strict_node_selector_of(allocation.node_selector))

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Claims to create or to do without; see `advice.suggestions`."""
        return advice.suggestions(pod, rows.snapshot)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without resource claims."""
        return advice.without_claims(pod)


def _refusal_of_requests(claim: ResourceClaim, classes: dict[str, DeviceClass]) -> fwk.Status | None:
    """Returns what is wrong with the claim's requests, for any node; None if nothing is."""
    for request in claim.spec.devices.requests:
        requested = _requested_classes(request)
        if not requested:
            return fwk.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for name, device_class in requested:
            if not device_class:
                return fwk.error(f"request {name}: unsupported request type")
            if device_class not in classes:
                return fwk.unresolvable(f"request {name}: device class {device_class} does not exist")
    return None


def _requested_classes(request: DeviceRequest) -> list[tuple[str, str]]:
    """Returns (request name, device class) of the request or of each subrequest."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [(f"{request.name}/{alternative.name}", alternative.device_class_name) for alternative in request.first_available]


def _inputs_of(allocator: Allocator) -> tuple[ResourceClaim | DeviceClass, ...]:
    """Returns the claims and their device classes."""
    names = (name for claim in allocator.claims for request in claim.spec.devices.requests for _, name in _requested_classes(request))
    return (*allocator.claims, *(allocator.classes[name] for name in names if name in allocator.classes))


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _score(cycle: _ClaimsOfCycle, node: str) -> int:
    found = cycle.node_allocations.get(node)
    if found is None or found.refusal:
        return 0
    new = iter(found.allocations)
    return sum(score(claim, claim.status.allocation or next(new)) for claim in cycle.claims)
