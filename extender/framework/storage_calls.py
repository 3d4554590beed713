"""Writes about volumes, their claims, and resource claims.

Upstream writes the whole object back (Update). Reprieve sends a patch with the fields that change and the resource version the decision was
made on. The API server refuses the patch when the object is newer, and fields that Reprieve does not hold stay as they are.

Upstream: framework/plugins/volumebinding/binder.go, bindAPIUpdate; framework/plugins/dynamicresources/dynamicresources.go, bindClaim,
Unreserve, PostFilter (v1.36.2).
"""

from dataclasses import dataclass
from typing import Final, final

from extender.framework.api_calls import ApiCall
from extender.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION, claim_namespace
from extender.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim


@final
@dataclass(frozen=True, slots=True)
class PatchPersistentVolume(ApiCall[PersistentVolume]):
    """The volume is meant for a claim; the volume controller does the rest."""

    name: str
    uid: str
    resource_version: str
    claim: ObjectReference
    bound_by_controller: bool
    """Whether the volume says that it was not bound by hand."""

    @classmethod
    def of(cls, volume: PersistentVolume) -> "PatchPersistentVolume":
        """What makes the volume as it is here, if it was so but for its claim.

        Raises:
            ValueError: the volume names no claim.
        """
        meta, reference = volume.metadata, volume.spec.claim_ref
        if reference is None:
            raise ValueError(f"persistentvolume {meta.name} names no claim")
        return cls(meta.name, meta.uid, meta.resource_version, reference, BOUND_BY_CONTROLLER_ANNOTATION in meta.annotations)

    @property
    def concerns(self) -> str:
        """The volume."""
        return self.uid or f"persistentvolumes/{self.name}"


@final
@dataclass(frozen=True, slots=True)
class PatchPersistentVolumeClaim(ApiCall[PersistentVolumeClaim]):
    """A volume is to be made for the claim, within reach of a node."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    selected_node: str

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "PatchPersistentVolumeClaim":
        """What makes the claim as it is here, if it was so but for the node.

        Raises:
            KeyError: the claim names no node.
        """
        meta = claim.metadata
        return cls(claim_namespace(claim), meta.name, meta.uid, meta.resource_version, meta.annotations[SELECTED_NODE_ANNOTATION])

    @property
    def concerns(self) -> str:
        """The claim."""
        return self.uid or f"persistentvolumeclaims/{self.namespace}/{self.name}"


CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted."""


@dataclass(frozen=True, slots=True)
class _AboutClaim(ApiCall[ResourceClaim]):
    namespace: str
    name: str
    uid: str

    @property
    def concerns(self) -> str:
        """The claim."""
        return self.uid or f"resourceclaims/{self.namespace}/{self.name}"


@final
@dataclass(frozen=True, slots=True)
class ReadResourceClaim(_AboutClaim):
    """No write: the claim as the API server has it, after it said that it is not as we know it."""


@final
@dataclass(frozen=True, slots=True)
class ProtectResourceClaim(_AboutClaim):
    """The claim has the finalizer that allocated claims have."""

    resource_version: str


@final
@dataclass(frozen=True, slots=True)
class ReserveResourceClaim(_AboutClaim):
    """A pod may use the claim; what was found for it is the claim's from now on."""

    resource_version: str
    consumer: ResourceClaimConsumerReference
    allocation: AllocationResult | None = None
    """None for a claim that is allocated: that cannot be changed any more."""


@final
@dataclass(frozen=True, slots=True)
class UnreserveResourceClaim(_AboutClaim):
    """A pod does not use the claim any more, whatever else has changed."""

    pod_uid: str


@final
@dataclass(frozen=True, slots=True)
class DeallocateResourceClaim(_AboutClaim):
    """The claim has no devices and no users any more."""

    resource_version: str
