"""PersistentVolumes, and those of their sources that differ from the ones in a pod: their secrets may be in any namespace."""

from dataclasses import replace
from typing import Final

from extender.embedded.schema.declaring import RESOURCE_LIST, TYPE_META, keep, named, null, omit, zero
from extender.embedded.schema.meta import OBJECT_META
from extender.embedded.schema.references import OBJECT_REFERENCE, SECRET_REFERENCE
from extender.embedded.schema.scheduling_fields import VOLUME_NODE_AFFINITY
from extender.embedded.schema.types import BOOL, INT32, STRING, STRING_MAP, STRINGS, TIME, ListOf, Struct
from extender.embedded.schema.volume_sources import (
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE,
    AZURE_DISK_VOLUME_SOURCE,
    FC_VOLUME_SOURCE,
    FLOCKER_VOLUME_SOURCE,
    GCE_PERSISTENT_DISK_VOLUME_SOURCE,
    HOST_PATH_VOLUME_SOURCE,
    LOCAL_VOLUME_SOURCE,
    NFS_VOLUME_SOURCE,
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE,
    PORTWORX_VOLUME_SOURCE,
    QUOBYTE_VOLUME_SOURCE,
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
)

_FS_TYPE: Final = omit(STRING, "The file system, such as ext4.")
_READ_ONLY: Final = omit(BOOL, "Nobody may write.")
_SECRET: Final = keep(SECRET_REFERENCE, "What to log in with.")

CSI_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CSIPersistentVolumeSource",
    {
        "driver": zero(STRING, required=True),
        "volumeHandle": zero(STRING, "What the driver calls the volume.", required=True),
        "readOnly": _READ_ONLY,
        "fsType": _FS_TYPE,
        "volumeAttributes": omit(STRING_MAP, "What the driver should know."),
        "controllerPublishSecretRef": keep(SECRET_REFERENCE, "For attaching and detaching."),
        "nodeStageSecretRef": keep(SECRET_REFERENCE, "For preparing it on a node."),
        "nodePublishSecretRef": keep(SECRET_REFERENCE, "For mounting it into a pod."),
        "controllerExpandSecretRef": keep(SECRET_REFERENCE, "For making it larger."),
        "nodeExpandSecretRef": keep(SECRET_REFERENCE, "For making it larger on a node."),
    },
    "A volume of a CSI driver.",
)

ISCSI_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ISCSIPersistentVolumeSource",
    {
        "targetPortal": zero(STRING, "The address, with a port unless it is the usual one.", required=True),
        "iqn": zero(STRING, "The qualified name of the target.", required=True),
        "lun": zero(INT32, "The number of the unit.", required=True),
        "iscsiInterface": omit(STRING, default="default"),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "portals": omit(STRINGS, "More addresses of the same target."),
        "chapAuthDiscovery": omit(BOOL, "CHAP is spoken while targets are looked for."),
        "chapAuthSession": omit(BOOL, "CHAP is spoken in the session."),
        "secretRef": keep(SECRET_REFERENCE, "For CHAP."),
        "initiatorName": keep(STRING, "The qualified name to call with."),
    },
    "A disk over iSCSI.",
)

RBD_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.RBDPersistentVolumeSource",
    {
        "monitors": null(STRINGS, required=True),
        "image": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "pool": omit(STRING, default="rbd"),
        "user": omit(STRING, default="admin"),
        "keyring": omit(STRING, "The path of its file.", default="/etc/ceph/keyring"),
        "secretRef": keep(SECRET_REFERENCE, "Instead of the keyring."),
        "readOnly": _READ_ONLY,
    },
    "A block device of Ceph.",
)

CEPH_FS_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CephFSPersistentVolumeSource",
    {
        "monitors": null(STRINGS, required=True),
        "path": omit(STRING, "The directory to mount; the root if not said."),
        "user": omit(STRING),
        "secretFile": omit(STRING, "The path of the keyring."),
        "secretRef": keep(SECRET_REFERENCE, "Instead of the keyring."),
        "readOnly": _READ_ONLY,
    },
    "A file system of Ceph.",
)

CINDER_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CinderPersistentVolumeSource",
    {
        "volumeID": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "secretRef": _SECRET,
    },
    "A volume of OpenStack.",
)

GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.GlusterfsPersistentVolumeSource",
    {
        "endpoints": zero(STRING, "The Endpoints object with the addresses.", required=True),
        "path": zero(STRING, "The name of the volume.", required=True),
        "readOnly": _READ_ONLY,
        "endpointsNamespace": keep(STRING, "That of the claim if not said."),
    },
    "A volume of GlusterFS.",
)

FLEX_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.FlexPersistentVolumeSource",
    {
        "driver": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "secretRef": keep(SECRET_REFERENCE, "Goes to the driver."),
        "readOnly": _READ_ONLY,
        "options": omit(STRING_MAP, "What the driver should know."),
    },
    "A volume of a program on the node.",
)

AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.AzureFilePersistentVolumeSource",
    {
        "secretName": zero(STRING, "The secret with the name and the key of the account.", required=True),
        "shareName": zero(STRING, required=True),
        "readOnly": _READ_ONLY,
        "secretNamespace": null(STRING, "That of the pod if not said."),
    },
    "A share of Azure.",
)

SCALE_IO_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource",
    {
        "gateway": zero(STRING, "The address of the API.", required=True),
        "system": zero(STRING, required=True),
        "secretRef": null(SECRET_REFERENCE, "What to log in with.", required=True),
        "sslEnabled": omit(BOOL),
        "protectionDomain": omit(STRING),
        "storagePool": omit(STRING),
        "storageMode": omit(STRING, "ThickProvisioned takes all the room at once.", default="ThinProvisioned"),
        "volumeName": omit(STRING),
        "fsType": omit(STRING, "The file system, such as ext4.", default="xfs"),
        "readOnly": _READ_ONLY,
    },
    "A volume of ScaleIO.",
)

STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.StorageOSPersistentVolumeSource",
    {
        "volumeName": omit(STRING),
        "volumeNamespace": omit(STRING, "In StorageOS. That of the claim if not said."),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "secretRef": keep(OBJECT_REFERENCE, "What to log in with."),
    },
    "A volume of StorageOS.",
)

PERSISTENT_VOLUME_SPEC: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeSpec",
    {
        "capacity": omit(RESOURCE_LIST, "Its size."),
        "gcePersistentDisk": keep(GCE_PERSISTENT_DISK_VOLUME_SOURCE),
        "awsElasticBlockStore": keep(AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE),
        "hostPath": keep(HOST_PATH_VOLUME_SOURCE),
        "glusterfs": keep(GLUSTERFS_PERSISTENT_VOLUME_SOURCE),
        "nfs": keep(NFS_VOLUME_SOURCE),
        "rbd": keep(RBD_PERSISTENT_VOLUME_SOURCE),
        "iscsi": keep(ISCSI_PERSISTENT_VOLUME_SOURCE),
        "cinder": keep(CINDER_PERSISTENT_VOLUME_SOURCE),
        "cephfs": keep(CEPH_FS_PERSISTENT_VOLUME_SOURCE),
        "fc": keep(FC_VOLUME_SOURCE),
        "flocker": keep(FLOCKER_VOLUME_SOURCE),
        "flexVolume": keep(FLEX_PERSISTENT_VOLUME_SOURCE),
        "azureFile": keep(AZURE_FILE_PERSISTENT_VOLUME_SOURCE),
        "vsphereVolume": keep(VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE),
        "quobyte": keep(QUOBYTE_VOLUME_SOURCE),
        "azureDisk": keep(AZURE_DISK_VOLUME_SOURCE),
        "photonPersistentDisk": keep(PHOTON_PERSISTENT_DISK_VOLUME_SOURCE),
        "portworxVolume": keep(PORTWORX_VOLUME_SOURCE),
        "scaleIO": keep(SCALE_IO_PERSISTENT_VOLUME_SOURCE),
        "local": keep(LOCAL_VOLUME_SOURCE),
        "storageos": keep(STORAGE_OS_PERSISTENT_VOLUME_SOURCE),
        "csi": keep(CSI_PERSISTENT_VOLUME_SOURCE),
        "accessModes": omit(
            ListOf(named("v1.PersistentVolumeAccessMode", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")),
            "From how many nodes or pods at once, and whether for writing.",
        ),
        # The one reference whose fields may have different owners.
        "claimRef": keep(replace(OBJECT_REFERENCE, atomic=False), "The claim that has it."),
        "persistentVolumeReclaimPolicy": omit(
            named("v1.PersistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain"), "What becomes of it when the claim is gone."
        ),
        "storageClassName": omit(STRING, "Empty: of no class."),
        "mountOptions": omit(STRINGS, "Nobody checks them before mounting."),
        "volumeMode": keep(named("v1.PersistentVolumeMode", "Block", "Filesystem")),
        "nodeAffinity": keep(VOLUME_NODE_AFFINITY, "The nodes that can reach it."),
        "volumeAttributesClassName": keep(STRING, "The class of those attributes that can change during its life."),
    },
    "Where a volume is and what it is like.",
)

PERSISTENT_VOLUME: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolume",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(PERSISTENT_VOLUME_SPEC),
        "status": zero(
            Struct(
                "io.k8s.api.core.v1.PersistentVolumeStatus",
                {
                    "phase": omit(named("v1.PersistentVolumePhase", "Available", "Bound", "Failed", "Pending", "Released")),
                    "message": omit(STRING, "Why, for people."),
                    "reason": omit(STRING, "Why, in a single word."),
                    "lastPhaseTransitionTime": keep(TIME, "Since when it is in this phase."),
                },
            )
        ),
    },
    "Storage that a claim can have.",
)
