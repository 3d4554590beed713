"""PersistentVolumeClaims, and their template for volumes that live as long as a pod."""

from typing import Final

from extender.embedded.schema.declaring import RESOURCE_LIST, TYPE_META, keep, map_list, named, null, omit, zero
from extender.embedded.schema.meta import LABEL_SELECTOR, OBJECT_META
from extender.embedded.schema.references import TYPED_LOCAL_OBJECT_REFERENCE, TYPED_OBJECT_REFERENCE
from extender.embedded.schema.types import STRING, TIME, ListOf, MapOf, Struct

_ACCESS_MODES: Final = ListOf(named("v1.PersistentVolumeAccessMode", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))
_RESIZING: Final = named(
    "v1.ClaimResourceStatus",
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizePending",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
)

PERSISTENT_VOLUME_CLAIM_SPEC: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
    {
        "accessModes": omit(_ACCESS_MODES, "From how many nodes or pods at once, and whether for writing."),
        "selector": keep(LABEL_SELECTOR, "Only volumes with such labels will do."),
        "resources": zero(
            Struct(
                "io.k8s.api.core.v1.VolumeResourceRequirements",
                {
                    "limits": omit(RESOURCE_LIST, "What the volume must not exceed."),
                    "requests": omit(RESOURCE_LIST, "What the volume must have at least."),
                },
            ),
            "The size of the volume.",
        ),
        "volumeName": omit(STRING, "The volume that is bound to this claim."),
        "storageClassName": keep(STRING, "The class to take a volume from. Empty: one without a class; absent: the default class."),
        "volumeMode": keep(named("v1.PersistentVolumeMode", "Block", "Filesystem")),
        "dataSource": keep(TYPED_LOCAL_OBJECT_REFERENCE, "A snapshot or claim in this namespace whose content a new volume starts with."),
        "dataSourceRef": keep(TYPED_OBJECT_REFERENCE, "As dataSource, but anything that some populator knows."),
        "volumeAttributesClassName": keep(STRING, "The class of those attributes that can change during the life of a volume."),
    },
    "What kind of volume is wanted.",
)

PERSISTENT_VOLUME_CLAIM_CONDITION: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeClaimCondition",
    {
        "type": zero(named("v1.PersistentVolumeClaimConditionType"), "For example Resizing or FileSystemResizePending.", required=True),
        "status": zero(named("v1.ConditionStatus"), "True, False or Unknown.", required=True),
        "lastProbeTime": null(TIME, "When somebody looked last."),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a claim in one respect.",
)

MODIFY_VOLUME_STATUS: Final = Struct(
    "io.k8s.api.core.v1.ModifyVolumeStatus",
    {
        "targetVolumeAttributesClassName": omit(STRING, "The class that the volume shall get."),
        "status": zero(
            named("v1.PersistentVolumeClaimModifyVolumeStatus", "InProgress", "Infeasible", "Pending"), "How that goes.", required=True
        ),
    },
    "A change of attributes that is under way.",
)

PERSISTENT_VOLUME_CLAIM: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeClaim",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(PERSISTENT_VOLUME_CLAIM_SPEC),
        "status": zero(
            Struct(
                "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
                {
                    "phase": omit(named("v1.PersistentVolumeClaimPhase", "Bound", "Lost", "Pending")),
                    "accessModes": omit(_ACCESS_MODES, "Those of the volume."),
                    "capacity": omit(RESOURCE_LIST, "The size of the volume."),
                    "conditions": omit(map_list(PERSISTENT_VOLUME_CLAIM_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                    "allocatedResources": omit(RESOURCE_LIST, "The size that is set aside for it while it is resized."),
                    "allocatedResourceStatuses": omit(
                        MapOf(_RESIZING, go_type="map[v1.ResourceName]v1.ClaimResourceStatus"), "How resizing goes, by resource."
                    ),
                    "currentVolumeAttributesClassName": keep(STRING, "The class of attributes that the volume has."),
                    "modifyVolumeStatus": keep(MODIFY_VOLUME_STATUS),
                },
                "What the claim has got.",
            )
        ),
    },
    "A wish for storage that outlives pods.",
)

PERSISTENT_VOLUME_CLAIM_TEMPLATE: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeClaimTemplate",
    {
        "metadata": zero(OBJECT_META, "Labels and annotations for the claim; nothing else is allowed."),
        "spec": zero(PERSISTENT_VOLUME_CLAIM_SPEC, required=True),
    },
    "What the claim of a pod is made from.",
)
