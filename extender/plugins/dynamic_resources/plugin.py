"""DynamicResources: pods get the devices that their claims ask for.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, final
from uuid import UUID

import numpy as np

from extender import framework as fwk
from extender.config.args_validation import check_args
from extender.config.plugin_args import DynamicResourcesArgs
from extender.objects.decoding import replaced
from extender.objects.devices import AllocationResult, DeviceClass, DeviceRequest, ResourceClaim
from extender.objects.label_selectors import SelectorError
from extender.objects.node_selectors import strict_node_selector_of
from extender.plugins.dynamic_resources import advice
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
from extender.plugins.dynamic_resources.errors import NodeAllocationError, TimedOutError
from extender.plugins.dynamic_resources.hints import ClaimHints
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
from extender.plugins.dynamic_resources.selection import Matches, Selection
from extender.plugins.dynamic_resources.taken import taken_by
from extender.snapshot.axes import Int64s, Mask
from extender.snapshot.matching import node_selector_mask

NO_CLAIMS: Final = "no new claims to deallocate"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
STILL_NOT: Final = "still not schedulable"
NOT_HERE: Final = "resourceclaim not available on the node"
NOT_ENOUGH: Final = "cannot allocate all claims"


@final
@dataclass(frozen=True, slots=True)
class _ClaimsOfCycle:
    """The claims of the pod, and what Filter finds out about nodes."""

    claims: tuple[ResourceClaim, ...] = ()
    unavailable: tuple[tuple[ResourceClaim, Mask], ...] = ()
    """(allocated claim, (N,) nodes from which it cannot be used)."""
    allocator: Allocator | None = None
    """For the claims that are not allocated; None if all are."""
    found: "dict[str, _Found]" = field(default_factory=dict)
    """Node -> what the allocator found there; the same whatever pods are on the node, so that one search will do."""
    kept: dict[str, AllocationResult] = field(default_factory=dict)
    """Claim -> what Reserve kept for it."""
    written: dict[str, ResourceClaim] = field(default_factory=dict)
    """Claim -> what PreBind made of it."""
    uncertain: set[str] = field(default_factory=set)
    """Claims that PreBind may have written: it was interrupted, or the answer was lost."""

    @property
    def unallocated(self) -> tuple[ResourceClaim, ...]:
        """The claims that need devices."""
        return tuple(claim for claim in self.claims if claim.status.allocation is None)


@final
@dataclass(frozen=True, slots=True)
class _Found:
    """An allocation for each unallocated claim, or why there is none."""

    allocations: tuple[AllocationResult, ...] = ()
    refusal: str = ""


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
    """Holds pods to nodes where their claims are, or can be, allocated. Pods without claims cost nothing.

    State: the tracker, which all profiles share; which pods' reservations are being taken back; and, to save work, the pools as they were
    put together last, and which devices selectors matched.
    """

    looks_at_pods = False

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else DynamicResourcesArgs()
        check_args(args)
        self._filter_timeout = args.filter_timeout.nanoseconds / 1e9
        self._binding_timeout = timedelta(microseconds=args.binding_timeout.nanoseconds / 1e3)
        self._now: Callable[[], datetime] = handle.now if handle is not None else lambda: datetime.now(UTC)
        self._tracker = handle.shared(_TRACKER, ClaimTracker) if handle is not None else ClaimTracker()
        self._unreserving: dict[tuple[str, str], asyncio.Future[ResourceClaim | None]] = {}
        self._slices = Slices()
        self._matches = Matches()
        self._hints = ClaimHints(lambda: self.handle.objects.resource_claims)

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """See `ClaimHints.events`."""
        return self._hints.events()

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        """Pods wait until their claims are there."""
        try:
            claims_of(pod, self.handle.objects.resource_claims)
        except ClaimError as exc:
            return fwk.unresolvable(str(exc))
        return fwk.SUCCESS

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without claims; PostFilter wants to know that it was here."""
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
        state.write(_CLAIMS, _ClaimsOfCycle(tuple(claims), tuple(unavailable), self._allocator(claims, snapshot)))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refused for good: removing pods frees no device in this cycle.

        Raises:
            AllocationError: a claim, class or slice is wrong.
            TimeoutError: looking for devices took too long.
        """
        cycle = state.read(_CLAIMS)
        not_here = np.zeros(len(rows), np.bool_)
        for _, nodes in cycle.unavailable:
            not_here |= nodes[rows.node]
        refused_here = fwk.reject(not_here, NOT_HERE, unresolvable=True)
        if cycle.allocator is None:
            return refused_here
        return fwk.first_of([_allocate(cycle, cycle.allocator, rows), refused_here])

    async def post_filter(self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """A claim that kept the pod from a node, and that nobody else holds, is deallocated to try again elsewhere.

        Without an API server nothing is written, and the answer is the same.

        Raises:
            NotFoundError: a plugin before this one refused the pod, so that PreFilter was never called.
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
        """(R,) more where more preferred alternatives were found; 0 where nothing had to be found."""
        cycle = state.find(_CLAIMS)
        if cycle is None or cycle.allocator is None:
            return np.zeros(len(rows), np.int64)
        return np.array([_score(cycle, node) for node in rows.names], np.int64)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        """(R,) as shares of the highest."""
        return fwk.default_normalize_score(scores)

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Keep what was found on the node, so that no other pod gets it."""
        cycle = state.read(_CLAIMS)
        if cycle.allocator is None:
            return fwk.SUCCESS
        found = cycle.found.get(node)
        if found is None or found.refusal:
            return fwk.error("claim allocation not found for node")
        for claim, allocation in zip(cycle.unallocated, found.allocations, strict=True):
            kept = cycle.kept[identity(claim)] = self._with_share_ids(allocation)
            self._tracker.expect(replaced(claim, status=replaced(claim.status, allocation=kept)))
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """Give back what was kept for the pod's claims; what was written already is taken back in the background."""
        cycle = state.find(_CLAIMS)
        if cycle is None:
            return
        dispatcher = self._handle.dispatcher if self._handle is not None else None
        for claim in cycle.claims:
            latest = cycle.written.get(identity(claim), claim)
            is_written = latest.status.allocation is not None and is_reserved_for(latest, pod)
            if dispatcher is not None and (is_written or identity(claim) in cycle.uncertain):
                self._take_back(claim, pod, dispatcher)
            else:
                self._tracker.release(claim)

    def _take_back(self, claim: ResourceClaim, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> None:
        """Until the API server has answered, what was kept stays kept: only then it is known whether the devices are the claim's."""
        what = identity(claim), pod.uid
        self._unreserving[what] = going = dispatcher.submit(
            fwk.UnreserveResourceClaim(claim.namespace, claim.metadata.name, claim.metadata.uid, pod.uid)
        )

        def unreserved(going: "asyncio.Future[ResourceClaim | None]") -> None:
            if self._unreserving.get(what) is going:
                del self._unreserving[what]
            written = going.result() if not going.cancelled() else None
            if written is not None:
                self._tracker.note_written(written)
            self._tracker.release(claim)

        going.add_done_callback(unreserved)

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        """Skip for pods without claims."""
        return fwk.PreFlight(fwk.SUCCESS if state.read(_CLAIMS).claims else fwk.SKIP, allow_parallel=True)

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Write what was found for the pod's claims, reserve them for the pod, and wait until their devices can be used on the node."""
        cycle, dispatcher, live = state.read(_CLAIMS), self.handle.dispatcher, self.handle.live
        if not cycle.claims:
            return fwk.SUCCESS
        if dispatcher is None or live is None:
            return fwk.error("binding resource claims: there is no API server to bind through")
        try:
            claims = [await self._bound(claim, cycle, pod, dispatcher) for claim in cycle.claims]
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

    async def _bound(self, claim: ResourceClaim, cycle: _ClaimsOfCycle, pod: fwk.Pod, dispatcher: fwk.Dispatcher) -> ResourceClaim:
        """The claim, allocated and reserved for the pod."""
        going = self._unreserving.get((identity(claim), pod.uid))
        if going is not None:
            # An earlier attempt is still taking its reservation back: only afterwards the claim tells the truth.
            await asyncio.wait([going])
            claim = await read_claim(claim, dispatcher)
        if is_reserved_for(claim, pod):
            return claim
        try:
            bound = await bind_claim(claim, cycle.kept.get(identity(claim)), pod, dispatcher, self._now())
        except (asyncio.CancelledError, ClaimUncertainError):
            cycle.uncertain.add(identity(claim))
            raise
        except ClaimBindingError:
            self._tracker.release(claim)
            raise
        self._tracker.note_written(bound)
        self._tracker.release(claim)
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

    def _allocator(self, claims: Sequence[ResourceClaim], snapshot: fwk.Snapshot) -> Allocator | None:
        unallocated = [claim for claim in claims if claim.status.allocation is None]
        if not unallocated:
            return None
        objects = snapshot.objects
        taken = taken_by(self._tracker.holders(objects.resource_claims))
        slices = list(objects.resource_slices.values())
        if not self._slices.are(slices):
            self._slices = Slices(slices)
            self._matches.forget_the_gone(self._slices.num_devices)
        selection = Selection(self._slices, self._matches, self._filter_timeout)
        return Allocator(unallocated, objects.device_classes, self._slices, taken, selection)

    def _unavailable(self, claim: ResourceClaim, allocation: AllocationResult, snapshot: fwk.Snapshot) -> Mask:
        """(N,) the nodes from which the claim's devices cannot be used; all of them once the devices failed to get ready."""
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
    """What is wrong with the claim's requests before any node is looked at."""
    for request in claim.spec.devices.requests:
        asked = _classes_asked_for(request)
        if not asked:
            return fwk.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for name, device_class in asked:
            if not device_class:
                return fwk.error(f"request {name}: unsupported request type")
            if device_class not in classes:
                return fwk.unresolvable(f"request {name}: device class {device_class} does not exist")
    return None


def _classes_asked_for(request: DeviceRequest) -> list[tuple[str, str]]:
    """(request, device class), one for each alternative."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [(f"{request.name}/{alternative.name}", alternative.device_class_name) for alternative in request.first_available]


def _allocate(cycle: _ClaimsOfCycle, allocator: Allocator, rows: fwk.Rows) -> fwk.Verdicts:
    """Rows whose node has not enough devices are refused. Looks at one node after the other: devices are no column."""
    refusals: dict[str, Mask] = {}
    nodes = rows.snapshot.nodes.objects
    for row, place in enumerate(rows.node.tolist()):
        node = nodes[place]
        found = cycle.found.get(node.name)
        if found is None:
            found = cycle.found[node.name] = _found_on(allocator, node)
        if found.refusal:
            refusals.setdefault(found.refusal, np.zeros(len(rows), np.bool_))[row] = True
    return fwk.first_of([fwk.accept(len(rows)), *(fwk.reject(mask, reason, unresolvable=True) for reason, mask in refusals.items())])


def _found_on(allocator: Allocator, node: fwk.Node) -> _Found:
    try:
        allocations = allocator.allocate(node)
    except NodeAllocationError as exc:
        return _Found(refusal=str(exc))
    except TimedOutError as exc:
        raise TimeoutError(f"node {node.name}: timed out trying to allocate devices") from exc
    return _Found(refusal=NOT_ENOUGH) if allocations is None else _Found(tuple(allocations))


def _score(cycle: _ClaimsOfCycle, node: str) -> int:
    found = cycle.found.get(node)
    if found is None or found.refusal:
        return 0
    new = iter(found.allocations)
    return sum(score(claim, claim.status.allocation or next(new)) for claim in cycle.claims)
