"""The request for each call, and how to see in the object whether the call was performed."""

from datetime import datetime
from typing import Any, Final

import msgspec

from extender.apiserver.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from extender.apiserver.paths import path
from extender.framework import (
    CLAIM_FINALIZER,
    ApiCall,
    BindPod,
    DeallocateResourceClaim,
    DeletePod,
    PatchPersistentVolume,
    PatchPersistentVolumeClaim,
    PatchPodStatus,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnreserveResourceClaim,
)
from extender.golang.times import rfc3339
from extender.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.objects.decoding import decode
from extender.objects.devices import AllocationResult, ResourceClaim
from extender.objects.pod import Pod
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim

BIND_SECONDS: Final = 5.0
"""The time limit of one attempt. It is shorter than a leader may go without renewing its lease, so that none is in flight when another
begins."""
WRITE_SECONDS: Final = 30.0
STATUS_SECONDS: Final = 10.0
"""Shorter than for other writes, because the binding of the same pod may wait for it."""

ClaimCall = ReadResourceClaim | ProtectResourceClaim | ReserveResourceClaim | UnreserveResourceClaim | DeallocateResourceClaim

_RESOURCE_GROUP: Final = "resource.k8s.io"


async def send(client: Client, call: ApiCall[Any], now: datetime) -> Any:
    """Makes one attempt at a call, and returns its result.

    Raises:
        ApiError: it was refused, or its outcome is unknown.
        DecodeError: the answer cannot be read.
    """
    match call:
        case BindPod():
            await client.create(_pod(call, "binding"), _binding(call), timeout=BIND_SECONDS)
            return None
        case PatchPodStatus():
            await client.patch(_pod(call, "status"), _status_patch(call, now), STRATEGIC_MERGE_PATCH, timeout=STATUS_SECONDS)
            return None
        case DeletePod():
            await client.delete(_pod(call), uid=call.uid or None, grace_period_seconds=call.grace_period_seconds, timeout=WRITE_SECONDS)
            return None
        case PatchPersistentVolume():
            answer = await client.patch(_volume(call), _volume_patch(call), MERGE_PATCH, timeout=WRITE_SECONDS)
            return decode(PersistentVolume, answer)
        case PatchPersistentVolumeClaim():
            answer = await client.patch(_volume_claim(call), _volume_claim_patch(call), MERGE_PATCH, timeout=WRITE_SECONDS)
            return decode(PersistentVolumeClaim, answer)
        case ReadResourceClaim():
            return await read(client, call)
        case ProtectResourceClaim():
            body = {"metadata": {**_preconditions(call), "finalizers": [CLAIM_FINALIZER]}}
            return decode(ResourceClaim, await client.patch(_claim(call), body, STRATEGIC_MERGE_PATCH, timeout=WRITE_SECONDS))
        case ReserveResourceClaim() | UnreserveResourceClaim() | DeallocateResourceClaim():
            kind = MERGE_PATCH if isinstance(call, DeallocateResourceClaim) else STRATEGIC_MERGE_PATCH
            answer = await client.patch(_claim(call, "status"), _claim_status_patch(call), kind, timeout=WRITE_SECONDS)
            return decode(ResourceClaim, answer)
    raise TypeError(f"{type(call).__name__} cannot be performed")


async def read(client: Client, call: ApiCall[Any]) -> Any:
    """Returns the object that a call is about, as it is now.

    Raises:
        ApiError: it cannot be read.
    """
    match call:
        case BindPod() | PatchPodStatus() | DeletePod():
            return decode(Pod, await client.get(_pod(call)))
        case PatchPersistentVolume():
            return decode(PersistentVolume, await client.get(_volume(call)))
        case PatchPersistentVolumeClaim():
            return decode(PersistentVolumeClaim, await client.get(_volume_claim(call)))
        case ReadResourceClaim() | ProtectResourceClaim() | ReserveResourceClaim() | UnreserveResourceClaim() | DeallocateResourceClaim():
            return decode(ResourceClaim, await client.get(_claim(call)))
    raise TypeError(f"{type(call).__name__} is about no object that could be read")


def is_done(call: ApiCall[Any], found: Any) -> bool:
    """Returns whether the object shows that the call was performed; False for calls that leave no trace in it."""
    match call, found:
        case BindPod(), Pod():
            return call.uid in ("", found.uid) and found.spec.node_name == call.node
        case PatchPersistentVolume(), PersistentVolume():
            reference = found.spec.claim_ref
            return found.metadata.uid == call.uid and reference is not None and reference.uid == call.claim.uid
        case PatchPersistentVolumeClaim(), PersistentVolumeClaim():
            return found.metadata.uid == call.uid and found.metadata.annotations.get(SELECTED_NODE_ANNOTATION) == call.selected_node
        case ProtectResourceClaim(), ResourceClaim():
            return found.metadata.uid == call.uid and CLAIM_FINALIZER in found.metadata.finalizers
        case ReserveResourceClaim(), ResourceClaim():
            has_devices = call.allocation is None or _devices(found.status.allocation) == _devices(call.allocation)
            is_reserved = any(consumer.uid == call.consumer.uid for consumer in found.status.reserved_for)
            return found.metadata.uid == call.uid and has_devices and is_reserved
        case DeallocateResourceClaim(), ResourceClaim():
            return found.metadata.uid == call.uid and found.status.allocation is None
    return False


def _devices(allocation: AllocationResult | None) -> list[tuple[str, str, str]]:
    return [(result.driver, result.pool, result.device) for result in allocation.devices.results] if allocation is not None else []


def _pod(call: BindPod | PatchPodStatus | DeletePod, subresource: str | None = None) -> str:
    return path("", "v1", "pods", namespace=call.namespace, name=call.name, subresource=subresource)


def _volume(call: PatchPersistentVolume) -> str:
    return path("", "v1", "persistentvolumes", name=call.name)


def _volume_claim(call: PatchPersistentVolumeClaim) -> str:
    return path("", "v1", "persistentvolumeclaims", namespace=call.namespace, name=call.name)


def _claim(call: ClaimCall, subresource: str | None = None) -> str:
    return path(_RESOURCE_GROUP, "v1", "resourceclaims", namespace=call.namespace, name=call.name, subresource=subresource)


def _binding(call: BindPod) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": call.namespace, "name": call.name, "uid": call.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": call.node},
    }


def _status_patch(call: PatchPodStatus, now: datetime) -> dict[str, Any]:
    status: dict[str, Any] = {}
    conditions = []
    for condition, is_transition in call.changed_conditions:
        body: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        if condition.observed_generation:
            body["observedGeneration"] = condition.observed_generation
        if is_transition:
            body["lastTransitionTime"] = rfc3339(now)
        conditions.append(body)
    if conditions:
        status["conditions"] = conditions
    if call.changes_nomination:
        status["nominatedNodeName"] = call.nominated_node_name or None
    # Preconditions: the patch must hit neither a pod that has taken over the name nor one that has changed since.
    metadata = _preconditions(call)
    return {"metadata": metadata, "status": status} if metadata else {"status": status}


def _volume_patch(call: PatchPersistentVolume) -> dict[str, Any]:
    annotations = {"annotations": {BOUND_BY_CONTROLLER_ANNOTATION: "yes"}} if call.bound_by_controller else {}
    return {"metadata": {**_preconditions(call), **annotations}, "spec": {"claimRef": _wire(call.claim)}}


def _volume_claim_patch(call: PatchPersistentVolumeClaim) -> dict[str, Any]:
    return {"metadata": {**_preconditions(call), "annotations": {SELECTED_NODE_ANNOTATION: call.selected_node}}}


def _claim_status_patch(call: ReserveResourceClaim | UnreserveResourceClaim | DeallocateResourceClaim) -> dict[str, Any]:
    match call:
        case ReserveResourceClaim():
            status: dict[str, Any] = {"reservedFor": [_wire(call.consumer)]}
            if call.allocation is not None:
                status["allocation"] = _wire(call.allocation)
            return {"metadata": _preconditions(call), "status": status}
        case UnreserveResourceClaim():
            removal = {"$patch": "delete", "uid": call.pod_uid}
            return {"metadata": {"uid": call.uid}, "status": {"reservedFor": [removal]}}
        case DeallocateResourceClaim():
            return {"metadata": _preconditions(call), "status": {"allocation": None, "reservedFor": None, "devices": None}}


def _preconditions(
    call: PatchPodStatus
    | PatchPersistentVolume
    | PatchPersistentVolumeClaim
    | ProtectResourceClaim
    | ReserveResourceClaim
    | DeallocateResourceClaim,
) -> dict[str, Any]:
    """Returns the metadata that makes the API server refuse the patch if the object is another one or has changed."""
    known = (("uid", call.uid), ("resourceVersion", call.resource_version))
    return {name: value for name, value in known if value}


def _wire(value: Any) -> Any:
    """Returns a value for JSON, without empty members of our own objects. Other values, such as a driver's parameters, are unchanged."""
    if isinstance(value, msgspec.Struct):
        members = zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True)
        return {name: _wire(member) for name, member in members if member not in (None, "", [], {}, ())}
    if isinstance(value, list):
        return [_wire(member) for member in value]
    return value
