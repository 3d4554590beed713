"""Applies the scheduler's writes about volumes and claims to the objects, and the controllers' reactions."""

from typing import Final, TypeVar

from extender.engine.framework import CallConflict, CallError
from extender.engine.framework.storage_calls import (
    CLAIM_FINALIZER,
    CreateResourceClaim,
    DeallocateResourceClaim,
    PatchPersistentVolume,
    PatchPersistentVolumeClaim,
    ProtectResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
    UnreserveResourceClaim,
)
from extender.values.objects.claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
)
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaim, ResourceClaimStatus
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

W = TypeVar("W", PersistentVolume, PersistentVolumeClaim, ResourceClaim)

CONSUMERS_OF_CLAIM: Final = 256
"""The pods for which one claim can be reserved. Upstream: resourceapi.ResourceClaimReservedForMaxSize."""

ClaimWrite = (
    ProtectResourceClaim
    | ReserveResourceClaim
    | UnreserveResourceClaim
    | DeallocateResourceClaim
    | UnprotectResourceClaim
)


def volume_after(call: PatchPersistentVolume, volume: PersistentVolume) -> PersistentVolume:
    """Returns the volume with its claim. Raises CallConflict."""
    check_version("persistentvolumes", volume, call.resource_version)
    meta = volume.metadata
    annotations = {**meta.annotations, **({BOUND_BY_CONTROLLER_ANNOTATION: "yes"} if call.bound_by_controller else {})}
    return replaced(
        volume, metadata=replaced(meta, annotations=annotations), spec=replaced(volume.spec, claim_ref=call.claim)
    )


def volume_claim_after(call: PatchPersistentVolumeClaim, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Returns the claim with the node that was selected for it. Raises CallConflict."""
    check_version("persistentvolumeclaims", claim, call.resource_version)
    annotations = {**claim.metadata.annotations, SELECTED_NODE_ANNOTATION: call.selected_node}
    return replaced(claim, metadata=replaced(claim.metadata, annotations=annotations))


def claim_after(call: ClaimWrite, claim: ResourceClaim) -> ResourceClaim:
    """Returns the resource claim after the write. Raises CallConflict, and CallError if it had too many users."""
    if not isinstance(call, UnreserveResourceClaim | UnprotectResourceClaim):
        check_version("resourceclaims.resource.k8s.io", claim, call.resource_version)
    status = claim.status
    match call:
        case ProtectResourceClaim():
            finalizers = tuple(dict.fromkeys((*claim.metadata.finalizers, CLAIM_FINALIZER)))
            return replaced(claim, metadata=replaced(claim.metadata, finalizers=finalizers))
        case ReserveResourceClaim():
            reserved_for = [*(one for one in status.reserved_for if one.uid != call.consumer.uid), call.consumer]
            if len(reserved_for) > CONSUMERS_OF_CLAIM:
                raise CallError(
                    f'ResourceClaim.resource.k8s.io "{call.name}" is invalid: status.reservedFor: Too many: '
                    f"{len(reserved_for)}: "
                    f"must have at most {CONSUMERS_OF_CLAIM} items"
                )
            return replaced(
                claim,
                status=replaced(status, allocation=call.allocation or status.allocation, reserved_for=reserved_for),
            )
        case UnreserveResourceClaim():
            consumers = [consumer for consumer in status.reserved_for if consumer.uid != call.pod_uid]
            return replaced(claim, status=replaced(status, reserved_for=consumers))
        case DeallocateResourceClaim():
            return replaced(claim, status=ResourceClaimStatus())
        case UnprotectResourceClaim():
            finalizers = tuple(finalizer for finalizer in claim.metadata.finalizers if finalizer != CLAIM_FINALIZER)
            return replaced(claim, metadata=replaced(claim.metadata, finalizers=finalizers))


def created_claim(call: CreateResourceClaim, suffix: str) -> ResourceClaim:
    """Returns the new claim, whose generated name has this suffix, and is its UID."""
    name = f"{call.generate_name}{suffix}"
    return replaced(
        call.claim, metadata=replaced(call.claim.metadata, name=name, uid=name), status=ResourceClaimStatus()
    )


def without_user(claim: ResourceClaim, uid: str) -> ResourceClaim:
    """Returns the claim without this pod among its users; one without users gives its devices back."""
    consumers = [consumer for consumer in claim.status.reserved_for if consumer.uid != uid]
    if consumers:
        return replaced(claim, status=replaced(claim.status, reserved_for=consumers))
    return replaced(claim, metadata=replaced(claim.metadata, finalizers=()), status=ResourceClaimStatus())


def bound(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    """Returns the claim as the volume controller binds it."""
    meta = replaced(claim.metadata, annotations={**claim.metadata.annotations, BIND_COMPLETED_ANNOTATION: "yes"})
    return replaced(
        claim,
        metadata=meta,
        spec=replaced(claim.spec, volume_name=volume),
        status=replaced(claim.status, phase="Bound"),
    )


def check_version(resource: str, current: W, version: str) -> None:
    """Refuses a write to an object that has changed, by CallConflict."""
    if version not in ("", current.metadata.resource_version):
        raise CallConflict(
            f'Operation cannot be fulfilled on {resource} "{current.metadata.name}": '
            "the object has been modified; please apply your changes to the latest version and try again"
        )
