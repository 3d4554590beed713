"""The resource claims of a pod, those written but not yet observed, and the events that may free devices.

Upstream: dynamic-resource-allocation/resourceclaim/resourceclaim.go;
framework/plugins/dynamicresources/dynamicresources.go, foreachPodResourceClaim, isClaimReadyForBinding, isClaimTimeout,
isSchedulableAfterClaimChange, isSchedulableAfterPodChange; dra_manager.go, claimTracker.
"""

from collections.abc import Callable, Iterable, Mapping, Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.plugins.dynamic_resources.allocated_state import results_of
from extender.values.golang.quoting import quoted
from extender.values.golang.times import moment_of
from extender.values.objects.cluster import Key
from extender.values.objects.devices import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from extender.values.objects.meta import Condition, version
from extender.values.objects.pod import Pod, PodResourceClaim


class ClaimError(Exception):
    """A claim of the pod is missing or not the pod's. The message is upstream's."""


def claims_of(pod: Pod, claims: Mapping[Key, ResourceClaim]) -> list[ResourceClaim]:
    """Returns the pod's claims in the order of its spec, without templates for which no claim was needed.

    Raises ClaimError if a claim does not exist yet, is being deleted, or was made for another pod.
    """
    pod_claims: list[ResourceClaim] = []
    claims_by_name: dict[str, ResourceClaim] = {}  # a pod may refer to one thousands of times
    generated: dict[str, str | None] | None = None
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name in claims_by_name:
            pod_claims.append(claims_by_name[reference.resource_claim_name])
            continue
        if generated is None and reference.resource_claim_name is None:
            generated = {
                status.name: status.resource_claim_name for status in reversed(pod.status.resource_claim_statuses)
            }
        name, is_generated = _claim_name(pod, reference, generated or {})
        if name is None:
            continue
        claim = claims.get((pod.namespace, name))
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if is_generated and not _is_controlled_by(claim, pod):
            raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        pod_claims.append(claim)
        if not is_generated:
            claims_by_name[name] = claim
    return pod_claims


def each_once(claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Returns the claims in order, without repetitions."""
    return [*{id(claim): claim for claim in claims}.values()]


def _claim_name(pod: Pod, reference: PodResourceClaim, generated: Mapping[str, str | None]) -> tuple[str | None, bool]:
    """Returns the claim's name, None if none was needed, and whether it was `generated` from a template."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    if reference.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    if reference.name in generated:
        return generated[reference.name], True
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def _is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    controllers = [owner for owner in claim.metadata.owner_references if owner.controller]
    return bool(controllers) and controllers[0].uid == pod.uid


def identity(claim: ResourceClaim) -> str:
    """Returns the claim's UID, or its key if it has none, as in a dump made by hand."""
    return claim.metadata.uid or claim.key


def is_held_by_others(claim: ResourceClaim, pod: Pod) -> bool:
    """True if another consumer has reserved the claim, so that it must stay allocated."""
    return any(consumer.uid != pod.uid for consumer in claim.status.reserved_for) or len(claim.status.reserved_for) > 1


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """True if the claim is reserved for the pod. Upstream: resourceclaim.go, IsReservedForPod."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)


class BindingFailedError(Exception):
    """A driver could not prepare a device for the pod. The message is upstream's."""


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """True if a device of the claim has to be prepared before the pod can be bound."""
    return any(result.binding_conditions for result in results_of(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """True once drivers have prepared all devices that need it. Raises BindingFailedError if one reports failure."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        device = _device_status(claim, result)
        if device is None:
            return False
        failed = next(filter(None, (_true(device, kind) for kind in result.binding_failure_conditions)), None)
        if failed is not None:
            raise BindingFailedError(
                f"claim {claim.metadata.name} binding failed: reason={failed.reason}, message={quoted(failed.message)}"
            )
        if any(_true(device, kind) is None for kind in result.binding_conditions):
            return False
    return True


def is_overdue(claim: ResourceClaim, timeout: timedelta, now: datetime) -> bool:
    """True if drivers have had enough time to prepare the claim's devices. Upstream: isClaimTimeout."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_binding_conditions(claim):
        return False
    since = moment_of(allocation.allocation_timestamp)
    # Only hand-made objects have invalid times; more time for the driver does no harm.
    return since is not None and now - since > timeout


def has_failed_binding(claim: ResourceClaim, timeout: timedelta, now: datetime) -> bool:
    """True if a driver of the claim reports failure, or has reported nothing for longer than `timeout`."""
    try:
        return not is_ready(claim) and is_overdue(claim, timeout, now)
    except BindingFailedError:
        return True


def _device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    device_id = (result.driver, result.pool, result.device)
    return next(
        (status for status in claim.status.devices if (status.driver, status.pool, status.device) == device_id), None
    )


def _true(device: AllocatedDeviceStatus, kind: str) -> Condition | None:
    condition = next((condition for condition in device.conditions if condition.type == kind), None)
    return condition if condition is not None and condition.status == "True" else None


CREATED_SHOWS_WITHIN: Final = timedelta(seconds=120)
"""How long a created claim counts unseen. Upstream: AssumeExtendedResourceTimeoutDefaultSeconds."""


@final
class ClaimTracker:
    """Claims that the scheduler has allocated or written, until the watch shows them.

    State: the claims allocated for pods that are not bound yet, with the UIDs of these pods; and claims as the API
    server returned them when they were written, until the watch shows as much. All profiles share one tracker, so that
    they do not allocate a device twice.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._pending: dict[str, tuple[ResourceClaim, set[str]]] = {}
        self._written: dict[Key, ResourceClaim] = {}
        self._created: dict[Key, datetime] = {}
        """Claims that the watch has not shown since they were created -> until when they count."""

    def pending(self, claim: ResourceClaim) -> tuple[AllocationResult | None, AbstractSet[str]]:
        """Returns the claim's pending allocation, if any, and the UIDs of the pods that it is for."""
        pending, sharers = self._pending.get(identity(claim), (None, frozenset[str]()))
        return None if pending is None else pending.status.allocation, sharers

    def add_pending(self, claim: ResourceClaim, pod: Pod) -> None:
        """Records that the claim is about to be written with its allocation, or that another pod shares it.

        Upstream: SignalClaimPendingAllocation.
        """
        self._pending.setdefault(identity(claim), (claim, set()))[1].add(pod.uid)

    def remove_pending(self, claim: ResourceClaim, pod: Pod) -> None:
        """Drops the pending allocation of the claim once no pod shares it. A pod counts once, however often it fails
        (kubernetes#139418). Upstream: MaybeRemoveClaimPendingAllocation.
        """
        _, sharers = self._pending.get(identity(claim), (claim, set()))
        sharers.discard(pod.uid)
        if not sharers:
            self._pending.pop(identity(claim), None)

    def current(self, claim: ResourceClaim, table: Mapping[Key, ResourceClaim]) -> ResourceClaim:
        """Returns the latest known state of the claim; the table has those that the watch shows."""
        key = (claim.namespace, claim.metadata.name)
        states = (table.get(key), self._written.get(key), claim)
        same = (state for state in states if state is not None and identity(state) == identity(claim))
        return max(same, key=lambda state: version(state.metadata))

    def assume(self, claim: ResourceClaim) -> None:
        """Records a claim as the API server returned it. Upstream: AssumeClaimAfterAPICall."""
        key = (claim.namespace, claim.metadata.name)
        earlier = self._written.get(key)
        if earlier is None or version(earlier.metadata) <= version(claim.metadata):
            self._written[key] = claim

    def assume_created(self, claim: ResourceClaim) -> None:
        """Records a created claim, which the watch may not show yet (waitForExtendedClaimInAssumeCache)."""
        self.assume(claim)
        self._created[claim.namespace, claim.metadata.name] = self._now() + CREATED_SHOWS_WITHIN

    def is_shown(self, claim: ResourceClaim, table: Mapping[Key, ResourceClaim]) -> bool:
        """True if the watch has shown the created claim before, or can no longer be expected to.

        From then on it is deleted once the watch does not show it.
        """
        key = (claim.namespace, claim.metadata.name)
        if key in self._created and (key in table or self._now() >= self._created[key]):
            del self._created[key]
        return key not in self._created

    def forget(self, claim: ResourceClaim) -> None:
        """Forgets a deleted claim."""
        key = (claim.namespace, claim.metadata.name)
        self._written.pop(key, None)
        self._created.pop(key, None)

    def latest(self, table: Mapping[Key, ResourceClaim]) -> Mapping[Key, ResourceClaim]:
        """Returns all claims in their latest known state; the table has those that the watch shows."""
        for key, claim in list(self._written.items()):
            observed = table.get(key)
            if observed is None and not self.is_shown(claim, table):
                continue
            self._created.pop(key, None)
            # A claim missing from the watch was deleted: one that was written had been shown before, or was created
            # long ago.
            is_same = observed is not None and identity(observed) == identity(claim)
            if observed is None or not is_same or version(observed.metadata) >= version(claim.metadata):
                del self._written[key]
        return {**table, **self._written} if self._written else table

    def holders(self, table: Mapping[Key, ResourceClaim]) -> list[ResourceClaim]:
        """Returns all claims that may hold devices, each once: a written claim is not listed as pending."""
        latest = self.latest(table)
        allocated = {
            identity(claim) for claim in latest.values() if claim.status.allocation is not None and self._pending
        }
        return [*latest.values(), *(claim for uid, (claim, _) in self._pending.items() if uid not in allocated)]


@final
class ClaimHints:
    """The queueing hints of DynamicResources."""

    def __init__(self, claims: Callable[[], Mapping[Key, ResourceClaim]]) -> None:
        """Takes a function that returns the latest claims of the cluster."""
        self._claims = claims

    def events(self) -> list[fwk.ClusterEventWithHint]:
        """Returns the events that DynamicResources registers for."""
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        nodes = add | fwk.ActionType.UPDATE_NODE_LABEL | fwk.ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            fwk.on(fwk.EventResource.NODE, nodes),
            fwk.on(fwk.EventResource.RESOURCE_CLAIM, add | update, self.after_claim_change),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self.after_pod_update),
            fwk.on(fwk.EventResource.DEVICE_CLASS, add | update),
            fwk.on(fwk.EventResource.RESOURCE_SLICE, add | update),
            # Not in v1.36.2: it came with kubernetes#140831.
            fwk.on(fwk.EventResource.RESOURCE_CLAIM, fwk.ActionType.DELETE, self.after_claim_deletion),
        ]

    def _all_claims(self, pod: fwk.Pod) -> list[ResourceClaim] | None:
        """Returns the pod's claims; None unless all exist."""
        try:
            return claims_of(pod, self._claims())
        except ClaimError:
            return None

    def after_claim_change(self, pod: fwk.Pod, old: ResourceClaim | None, new: ResourceClaim) -> fwk.QueueingHint:
        """Queues the pod if its claims exist, and this one was deallocated, or is its own and changed in status."""
        claims = self._all_claims(pod)
        if claims is None:
            return fwk.QueueingHint.QUEUE_SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return fwk.QueueingHint.QUEUE
        is_ours = any(identity(claim) == identity(new) for claim in claims)
        return fwk.queue_if(is_ours and (old is None or old.status != new.status))

    def after_claim_deletion(self, pod: fwk.Pod, old: ResourceClaim, new: None) -> fwk.QueueingHint:
        """Queues the pod if its claims exist, and the one that is gone had devices."""
        return fwk.queue_if(old.status.allocation is not None and self._all_claims(pod) is not None)

    def after_pod_update(self, pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
        """Queues the pod once its status names its claims and all of them exist."""
        return fwk.queue_if(new.uid == pod.uid and self._all_claims(new) is not None)
