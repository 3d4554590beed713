"""Storage that the node reaches by itself: its own files, shares in the network, disks of providers, drivers.

Those that a pod may name; most of them a PersistentVolume may name as well.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.declaring import keep, named, null, omit, zero
from extender.embedded.schema.references import LOCAL_OBJECT_REFERENCE
from extender.embedded.schema.types import BOOL, INT32, STRING, STRING_MAP, STRINGS, Struct

_FS_TYPE: Final = omit(STRING, "The file system, such as ext4.")
_READ_ONLY: Final = omit(BOOL)
_PARTITION: Final = omit(INT32, "0: the whole disk.")
_SECRET: Final = keep(LOCAL_OBJECT_REFERENCE, "A secret that opens it.")

# The node

HOST_PATH_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.HostPathVolumeSource",
    {
        "path": zero(STRING, required=True),
        "type": keep(
            named("v1.HostPathType", "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
            "What must be there, or is made. Empty: nothing is checked.",
        ),
    },
    "A file or folder of the node.",
)

LOCAL_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.LocalVolumeSource",
    {
        "path": zero(STRING, "A folder or block device.", required=True),
        "fsType": keep(STRING, "For block devices."),
    },
    "A disk of one node.",
)

# Shares in the network

NFS_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.NFSVolumeSource",
    {
        "server": zero(STRING, required=True),
        "path": zero(STRING, required=True),
        "readOnly": _READ_ONLY,
    },
    "A folder exported by NFS.",
)

ISCSI_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ISCSIVolumeSource",
    {
        "targetPortal": zero(STRING, required=True),
        "iqn": zero(STRING, required=True),
        "lun": zero(INT32, required=True),
        "iscsiInterface": omit(STRING, default="default"),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "portals": omit(STRINGS, "Other ways to the same target."),
        "chapAuthDiscovery": omit(BOOL),
        "chapAuthSession": omit(BOOL),
        "secretRef": _SECRET,
        "initiatorName": keep(STRING),
    },
    "A disk by iSCSI.",
)

FC_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.FCVolumeSource",
    {
        "targetWWNs": omit(STRINGS),
        "lun": keep(INT32),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "wwids": omit(STRINGS, "Instead of targetWWNs with lun."),
    },
    "A disk by Fibre Channel.",
)

CEPH_FS_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CephFSVolumeSource",
    {
        "monitors": null(STRINGS, required=True),
        "path": omit(STRING),
        "user": omit(STRING),
        "secretFile": omit(STRING),
        "secretRef": _SECRET,
        "readOnly": _READ_ONLY,
    },
    "CephFS. No longer supported.",
)

RBD_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.RBDVolumeSource",
    {
        "monitors": null(STRINGS, required=True),
        "image": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "pool": omit(STRING, default="rbd"),
        "user": omit(STRING, default="admin"),
        "keyring": omit(STRING, default="/etc/ceph/keyring"),
        "secretRef": _SECRET,
        "readOnly": _READ_ONLY,
    },
    "A block device of Ceph. No longer supported.",
)

GLUSTERFS_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.GlusterfsVolumeSource",
    {
        "endpoints": zero(STRING, required=True),
        "path": zero(STRING, required=True),
        "readOnly": _READ_ONLY,
    },
    "Gluster. No longer supported.",
)

QUOBYTE_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.QuobyteVolumeSource",
    {
        "registry": zero(STRING, required=True),
        "volume": zero(STRING, required=True),
        "readOnly": _READ_ONLY,
        "user": omit(STRING),
        "group": omit(STRING),
        "tenant": omit(STRING),
    },
    "Quobyte. No longer supported.",
)

FLOCKER_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.FlockerVolumeSource",
    {
        "datasetName": omit(STRING),
        "datasetUUID": omit(STRING),
    },
    "Flocker. No longer supported.",
)

SCALE_IO_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ScaleIOVolumeSource",
    {
        "gateway": zero(STRING, required=True),
        "system": zero(STRING, required=True),
        "secretRef": null(LOCAL_OBJECT_REFERENCE, "A secret that opens it.", required=True),
        "sslEnabled": omit(BOOL),
        "protectionDomain": omit(STRING),
        "storagePool": omit(STRING),
        "storageMode": omit(STRING, default="ThinProvisioned"),
        "volumeName": omit(STRING),
        "fsType": omit(STRING, default="xfs"),
        "readOnly": _READ_ONLY,
    },
    "ScaleIO. No longer supported.",
)

STORAGE_OS_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.StorageOSVolumeSource",
    {
        "volumeName": omit(STRING),
        "volumeNamespace": omit(STRING),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "secretRef": _SECRET,
    },
    "StorageOS. No longer supported.",
)

# Disks of providers

GCE_PERSISTENT_DISK_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.GCEPersistentDiskVolumeSource",
    {
        "pdName": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "partition": _PARTITION,
        "readOnly": _READ_ONLY,
    },
    "A disk of Google Compute Engine.",
)

AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource",
    {
        "volumeID": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "partition": _PARTITION,
        "readOnly": _READ_ONLY,
    },
    "A disk of AWS.",
)

AZURE_DISK_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.AzureDiskVolumeSource",
    {
        "diskName": zero(STRING, required=True),
        "diskURI": zero(STRING, required=True),
        "cachingMode": keep(named("v1.AzureDataDiskCachingMode", "None", "ReadOnly", "ReadWrite"), default="ReadWrite"),
        "fsType": keep(STRING, default="ext4"),
        "readOnly": keep(BOOL, default=False),
        "kind": keep(named("v1.AzureDataDiskKind", "Shared", "Dedicated", "Managed"), default="Shared"),
    },
    "A disk of Azure.",
)

AZURE_FILE_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.AzureFileVolumeSource",
    {
        "secretName": zero(STRING, required=True),
        "shareName": zero(STRING, required=True),
        "readOnly": _READ_ONLY,
    },
    "A share of Azure.",
)

CINDER_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CinderVolumeSource",
    {
        "volumeID": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
        "secretRef": _SECRET,
    },
    "A disk of OpenStack.",
)

VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource",
    {
        "volumePath": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "storagePolicyName": omit(STRING),
        "storagePolicyID": omit(STRING),
    },
    "A disk of vSphere.",
)

PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource",
    {
        "pdID": zero(STRING, required=True),
        "fsType": _FS_TYPE,
    },
    "A disk of Photon. No longer supported.",
)

PORTWORX_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.PortworxVolumeSource",
    {
        "volumeID": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "readOnly": _READ_ONLY,
    },
    "A volume of Portworx.",
)

# Drivers

CSI_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.CSIVolumeSource",
    {
        "driver": zero(STRING, required=True),
        "readOnly": keep(BOOL),
        "fsType": keep(STRING, "Absent: the driver decides."),
        "volumeAttributes": omit(STRING_MAP, "Parameters for the driver."),
        "nodePublishSecretRef": _SECRET,
    },
    "A volume that a CSI driver makes for this pod.",
)

FLEX_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.FlexVolumeSource",
    {
        "driver": zero(STRING, required=True),
        "fsType": _FS_TYPE,
        "secretRef": _SECRET,
        "readOnly": _READ_ONLY,
        "options": omit(STRING_MAP, "Parameters for the driver."),
    },
    "A volume by a program of the node. CSI is better.",
)
