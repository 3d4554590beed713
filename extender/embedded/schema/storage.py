"""Who provides volumes, with how much room, and where they are attached."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, null, omit, set_of, zero
from extender.embedded.schema.meta import LABEL_SELECTOR, OBJECT_META
from extender.embedded.schema.persistent_volumes import PERSISTENT_VOLUME_SPEC
from extender.embedded.schema.references import TOPOLOGY_SELECTOR_TERM
from extender.embedded.schema.types import BOOL, INT32, INT64, QUANTITY, STRING, STRING_MAP, STRINGS, TIME, ListOf, Struct

STORAGE_CLASS: Final = Struct(
    "io.k8s.api.storage.v1.StorageClass",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "provisioner": zero(STRING, "Who makes the volumes.", required=True),
        "parameters": omit(STRING_MAP, "What the provisioner should know."),
        "reclaimPolicy": keep(
            named("v1.PersistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain"), "That of new volumes. Delete if not said."
        ),
        "mountOptions": omit(STRINGS, "Those of new volumes."),
        "allowVolumeExpansion": keep(BOOL, "Claims may grow."),
        "volumeBindingMode": keep(
            named("v1.VolumeBindingMode", "Immediate", "WaitForFirstConsumer"), "At once, or when a pod is scheduled that uses the claim."
        ),
        "allowedTopologies": omit(ListOf(TOPOLOGY_SELECTOR_TERM), "Where volumes may be made. Empty: anywhere."),
    },
    "A sort of volumes, and how they are made.",
)

CSI_DRIVER_SPEC: Final = Struct(
    "io.k8s.api.storage.v1.CSIDriverSpec",
    {
        "attachRequired": keep(BOOL, "Volumes are attached to a node before they are mounted."),
        "podInfoOnMount": keep(BOOL, "The driver is told for which pod it mounts."),
        "volumeLifecycleModes": omit(
            set_of(named("v1.VolumeLifecycleMode")), "Persistent, Ephemeral or both: as long as a claim, or as long as a pod."
        ),
        "storageCapacity": keep(BOOL, "The scheduler looks at CSIStorageCapacity objects before it picks a node."),
        "fsGroupPolicy": keep(named("v1.FSGroupPolicy"), "When files are given to the group of a pod."),
        "tokenRequests": omit(
            ListOf(
                Struct(
                    "io.k8s.api.storage.v1.TokenRequest",
                    {
                        "audience": zero(STRING, "Empty: that of the API server.", required=True),
                        "expirationSeconds": keep(INT64, "For how long it is good."),
                    },
                )
            ),
            "Tokens of the pod's service account that the driver is given.",
        ),
        "requiresRepublish": keep(BOOL, "The driver is called again from time to time to renew what it mounted."),
        "seLinuxMount": keep(BOOL, "The driver can mount with a context of SELinux."),
        "nodeAllocatableUpdatePeriodSeconds": keep(INT64, "How often nodes ask how many volumes they can take."),
        "serviceAccountTokenInSecrets": keep(BOOL, "Tokens go where secrets go, not among the attributes of the volume."),
        "preventPodSchedulingIfMissing": keep(BOOL, "Nodes without this driver are out of the question for its volumes."),
    },
)

CSI_DRIVER: Final = Struct(
    "io.k8s.api.storage.v1.CSIDriver",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META, "The name is that of the driver."),
        "spec": zero(CSI_DRIVER_SPEC, required=True),
    },
    "What Kubernetes should know of a storage driver.",
)

CSI_NODE: Final = Struct(
    "io.k8s.api.storage.v1.CSINode",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META, "The name is that of the node."),
        "spec": zero(
            Struct(
                "io.k8s.api.storage.v1.CSINodeSpec",
                {
                    "drivers": null(
                        map_list(
                            Struct(
                                "io.k8s.api.storage.v1.CSINodeDriver",
                                {
                                    "name": zero(STRING, required=True),
                                    "nodeID": zero(STRING, "What the driver calls the node.", required=True),
                                    "topologyKeys": null(STRINGS, "Labels of the node by which the driver tells places apart."),
                                    "allocatable": keep(
                                        Struct(
                                            "io.k8s.api.storage.v1.VolumeNodeResources",
                                            {"count": keep(INT32, "How many volumes at most. Absent: no limit.")},
                                        )
                                    ),
                                },
                            ),
                            "name",
                        ),
                        required=True,
                        patch_key="name",
                        patch_strategy="merge",
                    )
                },
            ),
            required=True,
        ),
    },
    "The storage drivers of a node.",
)

CSI_STORAGE_CAPACITY: Final = Struct(
    "io.k8s.api.storage.v1.CSIStorageCapacity",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "nodeTopology": keep(LABEL_SELECTOR, "For which nodes. Absent: for none; empty: for all."),
        "storageClassName": zero(STRING, required=True),
        "capacity": keep(QUANTITY, "How much room is left."),
        "maximumVolumeSize": keep(QUANTITY, "How large one volume can be."),
    },
    "How much room a StorageClass has in a place.",
)

_VOLUME_ERROR: Final = keep(
    Struct(
        "io.k8s.api.storage.v1.VolumeError",
        {"time": null(TIME), "message": omit(STRING), "errorCode": keep(INT32, "That of gRPC.")},
    ),
    "The last thing that went wrong.",
)

VOLUME_ATTACHMENT: Final = Struct(
    "io.k8s.api.storage.v1.VolumeAttachment",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.storage.v1.VolumeAttachmentSpec",
                {
                    "attacher": zero(STRING, "The driver that is to do it.", required=True),
                    "source": zero(
                        Struct(
                            "io.k8s.api.storage.v1.VolumeAttachmentSource",
                            {
                                "persistentVolumeName": keep(STRING),
                                "inlineVolumeSpec": keep(PERSISTENT_VOLUME_SPEC, "For a volume that stands in a pod itself."),
                            },
                        ),
                        "Which volume: one of these.",
                        required=True,
                    ),
                    "nodeName": zero(STRING, "To which node.", required=True),
                },
            ),
            required=True,
        ),
        "status": zero(
            Struct(
                "io.k8s.api.storage.v1.VolumeAttachmentStatus",
                {
                    "attached": zero(BOOL, required=True),
                    "attachmentMetadata": omit(STRING_MAP, "What mounting needs to know."),
                    "attachError": _VOLUME_ERROR,
                    "detachError": _VOLUME_ERROR,
                },
            )
        ),
    },
    "A volume that is, or shall be, attached to a node.",
)
