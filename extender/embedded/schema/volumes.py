"""Volumes of pods: what each of them is made of.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.claims import PERSISTENT_VOLUME_CLAIM_TEMPLATE
from extender.embedded.schema.declaring import keep, named, null, omit, zero
from extender.embedded.schema.meta import LABEL_SELECTOR
from extender.embedded.schema.references import OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR
from extender.embedded.schema.types import BOOL, INT32, INT64, QUANTITY, STRING, STRING_MAP, ListOf, Struct
from extender.embedded.schema.volume_sources import (
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE,
    AZURE_DISK_VOLUME_SOURCE,
    AZURE_FILE_VOLUME_SOURCE,
    CEPH_FS_VOLUME_SOURCE,
    CINDER_VOLUME_SOURCE,
    CSI_VOLUME_SOURCE,
    FC_VOLUME_SOURCE,
    FLEX_VOLUME_SOURCE,
    FLOCKER_VOLUME_SOURCE,
    GCE_PERSISTENT_DISK_VOLUME_SOURCE,
    GLUSTERFS_VOLUME_SOURCE,
    HOST_PATH_VOLUME_SOURCE,
    ISCSI_VOLUME_SOURCE,
    NFS_VOLUME_SOURCE,
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE,
    PORTWORX_VOLUME_SOURCE,
    QUOBYTE_VOLUME_SOURCE,
    RBD_VOLUME_SOURCE,
    SCALE_IO_VOLUME_SOURCE,
    STORAGE_OS_VOLUME_SOURCE,
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
)

# Space

EMPTY_DIR_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.EmptyDirVolumeSource",
    {
        "medium": omit(named("v1.StorageMedium"), "Empty: the disk of the node. Memory: its memory."),
        "sizeLimit": keep(QUANTITY, "How much it may hold. Absent: as much as there is."),
    },
    "A folder that is empty at first and goes with the pod.",
)

PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource",
    {
        "claimName": zero(STRING, required=True),
        "readOnly": omit(BOOL),
    },
    "A claim in the same namespace.",
)

EPHEMERAL_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.EphemeralVolumeSource",
    {"volumeClaimTemplate": keep(PERSISTENT_VOLUME_CLAIM_TEMPLATE, "From this a claim POD-VOLUME is made.")},
    "A claim that comes and goes with the pod.",
)

GIT_REPO_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.GitRepoVolumeSource",
    {
        "repository": zero(STRING, required=True),
        "revision": omit(STRING),
        "directory": omit(STRING),
    },
    "The content of a git repository. No longer supported.",
)

IMAGE_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ImageVolumeSource",
    {
        "reference": omit(STRING, "As the image of a container."),
        "pullPolicy": omit(
            named("v1.PullPolicy", "Always", "Never", "IfNotPresent"), "Defaults to Always for the tag latest, else to IfNotPresent."
        ),
    },
    "The files of an image.",
)

# Facts, as files

KEY_TO_PATH: Final = Struct(
    "io.k8s.api.core.v1.KeyToPath",
    {
        "key": zero(STRING, required=True),
        "path": zero(STRING, "The file in the volume.", required=True),
        "mode": keep(INT32, "Absent: defaultMode."),
    },
    "Which key becomes which file.",
)

_ITEMS: Final = omit(ListOf(KEY_TO_PATH), "Which keys become which files. Absent: all, under their own names.")
_OPTIONAL: Final = keep(BOOL, "Whether it may be missing.")
_DEFAULT_MODE: Final = keep(INT32, "Permission bits of files. Defaults to 0644.")

SECRET_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.SecretVolumeSource",
    {
        "secretName": omit(STRING),
        "items": _ITEMS,
        "defaultMode": _DEFAULT_MODE,
        "optional": _OPTIONAL,
    },
    "A secret; each key is a file.",
)

CONFIG_MAP_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ConfigMapVolumeSource",
    {
        "name": omit(STRING, default=""),
        "items": _ITEMS,
        "defaultMode": _DEFAULT_MODE,
        "optional": _OPTIONAL,
    },
    "A config map; each key is a file.",
)

DOWNWARD_API_VOLUME_FILE: Final = Struct(
    "io.k8s.api.core.v1.DownwardAPIVolumeFile",
    {
        "path": zero(STRING, required=True),
        "fieldRef": keep(OBJECT_FIELD_SELECTOR),
        "resourceFieldRef": keep(RESOURCE_FIELD_SELECTOR),
        "mode": keep(INT32, "Absent: defaultMode."),
    },
    "A file that holds a fact about the pod.",
)

DOWNWARD_API_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.DownwardAPIVolumeSource",
    {
        "items": omit(ListOf(DOWNWARD_API_VOLUME_FILE)),
        "defaultMode": _DEFAULT_MODE,
    },
    "Facts about the pod.",
)

# Facts from several sources, in one folder

SECRET_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.SecretProjection",
    {
        "name": omit(STRING, default=""),
        "items": _ITEMS,
        "optional": _OPTIONAL,
    },
)

CONFIG_MAP_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.ConfigMapProjection",
    {
        "name": omit(STRING, default=""),
        "items": _ITEMS,
        "optional": _OPTIONAL,
    },
)

DOWNWARD_API_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.DownwardAPIProjection",
    {"items": omit(ListOf(DOWNWARD_API_VOLUME_FILE))},
)

SERVICE_ACCOUNT_TOKEN_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.ServiceAccountTokenProjection",
    {
        "audience": omit(STRING, "For whom it is. Empty: for the API server."),
        "expirationSeconds": keep(INT64, "How long it is good. Defaults to one hour."),
        "path": zero(STRING, required=True),
    },
    "A token of the pod's service account.",
)

CLUSTER_TRUST_BUNDLE_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.ClusterTrustBundleProjection",
    {
        "name": keep(STRING, "One bundle, by name. Instead of signerName."),
        "signerName": keep(STRING, "All bundles of a signer."),
        "labelSelector": keep(LABEL_SELECTOR, "Which of the signer's. Absent: none."),
        "optional": _OPTIONAL,
        "path": zero(STRING, required=True),
    },
    "Certificates to trust.",
)

POD_CERTIFICATE_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.PodCertificateProjection",
    {
        "signerName": omit(STRING, required=True),
        "keyType": omit(STRING, "Such as ED25519.", required=True),
        "maxExpirationSeconds": keep(INT32),
        "credentialBundlePath": omit(STRING, "The file for key and certificates together."),
        "keyPath": omit(STRING, "The file for the key alone."),
        "certificateChainPath": omit(STRING, "The file for the certificates alone."),
        "userAnnotations": omit(STRING_MAP, "Parameters for the signer."),
    },
    "A key and certificate for the pod.",
)

VOLUME_PROJECTION: Final = Struct(
    "io.k8s.api.core.v1.VolumeProjection",
    {
        "secret": keep(SECRET_PROJECTION),
        "downwardAPI": keep(DOWNWARD_API_PROJECTION),
        "configMap": keep(CONFIG_MAP_PROJECTION),
        "serviceAccountToken": keep(SERVICE_ACCOUNT_TOKEN_PROJECTION),
        "clusterTrustBundle": keep(CLUSTER_TRUST_BUNDLE_PROJECTION),
        "podCertificate": keep(POD_CERTIFICATE_PROJECTION),
    },
    "One of these.",
)

PROJECTED_VOLUME_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ProjectedVolumeSource",
    {
        "sources": null(ListOf(VOLUME_PROJECTION)),
        "defaultMode": _DEFAULT_MODE,
    },
    "Files from several sources.",
)

# All of them

VOLUME: Final = Struct(
    "io.k8s.api.core.v1.Volume",
    {
        "name": zero(STRING, "Unique in the pod.", required=True),
        "hostPath": keep(HOST_PATH_VOLUME_SOURCE),
        "emptyDir": keep(EMPTY_DIR_VOLUME_SOURCE),
        "gcePersistentDisk": keep(GCE_PERSISTENT_DISK_VOLUME_SOURCE),
        "awsElasticBlockStore": keep(AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE),
        "gitRepo": keep(GIT_REPO_VOLUME_SOURCE),
        "secret": keep(SECRET_VOLUME_SOURCE),
        "nfs": keep(NFS_VOLUME_SOURCE),
        "iscsi": keep(ISCSI_VOLUME_SOURCE),
        "glusterfs": keep(GLUSTERFS_VOLUME_SOURCE),
        "persistentVolumeClaim": keep(PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE),
        "rbd": keep(RBD_VOLUME_SOURCE),
        "flexVolume": keep(FLEX_VOLUME_SOURCE),
        "cinder": keep(CINDER_VOLUME_SOURCE),
        "cephfs": keep(CEPH_FS_VOLUME_SOURCE),
        "flocker": keep(FLOCKER_VOLUME_SOURCE),
        "downwardAPI": keep(DOWNWARD_API_VOLUME_SOURCE),
        "fc": keep(FC_VOLUME_SOURCE),
        "azureFile": keep(AZURE_FILE_VOLUME_SOURCE),
        "configMap": keep(CONFIG_MAP_VOLUME_SOURCE),
        "vsphereVolume": keep(VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE),
        "quobyte": keep(QUOBYTE_VOLUME_SOURCE),
        "azureDisk": keep(AZURE_DISK_VOLUME_SOURCE),
        "photonPersistentDisk": keep(PHOTON_PERSISTENT_DISK_VOLUME_SOURCE),
        "projected": keep(PROJECTED_VOLUME_SOURCE),
        "portworxVolume": keep(PORTWORX_VOLUME_SOURCE),
        "scaleIO": keep(SCALE_IO_VOLUME_SOURCE),
        "storageos": keep(STORAGE_OS_VOLUME_SOURCE),
        "csi": keep(CSI_VOLUME_SOURCE),
        "ephemeral": keep(EPHEMERAL_VOLUME_SOURCE),
        "image": keep(IMAGE_VOLUME_SOURCE),
    },
    "Files for the containers of a pod. One source, or none for an emptyDir.",
)
