"""Writes about volumes and their claims.

Upstream writes the whole object back (Update). Here only what changes is sent, with the version it was decided on: the API server refuses
it just the same when the object is newer, and what our objects do not hold stays as it is.

Upstream: framework/plugins/volumebinding/binder.go, bindAPIUpdate (v1.36.2).
"""

from dataclasses import dataclass
from typing import final

from extender.framework.api_calls import ApiCall
from extender.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION, claim_namespace
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
