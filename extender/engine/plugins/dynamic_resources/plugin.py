"""DynamicResources: allocates the devices that the claims of pods request.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, extendeddynamicresources.go.
"""

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, final
from weakref import WeakValueDictionary

import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.framework import storage_calls
from extender.engine.framework.devices import MAY_DEFER, LongWork
from extender.engine.plugins.dynamic_resources import advice
from extender.engine.plugins.dynamic_resources.allocated_state import AllocatedDevices
from extender.engine.plugins.dynamic_resources.allocation import Allocator, NodeAllocation
from extender.engine.plugins.dynamic_resources.claim_binding import (
    ClaimBindingError,
    delete_special_claim,
    drivers_to_wait_for,
    id_of,
    outcome_of_wait,
    wait_for_devices,
)
from extender.engine.plugins.dynamic_resources.device_counts import ClassDevices, totals_of
from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.inventory import DeviceInventory
from extender.engine.plugins.dynamic_resources.node_allocations import (
    LOOP_STEPS,
    RESUMED_STEPS,
    KnownContents,
    LongSearch,
    allocation_on,
)
from extender.engine.plugins.dynamic_resources.node_claims import ExtendedRequests, NodeClaims, refusal_of_requests
from extender.engine.plugins.dynamic_resources.pod_claims import (
    ClaimError,
    ClaimHints,
    ClaimTracker,
    claims_of,
    each_once,
    has_binding_conditions,
    has_failed_binding,
    identity,
    is_held_by_others,
)
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Slices, TaintedSlices, are_same
from extender.engine.plugins.dynamic_resources.reservations import ClaimsOfCycle, Reservations, random_uid
from extender.engine.plugins.dynamic_resources.results import lists_alternatives, score
from extender.engine.plugins.dynamic_resources.selection import Allowance, Matches, OutOfStepsError
from extender.engine.plugins.dynamic_resources.special_claim import new_special_claim
from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.matching import node_selector_mask
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import DynamicResourcesArgs
from extender.values.objects.devices import AllocationResult, DeviceClass, ResourceClaim
from extender.values.objects.extended_resources import device_class_of, extended_resources_of, special_claim_of
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.node_selectors import strict_node_selector_of

NO_CLAIMS: Final = "no new claims to deallocate"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
STILL_NOT: Final = "still not schedulable"
NOT_HERE: Final = "resourceclaim not available on the node"
DELETED: Final = "deletion of ResourceClaim completed"
OF_EARLIER_ATTEMPT: Final = "cannot schedule extended resource claim"
NOT_OFFERED: Final = "cannot fit resource"


_CLAIMS: Final = fwk.StateKey[ClaimsOfCycle]("DynamicResources")
_NONE: Final = ClaimsOfCycle()
"""The state of a cycle without claims."""
_TO_DO, _NOTHING_TO_DO = (fwk.PreFlight(status, allow_parallel=True) for status in (fwk.SUCCESS, fwk.SKIP))
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

    State: the claim tracker, which all profiles share; the reservations; and, as caches, the pools of nodes, the
    devices that selectors match, those that claims hold, and what was found for claims like these. Searches that take
    long go on in a thread (`node_allocations`).
    """

    looks_at_pods = False
    scores_nothing_when_skipped = True

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else DynamicResourcesArgs()
        check_args(args, self.feature_gates)
        args = args.completed(self.feature_gates)
        self._may_defer = handle is not None and handle.shared(MAY_DEFER, lambda: False)
        filtering, binding = args.filter_timeout, args.binding_timeout
        self._filter_timeout = (0 if filtering is None else filtering.seconds) or math.inf
        # Without a timeout, nobody waits for devices.
        self._binding_timeout = timedelta(seconds=0 if binding is None else binding.seconds)
        self._now: Callable[[], datetime] = handle.now if handle is not None else lambda: datetime.now(UTC)
        self._tracker = (
            handle.shared(_TRACKER, lambda: ClaimTracker(self._now)) if handle is not None else ClaimTracker()
        )
        self._requested = fwk.PodMemo[tuple[str, ...]]()
        self._features = DeviceFeatures.of(self.feature_gates)
        self._reads_lists = self.feature_gates.enabled("DRAPrioritizedList")
        self._backs_extended_resources = self.feature_gates.enabled("DRAExtendedResource")
        self._reservations = Reservations(
            self._tracker, random.Random() if handle is None else handle.random, self._now
        )
        self._allocated = AllocatedDevices()
        self._known = KnownContents()
        self._slices = Slices()
        self._tainted = TaintedSlices()
        self._matches = Matches()
        self._class_devices = ClassDevices(self._slices, self._matches)
        # A search lives as long as the attempt that it is for: the caller of the plugin keeps it.
        self._long_searches: WeakValueDictionary[tuple[str, str], LongSearch] = WeakValueDictionary()
        self._hints = ClaimHints(lambda: {} if handle is None else handle.objects.resource_claims)

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
        """Skips pods without claims and backed extended resources, after writing the state for PostFilter."""
        state.write(_CLAIMS, ClaimsOfCycle())
        try:
            claims = claims_of(pod, self._tracker.latest(snapshot.objects.resource_claims))
        except ClaimError as exc:
            return fwk.PreFilterResult(fwk.unresolvable(str(exc)))
        extended = self._extended(state, pod, snapshot)
        if not claims and extended is None:
            return fwk.PreFilterResult(fwk.SKIP if pod.spec.resource_claims else fwk.SKIP_EQUAL_PODS)
        unavailable: list[tuple[ResourceClaim, Mask]] = []
        joined: dict[str, AllocationResult] = {}
        for claim in each_once(claims):
            allocation = claim.status.allocation
            if allocation is None:
                allocation, sharers = self._tracker.pending(claim)
                group = state.find(fwk.GROUP_CYCLE)
                if allocation is not None and group is not None and sharers <= group.assumed:
                    joined[identity(claim)] = allocation
                elif allocation is not None:
                    return fwk.PreFilterResult(
                        fwk.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
                    )
            if allocation is not None:
                try:
                    unavailable.append((claim, self._unavailable(claim, allocation, snapshot)))
                except SelectorError as exc:
                    return fwk.PreFilterResult(fwk.error(str(exc)))
                continue
            refusal = refusal_of_requests(claim, snapshot.objects.device_classes, reads_lists=self._reads_lists)
            if refusal is not None:
                return fwk.PreFilterResult(refusal)
        cycle = ClaimsOfCycle(tuple(claims), tuple(unavailable), extended, joined)
        state.write(_CLAIMS, self._cycle_of(state, pod, cycle, snapshot))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def _claims(self, state: fwk.CycleState) -> ClaimsOfCycle:
        """Returns what PreFilter found, none if equal pods skip it. Raises NotFoundError."""
        if self.name in state.skip_filter_plugins and state.find(_CLAIMS) is None:
            return _NONE
        return state.read(_CLAIMS)

    def _extended(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> ExtendedRequests | None:
        """Returns the pod's requests for extended resources that device classes back, if any."""
        if not snapshot.objects.device_classes:
            return None
        resources = self._requested.of(state, lambda: extended_resources_of(pod))
        backed = self._backed(resources, snapshot)
        if not backed:
            return None
        claim = special_claim_of(pod, self._tracker.latest(snapshot.objects.resource_claims).values())
        return ExtendedRequests(pod, resources, backed, claim or new_special_claim(pod, random_uid(self.handle.random)))

    def _backed(self, resources: Sequence[str], snapshot: fwk.Snapshot) -> dict[str, DeviceClass]:
        if not self._backs_extended_resources:
            return {}
        classes = snapshot.objects.device_classes
        candidates = ((name, device_class_of(name, classes)) for name in resources)
        return {name: device_class for name, device_class in candidates if device_class is not None}

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods frees no device in this cycle.

        Raises AllocationError; LongWork if the search goes on in a thread, TimeoutError if it took too long.
        """
        cycle = self._claims(state)
        if cycle.extended is not None and cycle.extended.is_of_earlier_attempt:
            return fwk.reject(np.ones(len(rows), np.bool_), OF_EARLIER_ATTEMPT, unresolvable=True)
        not_here = np.zeros(len(rows), np.bool_)
        for _, nodes in cycle.unavailable:
            not_here |= nodes[rows.node]
        refused_here = fwk.reject(not_here, NOT_HERE, unresolvable=True)
        if cycle.to_allocate is None:
            return refused_here
        verdicts = [self._allocate(pod, cycle, cycle.to_allocate, rows), refused_here]
        if cycle.extended is not None:
            verdicts.insert(0, fwk.reject(cycle.extended.not_offered(rows), NOT_OFFERED, unresolvable=True))
        return fwk.first_of(verdicts)

    async def post_filter(
        self, state: fwk.CycleState, pod: fwk.Pod, statuses: fwk.NodeStatuses
    ) -> fwk.PostFilterResult:
        """Deallocates a claim that kept the pod off a node and has no other consumer; or deletes its old special claim.

        Without an API server nothing is written, and the result is the same. Raises NotFoundError if PreFilter did not
        run.
        """
        cycle = self._claims(state)
        extended = cycle.extended
        if not cycle.claims and extended is None:
            return fwk.PostFilterResult(self._nothing_done(NO_CLAIMS))
        index = state.snapshot.nodes.index
        kept_away = [
            index[node]
            for node, status in statuses.explicit.items()
            if status.plugin == self.name and NOT_HERE in status.reasons and node in index
        ]
        try:
            for claim, nodes in cycle.unavailable:
                is_written = claim.status.allocation is not None
                if is_written and nodes[kept_away].any() and not is_held_by_others(claim, pod):
                    await self._deallocate(claim)
                    return fwk.PostFilterResult(fwk.unschedulable(DEALLOCATED))
            if extended is not None and extended.is_of_earlier_attempt:
                await self._delete(extended.claim)
                return fwk.PostFilterResult(fwk.unschedulable(DELETED))
        except fwk.CallError as exc:
            return fwk.PostFilterResult(fwk.error(str(exc)))
        return fwk.PostFilterResult(self._nothing_done(STILL_NOT))

    def _nothing_done(self, why: str) -> fwk.Status:
        # From 1.37 on (kubernetes#140222) events do not name what nobody can do anything about.
        return fwk.unschedulable(why) if self.feature_gates.version < "1.37" else fwk.unschedulable()

    async def _deallocate(self, claim: ResourceClaim) -> None:
        if self.handle.dispatcher is not None:
            call = storage_calls.DeallocateResourceClaim(*id_of(claim), claim.metadata.resource_version)
            await self.handle.dispatcher.perform(call)

    async def _delete(self, special: ResourceClaim) -> None:
        if self.handle.dispatcher is not None:
            await delete_special_claim(special, self.handle.dispatcher)
            self._tracker.forget(special)

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) higher for more preferred subrequests; 0 if all claims are allocated."""
        cycle = state.find(_CLAIMS)
        if cycle is None or cycle.to_allocate is None or not any(map(lists_alternatives, cycle.claims)):
            return np.zeros(len(rows), np.int64)
        return np.array([_score(cycle, node) for node in rows.names], np.int64)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return fwk.default_normalize_score(scores)

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Reserves the devices found on the node, so that no other pod gets them."""
        return self._reservations.reserve(self._claims(state), pod, node, self.handle.objects.resource_claims)

    def as_bound(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> Sequence[ResourceClaim]:
        return self._reservations.as_bound(self._claims(state), pod, self.handle.objects.resource_claims)

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """Releases the pod's devices; what was already written is withdrawn in the background."""
        cycle = state.find(_CLAIMS)
        if cycle is not None:
            self._reservations.withdraw(cycle, pod, node, self._handle.dispatcher if self._handle is not None else None)

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        cycle = self._claims(state)
        return _TO_DO if cycle.claims or cycle.extended is not None else _NOTHING_TO_DO

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Writes allocations and reservations of the pod's claims, and waits until their devices are usable."""
        cycle, dispatcher, live = self._claims(state), self.handle.dispatcher, self.handle.live
        if not cycle.claims and cycle.special_on(node) is None:
            return fwk.SUCCESS
        if dispatcher is None or live is None:
            return fwk.error("binding resource claims: there is no API server to bind through")
        metrics = self.handle.shared(fwk.PLUGIN_METRICS, fwk.PluginMetrics)
        try:
            table = live.objects.resource_claims
            claims = await self._reservations.write(cycle, pod, node, dispatcher, table, metrics.resource_claim_creates)
            if self._features.binding_conditions and any(map(has_binding_conditions, claims)):
                text = f"waiting for binding conditions for device on node {node}"
                self.handle.record_event(pod, "Normal", "BindingConditionsPending", "Scheduling", text)
                began, failed = asyncio.get_running_loop().time(), None
                try:
                    await wait_for_devices(
                        claims, lambda: self._tracker.latest(table), self._binding_timeout, self._now
                    )
                except ClaimBindingError as exc:
                    failed = exc
                    raise
                finally:
                    for driver in sorted(drivers_to_wait_for(claims)):
                        waited = asyncio.get_running_loop().time() - began
                        metrics.device_waits.observe(waited, pod.scheduler_name, driver, outcome_of_wait(failed))
        except (fwk.CallError, ClaimBindingError) as exc:
            return fwk.error(str(exc))
        return fwk.SUCCESS

    def _cycle_of(
        self, state: fwk.CycleState, pod: fwk.Pod, cycle: ClaimsOfCycle, snapshot: fwk.Snapshot
    ) -> ClaimsOfCycle:
        """Returns `cycle` with the claims to allocate."""
        extended, unallocated = cycle.extended, cycle.unallocated
        if not unallocated and (extended is None or extended.is_of_earlier_attempt):
            return cycle
        objects = snapshot.objects
        slices = self._tainted.of(
            objects.resource_slices, objects.device_taint_rules.values() if self._features.taint_rules else ()
        )
        if not self._slices.are_same(slices):
            self._slices = Slices(slices, self._features)
            self._class_devices = ClassDevices(self._slices, self._matches)
        self._matches.prune(self._slices.num_devices)
        allocated = self._allocated.held_by(self._tracker.holders(objects.resource_claims))

        def allocator_of(claims: Sequence[ResourceClaim]) -> Allocator:
            return Allocator(claims, objects.device_classes, self._slices, allocated, self._matches, self._features)

        if extended is not None:
            state.depends_on_devices = True
            totals = totals_of(self._class_devices, extended.classes, allocated, may_defer=self._may_defer)
            state.write(fwk.DEVICE_TOTALS, totals)
        to_allocate = NodeClaims(unallocated, extended, objects.device_classes, allocator_of)
        long_search = self._long_searches.get((pod.key, pod.uid))
        if long_search is not None and not are_same(long_search.inputs, to_allocate.inputs):
            long_search = None
        steps = math.inf if not self._may_defer else RESUMED_STEPS if long_search is not None else LOOP_STEPS
        return replace(
            cycle,
            to_allocate=to_allocate,
            allowance=Allowance(steps=steps, seconds=self._filter_timeout),
            long_search=long_search,
            in_use=allocated.by_pool() if long_search is not None else {},
        )

    def _allocate(self, pod: fwk.Pod, cycle: ClaimsOfCycle, to_allocate: NodeClaims, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows whose node has not enough devices, in a loop, since devices are not a column."""
        refusals: dict[str, Mask] = {}
        nodes = [rows.snapshot.nodes.objects[place] for place in rows.node.tolist()]
        claims_on = to_allocate.on(rows)
        allocations_of = {claims: self._known.of(claims.allocator) for claims in set(claims_on) if claims is not None}
        for row, (node, claims) in enumerate(zip(nodes, claims_on, strict=True)):
            if claims is None:
                continue
            name = node.metadata.name
            allocation = cycle.node_allocations.get(name)
            if allocation is None:
                known_allocations = allocations_of[claims]
                pools = self._slices.pools_for(node)
                allocation = known_allocations.on(node, pools)
                if allocation is None:
                    allocation = self._searched(cycle, node, claims.allocator)
                    if allocation is None:
                        remaining = zip(nodes[row:], claims_on[row:], strict=True)
                        searched = [(node, claims.allocator) for node, claims in remaining if claims is not None]
                        raise self._deferred(pod, cycle, to_allocate, searched)
                    known_allocations.remember(node, pools, allocation)
                cycle.node_allocations[name], cycle.claims_on[name] = allocation, claims
            if allocation.error is not None:
                raise AllocationError(str(allocation.error))
            if allocation.refusal:
                refusals.setdefault(allocation.refusal, np.zeros(len(rows), np.bool_))[row] = True
        return fwk.first_of(
            [fwk.accept(len(rows)), *(fwk.reject(mask, reason, unresolvable=True) for reason, mask in refusals.items())]
        )

    def _searched(self, cycle: ClaimsOfCycle, node: fwk.Node, allocator: Allocator) -> NodeAllocation | None:
        allocation = None
        if cycle.long_search is not None:
            allocation = cycle.long_search.allocation_on(node, allocator, cycle.in_use)
        with suppress(OutOfStepsError):
            allocation = allocation or allocation_on(node, allocator, cycle.allowance)
        return allocation

    def _deferred(
        self, pod: fwk.Pod, cycle: ClaimsOfCycle, to_allocate: NodeClaims, nodes: Sequence[tuple[fwk.Node, Allocator]]
    ) -> LongWork:
        """Returns the search of these nodes as work for a thread; the caller keeps it for the next cycle."""
        search = cycle.long_search
        if search is None:
            search = self._long_searches[pod.key, pod.uid] = LongSearch(to_allocate.inputs, self._filter_timeout)
        return LongWork(partial(search.search, nodes))

    def _unavailable(self, claim: ResourceClaim, allocation: AllocationResult, snapshot: fwk.Snapshot) -> Mask:
        """(N,) the nodes that cannot use the claim's devices; all of them if preparing the devices failed."""
        if self._features.binding_conditions and has_failed_binding(claim, self._binding_timeout, self._now()):
            return np.ones(len(snapshot.nodes), np.bool_)
        if allocation.node_selector is None:
            return np.zeros(len(snapshot.nodes), np.bool_)
        return ~node_selector_mask(snapshot, strict_node_selector_of(allocation.node_selector))

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Claims to create or change, claims or extended resources to do without; see `advice.suggestions`."""
        backed = self._backed(extended_resources_of(pod), rows.snapshot)
        return advice.suggestions(pod, rows, backed, DeviceInventory(rows.snapshot.objects, self._features))

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without resource claims and without extended resources that device classes back."""
        return advice.without_devices(pod, tuple(self._backed(extended_resources_of(pod), rows.snapshot)))


def _score(cycle: ClaimsOfCycle, node: str) -> int:
    allocation = cycle.node_allocations.get(node)
    if allocation is None or allocation.refusal:
        return 0
    new = iter(allocation.allocations)
    joined = cycle.joined
    return sum(
        score(claim, claim.status.allocation or joined.get(identity(claim)) or next(new)) for claim in cycle.claims
    )
