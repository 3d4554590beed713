"""The claims of a pod: which they are, and whether an allocated one is ready.

Upstream: dynamic-resource-allocation/resourceclaim/resourceclaim.go; framework/plugins/dynamicresources/dynamicresources.go,
foreachPodResourceClaim, isClaimReadyForBinding, isClaimTimeout (v1.36.2).
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from extender.objects.cluster import Key
from extender.objects.devices import AllocatedDeviceStatus, AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from extender.objects.pod import Pod, PodResourceClaim


class ClaimError(Exception):
    """A claim of the pod is missing or not the pod's. The message is upstream's."""


def claims_of(pod: Pod, claims: Mapping[Key, ResourceClaim]) -> list[ResourceClaim]:
    """The pod's claims in the order of its spec. Templates for which no claim was needed are left out.

    Raises:
        ClaimError: a claim is not there yet, or is going away, or was made for someone else.
    """
    found: list[ResourceClaim] = []
    for reference in pod.spec.resource_claims:
        name, is_generated = _claim_name(pod, reference)
        if name is None:
            continue
        claim = claims.get((pod.namespace, name))
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if is_generated and not _is_controlled_by(claim, pod):
            raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        found.append(claim)
    return found


def _claim_name(pod: Pod, reference: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim's name (None: none was needed), and whether it was generated from a template."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    if reference.resource_claim_template_name is None:
        raise ClaimError(f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set')
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name, True
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def _is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    controllers = [owner for owner in claim.metadata.owner_references if owner.controller]
    return bool(controllers) and controllers[0].uid == pod.uid


def identity(claim: ResourceClaim) -> str:
    """The claim's UID; a dump made by hand may lack it, and then the name has to do."""
    return claim.metadata.uid or claim.key


def is_held_by_others(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether anyone but the pod has reserved the claim, so that it must stay allocated."""
    return any(consumer.uid != pod.uid for consumer in claim.status.reserved_for) or len(claim.status.reserved_for) > 1


def has_failed_binding(claim: ResourceClaim, allocation: AllocationResult, timeout: timedelta) -> bool:
    """Whether waiting for the claim's devices makes no sense any more: a driver reports failure, or nothing for too long.

    Arguments:
        timeout: how long a driver may take.
    """
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        device = _device_status(claim, result)
        if device is not None and _has_any(device, result.binding_failure_conditions):
            return True
        if device is None or not _has_all(device, result.binding_conditions):
            return _is_overdue(allocation, timeout)
    return False


def _device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((status for status in claim.status.devices if (status.driver, status.pool, status.device) == wanted), None)


def _is_true(device: AllocatedDeviceStatus, kind: str) -> bool:
    condition = next((condition for condition in device.conditions if condition.type == kind), None)
    return condition is not None and condition.status == "True"


def _has_any(device: AllocatedDeviceStatus, kinds: list[str]) -> bool:
    return any(_is_true(device, kind) for kind in kinds)


def _has_all(device: AllocatedDeviceStatus, kinds: list[str]) -> bool:
    return all(_is_true(device, kind) for kind in kinds)


def _is_overdue(allocation: AllocationResult, timeout: timedelta) -> bool:
    if allocation.allocation_timestamp is None:
        return False
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp)
    except ValueError:
        # Only hand-made input has such a time; a driver with a moment more does no harm.
        return False
    return datetime.now(UTC) - since.astimezone(UTC) > timeout
