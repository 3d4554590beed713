"""Writes the allocations and reservations of a pod's claims, and waits until drivers have prepared the devices. Creates
the special claim of a pod, names it in the pod's status, and deletes it.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, bindClaim, isPodReadyForBinding;
extendeddynamicresources.go, createExtendedResourceClaimInAPI, patchPodExtendedResourceClaimStatus, deleteClaim,
unreserveExtendedResourceClaim. A special claim is deallocated there only by being deleted; here before it, because the
event requeues pods that wait for devices.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from extender.engine import framework as fwk
from extender.engine.framework.storage_calls import (
    CLAIM_FINALIZER,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
)
from extender.engine.plugins.dynamic_resources.allocated_state import results_of
from extender.engine.plugins.dynamic_resources.pod_claims import BindingFailedError, is_overdue, is_ready
from extender.values.golang.quoting import quoted
from extender.values.golang.times import rfc3339
from extender.values.objects.cluster import Key
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.values.objects.pod import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus

ATTEMPTS: Final = 5
PAUSE: Final = 0.01
"""Seconds between two attempts. Upstream: client-go/util/retry, DefaultRetry."""
CHECK_INTERVAL: Final = 5.0


class ClaimBindingError(Exception):
    """A claim of the pod could not be bound, or its devices will not get ready. The message is upstream's."""


class ClaimUncertainError(ClaimBindingError):
    """It is unknown whether the claim was written."""


async def bind_claim(
    claim: ResourceClaim, allocation: AllocationResult | None, pod: fwk.Pod, dispatcher: fwk.Dispatcher, now: datetime
) -> ResourceClaim:
    """Allocates the claim unless `allocation` is None, reserves it for the pod, and returns it as the API server has
    it.

    After a conflict the claim is read again, and the write is repeated a few times.

    Raises ClaimUncertainError if the outcome is unknown, ClaimBindingError if the API server refused, or the claim was
    deleted or allocated by another client.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(PAUSE)
            try:
                claim = await read_claim(claim, dispatcher)
            except fwk.CallError as exc:
                raise ClaimBindingError(f"get updated claim {claim.key} after conflict: {exc}") from exc
        try:
            return await _write(claim, allocation, pod, dispatcher, now)
        except fwk.CallConflict as exc:
            refusal = str(exc)
    raise ClaimBindingError(refusal)


async def read_claim(claim: ResourceClaim, dispatcher: fwk.Dispatcher) -> ResourceClaim:
    """Returns the claim as the API server has it now."""
    return await dispatcher.perform(ReadResourceClaim(*id_of(claim)))


async def _write(
    claim: ResourceClaim, allocation: AllocationResult | None, pod: fwk.Pod, dispatcher: fwk.Dispatcher, now: datetime
) -> ResourceClaim:
    """Makes one attempt of `bind_claim`. Raises as it does, and CallConflict if the claim has changed."""
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimBindingError(f"claim {claim.key} got deleted in the meantime")
    if allocation is not None and claim.status.allocation is not None:
        if not have_same_devices(allocation, claim.status.allocation):
            raise ClaimBindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
        allocation = None  # A pod that shares the claim was the first to write it.
    if allocation is not None:
        if CLAIM_FINALIZER not in claim.metadata.finalizers:
            with errors_of(f"add finalizer to claim {claim.key}"):
                claim = await dispatcher.perform(ProtectResourceClaim(*id_of(claim), claim.metadata.resource_version))
        allocation = replaced(allocation, allocation_timestamp=rfc3339(now))
    reservation = ReserveResourceClaim(*id_of(claim), claim.metadata.resource_version, consumer_of(pod), allocation)
    with errors_of(f"add {'allocation and ' if allocation is not None else ''}reservation to claim {claim.key}"):
        return await dispatcher.perform(reservation)


@contextmanager
def errors_of(action: str) -> Iterator[None]:
    """Turns errors of API calls in its block into those of `bind_claim`, prefixed with the failed action."""
    try:
        yield
    except fwk.CallConflict as exc:
        raise fwk.CallConflict(f"{action}: {exc}") from exc
    except fwk.CallUnknown as exc:
        raise ClaimUncertainError(f"{action}: {exc}") from exc
    except fwk.CallError as exc:
        raise ClaimBindingError(f"{action}: {exc}") from exc


def consumer_of(pod: fwk.Pod) -> ResourceClaimConsumerReference:
    """Returns the reference of a claim to the pod."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def have_same_devices(one: AllocationResult, other: AllocationResult) -> bool:
    """Returns whether both give every request the same devices and shares."""
    devices, other_devices = (
        {
            (result.request, result.driver, result.pool, result.device, result.share_id)
            for result in allocation.devices.results
        }
        for allocation in (one, other)
    )
    return devices == other_devices


def id_of(claim: ResourceClaim) -> tuple[str, str, str]:
    """Returns (namespace, name, UID)."""
    return claim.namespace, claim.metadata.name, claim.metadata.uid


def drivers_to_wait_for(claims: Iterable[ResourceClaim]) -> set[str]:
    return {result.driver for claim in claims for result in results_of(claim) if result.binding_conditions}


def outcome_of_wait(failed: ClaimBindingError | None) -> str:
    """Returns the metric label for the end of `wait_for_devices`."""
    if failed is None:
        return "success"
    if isinstance(failed.__cause__, BindingFailedError):
        return "failure"
    return "timeout" if str(failed).endswith("timeout") else "error"


async def wait_for_devices(
    claims: Iterable[ResourceClaim],
    latest: Callable[[], Mapping[Key, ResourceClaim]],
    max_wait: timedelta,
    now: Callable[[], datetime],
) -> None:
    """Waits until drivers report that the devices of all claims, as `latest` finds them, are usable on the node.

    Raises ClaimBindingError if a driver failed, or took longer than `max_wait`.
    """
    keys = [(claim.namespace, claim.metadata.name) for claim in claims]

    def are_ready() -> bool:
        claims_by_key = latest()
        for key in keys:
            claim = claims_by_key.get(key)
            if claim is None:
                raise ClaimBindingError(f"could not find ResourceClaim {quoted('/'.join(key))}")
            try:
                if is_ready(claim):
                    continue
            except BindingFailedError as exc:
                raise ClaimBindingError(str(exc)) from exc
            if is_overdue(claim, max_wait, now()):
                raise ClaimBindingError(f"claim {claim.metadata.name} binding timeout")
            return False
        return True

    try:
        await fwk.poll(are_ready, every=CHECK_INTERVAL, within=max_wait.total_seconds(), at_once=True)
    except TimeoutError as exc:
        raise ClaimBindingError("device binding timeout") from exc


Mappings = Sequence[ContainerExtendedResourceRequest]
"""Pairs of a container and its request of the special claim."""


async def create_special_claim(
    special: ResourceClaim, mappings: Mappings, pod: fwk.Pod, dispatcher: fwk.Dispatcher, creations: Counter[str]
) -> ResourceClaim:
    """Returns the pod's special claim as the API server has created it; counts success or failure.

    Raises as `errors_of`, and ClaimBindingError if no container uses the claim.
    """
    if not mappings:
        # Upstream creates the claim before it finds this out.
        raise ClaimBindingError(
            f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
        )
    outcome = "failure"
    try:
        with errors_of(f"create claim for extended resources {pod.namespace}/"):
            created = await dispatcher.perform(CreateResourceClaim(special, f"{pod.name}-extended-resources-"))
        outcome = "success"
    finally:
        creations[outcome] += 1
    return created


async def name_special_claim(
    claim: ResourceClaim, mappings: Mappings, pod: fwk.Pod, dispatcher: fwk.Dispatcher
) -> None:
    """Writes the claim and the containers' requests of it into the pod's status.

    Raises CallConflict if the pod has changed so that this does not apply, else ClaimBindingError.
    """
    status = PodExtendedResourceClaimStatus(request_mappings=list(mappings), resource_claim_name=claim.metadata.name)
    patch = fwk.PatchPodStatus.of(pod, extended_resource_claim=status)
    with errors_of(f"update pod {pod.key} ExtendedResourceClaimStatus"):
        while True:
            try:
                return await dispatcher.perform(patch)
            except fwk.CallSkipped:
                # Another patch of the pod's status takes this one along. Whether it succeeds is known once this one is
                # tried again.
                continue


async def delete_special_claim(claim: ResourceClaim, dispatcher: fwk.Dispatcher) -> None:
    """Deletes the claim, if it is still there. Raises CallError."""
    try:
        for call in _deletion(claim):
            await dispatcher.perform(call)
    except fwk.CallNotFound:
        return


def delete_special_claim_in_background(
    claim: ResourceClaim, dispatcher: fwk.Dispatcher, done: Callable[[], None]
) -> None:
    """Deletes the claim, and calls `done` after the last write, whether it succeeded or not."""
    calls = _deletion(claim)

    def perform_next(_: "asyncio.Future[ResourceClaim | None] | None" = None) -> None:
        call = next(calls, None)
        if call is None:
            done()
        else:
            dispatcher.submit(call).add_done_callback(perform_next)

    perform_next()


def _deletion(claim: ResourceClaim) -> Iterator[fwk.ApiCall[ResourceClaim]]:
    yield DeallocateResourceClaim(*id_of(claim), "")
    yield UnprotectResourceClaim(*id_of(claim))
    yield DeleteResourceClaim(*id_of(claim))
