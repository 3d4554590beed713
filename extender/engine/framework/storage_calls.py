"""Writes about volumes, their claims, and resource claims.

Upstream writes the whole object back (Update). Reprieve sends a patch with the fields that change and the resource
version the decision was made on. The API server refuses the patch when the object is newer, and fields that Reprieve
does not hold stay as they are.

Upstream: framework/plugins/volumebinding/binder.go, bindAPIUpdate;
framework/plugins/dynamicresources/dynamicresources.go, bindClaim, Unreserve, PostFilter; extendeddynamicresources.go,
createExtendedResourceClaimInAPI, deleteClaim.
"""

from dataclasses import dataclass
from typing import Final, final

from extender.engine.framework.api_calls import ApiCall
from extender.values.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.values.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim


@final
@dataclass(frozen=True, slots=True)
class PatchPersistentVolume(ApiCall[PersistentVolume]):
    """Reserves a volume for a claim; the volume controller completes the binding."""

    name: str
    uid: str
    resource_version: str
    claim: ObjectReference
    bound_by_controller: bool
    """Whether the volume is marked as bound by a controller and not by hand."""

    @classmethod
    def of(cls, volume: PersistentVolume) -> "PatchPersistentVolume":
        """Returns the call after which the volume has this one's claim; ValueError if it names none."""
        meta, reference = volume.metadata, volume.spec.claim_ref
        if reference is None:
            raise ValueError(f"persistentvolume {meta.name} names no claim")
        return cls(
            meta.name, meta.uid, meta.resource_version, reference, BOUND_BY_CONTROLLER_ANNOTATION in meta.annotations
        )

    @property
    def object_key(self) -> str:
        return self.uid or f"persistentvolumes/{self.name}"


@final
@dataclass(frozen=True, slots=True)
class PatchPersistentVolumeClaim(ApiCall[PersistentVolumeClaim]):
    """Requests that a volume be provisioned for the claim so that a node can reach it."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    selected_node: str

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "PatchPersistentVolumeClaim":
        """Returns the call after which the claim has this one's selected node; KeyError if it names none."""
        meta = claim.metadata
        return cls(
            claim.namespace,
            meta.name,
            meta.uid,
            meta.resource_version,
            meta.annotations[SELECTED_NODE_ANNOTATION],
        )

    @property
    def object_key(self) -> str:
        return self.uid or f"persistentvolumeclaims/{self.namespace}/{self.name}"


CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps an allocated claim from being deleted."""


@dataclass(frozen=True, slots=True)
class _AboutClaim(ApiCall[ResourceClaim]):
    namespace: str
    name: str
    uid: str

    @property
    def object_key(self) -> str:
        return self.uid or f"resourceclaims/{self.namespace}/{self.name}"


@final
@dataclass(frozen=True, slots=True)
class ReadResourceClaim(_AboutClaim):
    """Reads the claim, which a conflict showed to be outdated, from the API server."""


@final
@dataclass(frozen=True, slots=True)
class ProtectResourceClaim(_AboutClaim):
    """Adds the finalizer of allocated claims."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class ReserveResourceClaim(_AboutClaim):
    """Reserves the claim for a pod, and writes the allocation found for it if there is a new one."""

    resource_version: str
    consumer: ResourceClaimConsumerReference
    allocation: AllocationResult | None = None
    """None for a claim that is already allocated, which cannot be changed any more."""


@final
@dataclass(frozen=True, slots=True)
class UnreserveResourceClaim(_AboutClaim):
    """Removes a pod from the users of the claim, whatever else has changed in it."""

    pod_uid: str


@final
@dataclass(frozen=True, slots=True)
class DeallocateResourceClaim(_AboutClaim):
    """Removes the allocation and all users of the claim."""

    resource_version: str
    """The version that was seen; "" deallocates whatever is there."""


@final
@dataclass(frozen=True, slots=True)
class CreateResourceClaim(ApiCall[ResourceClaim]):
    """Creates a claim under a name that the API server generates."""

    claim: ResourceClaim
    """Its name, UID and status are not written."""
    generate_name: str

    @property
    def namespace(self) -> str:
        return self.claim.namespace

    @property
    def name(self) -> str:
        """The start of the claim's name."""
        return self.generate_name

    @property
    def object_key(self) -> str:
        return self.claim.metadata.uid


@final
@dataclass(frozen=True, slots=True)
class UnprotectResourceClaim(_AboutClaim):
    """Removes the finalizer of allocated claims, whatever else has changed in the claim, so that it can be deleted."""


@final
@dataclass(frozen=True, slots=True)
class DeleteResourceClaim(_AboutClaim):
    """Deletes the claim, and never another one that has its name by now."""
