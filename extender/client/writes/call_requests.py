"""The request for each call, and how to see in the object whether the call was performed."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from extender.client.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from extender.client.errors import NotServed
from extender.client.paths import Right, path
from extender.engine.framework import ApiCall, BindPod, DeletePod, PatchPodGroupStatus, PatchPodStatus
from extender.engine.framework.storage_calls import (
    CLAIM_FINALIZER,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    PatchPersistentVolume,
    PatchPersistentVolumeClaim,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
    UnreserveResourceClaim,
)
from extender.values.golang.times import rfc3339
from extender.values.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.decoding import decode
from extender.values.objects.devices import AllocationResult, ResourceClaim
from extender.values.objects.grouping import PodGroup
from extender.values.objects.kinds import POD_GROUPS
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

T = TypeVar("T")

BIND_SECONDS: Final = 5.0
"""The time limit of one attempt. It is shorter than a leader may go without renewing its lease, so that none is in
flight when another begins.
"""
WRITE_SECONDS: Final = 30.0
STATUS_SECONDS: Final = 10.0
"""Shorter than for other writes, because the binding of the same pod may wait for it."""

PatchCall = (
    PatchPersistentVolume
    | PatchPersistentVolumeClaim
    | ProtectResourceClaim
    | ReserveResourceClaim
    | UnreserveResourceClaim
    | DeallocateResourceClaim
    | UnprotectResourceClaim
)
RequestCall = (
    BindPod
    | PatchPodStatus
    | PatchPodGroupStatus
    | DeletePod
    | ReadResourceClaim
    | CreateResourceClaim
    | DeleteResourceClaim
    | PatchCall
)

_DEVICES: Final = "resource.k8s.io"
_CLAIM_STATUS: Final = Right(_DEVICES, "resourceclaims", "patch", "status")

REQUESTS: Final[Mapping[type[ApiCall[Any]], Right]] = {
    BindPod: Right("", "pods", "create", "binding"),
    PatchPodStatus: Right("", "pods", "patch", "status"),
    DeletePod: Right("", "pods", "delete"),
    PatchPodGroupStatus: Right(POD_GROUPS.group, POD_GROUPS.plural, "patch", "status"),
    PatchPersistentVolume: Right("", "persistentvolumes", "patch"),
    PatchPersistentVolumeClaim: Right("", "persistentvolumeclaims", "patch"),
    ReadResourceClaim: Right(_DEVICES, "resourceclaims", "get"),
    ProtectResourceClaim: Right(_DEVICES, "resourceclaims", "patch"),
    ReserveResourceClaim: _CLAIM_STATUS,
    UnreserveResourceClaim: _CLAIM_STATUS,
    DeallocateResourceClaim: _CLAIM_STATUS,
    CreateResourceClaim: Right(_DEVICES, "resourceclaims", "create"),
    UnprotectResourceClaim: Right(_DEVICES, "resourceclaims", "patch"),
    DeleteResourceClaim: Right(_DEVICES, "resourceclaims", "delete"),
}
"""The verb and the resource of each call."""

_TYPES: Final[Mapping[str, type[Any]]] = {
    "pods": Pod,
    "persistentvolumes": PersistentVolume,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "resourceclaims": ResourceClaim,
}

BIND_CLAIM: Final = Right(_DEVICES, "resourceclaims", "patch", "binding")
"""Needed to change a claim's allocation or reservations, besides the right to patch its status.

Upstream: pkg/registry/resource/utils.go, AuthorizedForBinding.
"""


def rights_for(call: type[ApiCall[Any]]) -> frozenset[Right]:
    """Returns what a role must allow for this type: the request, and reading after a lost answer."""
    request = REQUESTS[call]
    also = {BIND_CLAIM} if request is _CLAIM_STATUS else set()
    return frozenset({request, Right(request.group, request.plural, "get"), *also})


async def send(client: Client, call: ApiCall[Any], now: Callable[[], datetime]) -> Any:
    """Makes one attempt at a call, and returns its result. Raises ApiError; DecodeError for an unreadable answer."""
    match call:
        case BindPod():
            await client.create(_path(call), _binding(call), timeout=BIND_SECONDS)
            return None
        case PatchPodStatus():
            await client.patch(_path(call), _status_patch(call, now()), STRATEGIC_MERGE_PATCH, timeout=STATUS_SECONDS)
            return None
        case PatchPodGroupStatus():
            patch = _group_status_patch(call, now())
            await _in_either_version(
                call, "status", lambda url: client.patch(url, patch, STRATEGIC_MERGE_PATCH, timeout=STATUS_SECONDS)
            )
            return None
        case DeletePod() | DeleteResourceClaim():
            grace = call.grace_period_seconds if isinstance(call, DeletePod) else None
            await client.delete(_path(call), uid=call.uid or None, grace_period_seconds=grace, timeout=WRITE_SECONDS)
            return None
        case ReadResourceClaim():
            return await read(client, call)
        case CreateResourceClaim():
            right = REQUESTS[type(call)]
            claims = path(right.group, "v1", right.plural, namespace=call.namespace)
            return decode(ResourceClaim, await client.create(claims, _claim_body(call), timeout=WRITE_SECONDS))
    if not isinstance(call, PatchCall):
        raise TypeError(f"{type(call).__name__} cannot be performed")
    patch, content_type = _patch(call)
    answer = await client.patch(_path(call), patch, content_type, timeout=WRITE_SECONDS)
    return decode(_TYPES[REQUESTS[type(call)].plural], answer)


async def read(client: Client, call: ApiCall[Any]) -> Any:
    """Returns the present object of a call. Raises ApiError."""
    if isinstance(call, PatchPodGroupStatus):
        return decode(PodGroup, await _in_either_version(call, None, client.get))
    if not isinstance(call, RequestCall):
        raise TypeError(f"{type(call).__name__} is about no object that could be read")
    return decode(_TYPES[REQUESTS[type(call)].plural], await client.get(_object_path(call)))


def is_done(call: ApiCall[Any], obj: Any) -> bool:
    """Returns whether the object shows that the call was performed; False for calls that leave no trace in it."""
    match call, obj:
        case BindPod(), Pod():
            return call.uid in ("", obj.uid) and obj.spec.node_name == call.node
        case PatchPersistentVolume(), PersistentVolume():
            reference = obj.spec.claim_ref
            return obj.metadata.uid == call.uid and reference is not None and reference.uid == call.claim.uid
        case PatchPersistentVolumeClaim(), PersistentVolumeClaim():
            return (
                obj.metadata.uid == call.uid
                and obj.metadata.annotations.get(SELECTED_NODE_ANNOTATION) == call.selected_node
            )
        case ProtectResourceClaim(), ResourceClaim():
            return obj.metadata.uid == call.uid and CLAIM_FINALIZER in obj.metadata.finalizers
        case ReserveResourceClaim(), ResourceClaim():
            has_devices = call.allocation is None or _devices(obj.status.allocation) == _devices(call.allocation)
            is_reserved = any(consumer.uid == call.consumer.uid for consumer in obj.status.reserved_for)
            return obj.metadata.uid == call.uid and has_devices and is_reserved
        case UnprotectResourceClaim(), ResourceClaim():
            return obj.metadata.uid == call.uid and CLAIM_FINALIZER not in obj.metadata.finalizers
        case DeallocateResourceClaim(), ResourceClaim():
            return obj.metadata.uid == call.uid and obj.status.allocation is None
    return False


def _devices(allocation: AllocationResult | None) -> list[tuple[str, str, str]]:
    results = [] if allocation is None else allocation.devices.results
    return [(result.driver, result.pool, result.device) for result in results]


def _path(call: RequestCall) -> str:
    return _object_path(call, REQUESTS[type(call)].subresource or None)


async def _in_either_version(
    call: PatchPodGroupStatus, subresource: str | None, request: Callable[[str], Awaitable[T]]
) -> T:
    """Returns the answer to a request for a group, by the other version's path if one is not served."""
    try:
        return await request(_object_path(call, subresource, POD_GROUPS.version))
    except NotServed:
        return await request(_object_path(call, subresource, POD_GROUPS.other_api_version.rpartition("/")[2]))


def _object_path(call: RequestCall, subresource: str | None = None, version: str = "v1") -> str:
    right = REQUESTS[type(call)]
    namespace: str | None = getattr(call, "namespace", None)
    return path(right.group, version, right.plural, namespace=namespace, name=call.name, subresource=subresource)


def _binding(call: BindPod) -> dict[str, Any]:
    metadata = {"namespace": call.namespace, "name": call.name, "uid": call.uid}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata | ({"annotations": dict(call.annotations)} if call.annotations else {}),
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
    if call.extended_resource_claim is not None and call.changes_extended_resource_claim:
        status["extendedResourceClaimStatus"] = wire(call.extended_resource_claim)
    # Preconditions: the patch must hit neither a pod that has taken over the name nor one that has changed since.
    metadata = _preconditions(call)
    return {"metadata": metadata, "status": status} if metadata else {"status": status}


def _group_status_patch(call: PatchPodGroupStatus, now: datetime) -> dict[str, Any]:
    condition = {
        "type": call.condition.type,
        "status": call.condition.status,
        "reason": call.condition.reason,
        "message": call.condition.message,
        "observedGeneration": call.condition.observed_generation,
        **({"lastTransitionTime": rfc3339(now)} if call.is_transition else {}),
    }
    return {"metadata": {"uid": call.uid} if call.uid else {}, "status": {"conditions": [condition]}}


def _claim_body(call: CreateResourceClaim) -> dict[str, Any]:
    meta = call.claim.metadata
    metadata = {"generateName": call.generate_name, "namespace": call.namespace, "annotations": meta.annotations}
    metadata["ownerReferences"] = wire(meta.owner_references)
    return {
        "apiVersion": f"{_DEVICES}/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": wire(call.claim.spec),
    }


def _patch(call: PatchCall) -> tuple[dict[str, Any], str]:
    """(the patch, its content type)."""
    match call:
        case PatchPersistentVolume():
            annotations = {"annotations": {BOUND_BY_CONTROLLER_ANNOTATION: "yes"}} if call.bound_by_controller else {}
            metadata = {**_preconditions(call), **annotations}
            return {"metadata": metadata, "spec": {"claimRef": wire(call.claim)}}, MERGE_PATCH
        case PatchPersistentVolumeClaim():
            selected = {SELECTED_NODE_ANNOTATION: call.selected_node}
            return {"metadata": {**_preconditions(call), "annotations": selected}}, MERGE_PATCH
        case ProtectResourceClaim():
            return {"metadata": {**_preconditions(call), "finalizers": [CLAIM_FINALIZER]}}, STRATEGIC_MERGE_PATCH
        case UnprotectResourceClaim():
            removal = {"$deleteFromPrimitiveList/finalizers": [CLAIM_FINALIZER]}
            return {"metadata": {"uid": call.uid, **removal}}, STRATEGIC_MERGE_PATCH
        case ReserveResourceClaim():
            status: dict[str, Any] = {"reservedFor": [wire(call.consumer)]}
            if call.allocation is not None:
                status["allocation"] = wire(call.allocation)
            return {"metadata": _preconditions(call), "status": status}, STRATEGIC_MERGE_PATCH
        case UnreserveResourceClaim():
            consumer = {"$patch": "delete", "uid": call.pod_uid}
            return {"metadata": {"uid": call.uid}, "status": {"reservedFor": [consumer]}}, STRATEGIC_MERGE_PATCH
        case DeallocateResourceClaim():
            status = {"allocation": None, "reservedFor": None, "devices": None}
            return {"metadata": _preconditions(call), "status": status}, MERGE_PATCH


def _preconditions(
    call: PatchPodStatus
    | PatchPersistentVolume
    | PatchPersistentVolumeClaim
    | ProtectResourceClaim
    | ReserveResourceClaim
    | DeallocateResourceClaim,
) -> dict[str, Any]:
    """Returns the metadata that makes the API server refuse the patch if the object is another or newer."""
    fields = (("uid", call.uid), ("resourceVersion", call.resource_version))
    return {name: value for name, value in fields if value}


def wire(value: Any) -> Any:
    """Returns a value for JSON, without empty members of our own objects, others unchanged."""
    if isinstance(value, msgspec.Struct):
        members = zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True)
        return {name: wire(member) for name, member in members if member not in (None, "", [], {}, ())}
    if isinstance(value, list):
        return [wire(member) for member in value]
    return value
