"""The volumes of pods: those in everyday use, and the disks that plugins of the scheduler look at."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.containers import REFERENCE
from extender.embedded.protobuf.numbers.metadata import WITH_SPEC

_SOURCES: Final = numbered(
    emptyDir=2, hostPath=1, image=30, persistentVolumeClaim=10, ephemeral=29, csi=28,
    configMap=19, secret=6, downwardAPI=16, projected=26,
    nfs=7, iscsi=8, rbd=11, cinder=13, awsElasticBlockStore=4, azureDisk=22, gcePersistentDisk=3,
)  # fmt: skip
_CLOUD_DISK: Final = {"fsType": 2, "partition": 3, "readOnly": 4}
_CINDER: Final = numbered(volumeID=1, fsType=2, readOnly=3, secretRef=4)
# 9 was never used.
_ISCSI: Final = numbered(
    targetPortal=1, portals=7, iqn=2, lun=3, iscsiInterface=4, initiatorName=12, fsType=5, readOnly=6,
    chapAuthDiscovery=8, chapAuthSession=11, secretRef=10,
)  # fmt: skip
_RBD: Final = numbered(monitors=1, pool=4, image=2, user=5, keyring=6, secretRef=7, fsType=3, readOnly=8)

VOLUMES: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Volume=numbered({2: _SOURCES}, name=1),
    EmptyDirVolumeSource=numbered(medium=1, sizeLimit=2),
    HostPathVolumeSource=numbered(path=1, type=2),
    ImageVolumeSource=numbered(reference=1, pullPolicy=2),
    PersistentVolumeClaimVolumeSource=numbered(claimName=1, readOnly=2),
    EphemeralVolumeSource=numbered(volumeClaimTemplate=1),
    PersistentVolumeClaimTemplate=WITH_SPEC,
    CSIVolumeSource=numbered(driver=1, fsType=3, readOnly=2, volumeAttributes=4, nodePublishSecretRef=5),
    # Files from objects.
    ConfigMapVolumeSource=numbered({1: REFERENCE}, items=2, defaultMode=3, optional=4),
    SecretVolumeSource=numbered(secretName=1, items=2, defaultMode=3, optional=4),
    DownwardAPIVolumeSource=numbered(items=1, defaultMode=2),
    DownwardAPIVolumeFile=numbered(path=1, fieldRef=2, resourceFieldRef=3, mode=4),
    KeyToPath=numbered(key=1, path=2, mode=3),
    ProjectedVolumeSource=numbered(sources=1, defaultMode=2),
    VolumeProjection=numbered(secret=1, downwardAPI=2, configMap=3, serviceAccountToken=4, clusterTrustBundle=5, podCertificate=6),
    ConfigMapProjection=numbered({1: REFERENCE}, items=2, optional=4),
    SecretProjection=numbered({1: REFERENCE}, items=2, optional=4),
    DownwardAPIProjection=numbered(items=1),
    ServiceAccountTokenProjection=numbered(path=3, audience=1, expirationSeconds=2),
    ClusterTrustBundleProjection=numbered(name=1, signerName=2, labelSelector=3, path=4, optional=5),
    PodCertificateProjection=numbered(
        signerName=1, keyType=2, maxExpirationSeconds=3, credentialBundlePath=4, keyPath=5, certificateChainPath=6, userAnnotations=7
    ),
    # Disks elsewhere, for pods and for persistent volumes.
    NFSVolumeSource=numbered(server=1, path=2, readOnly=3),
    ISCSIVolumeSource=_ISCSI,
    ISCSIPersistentVolumeSource=_ISCSI,
    RBDVolumeSource=_RBD,
    RBDPersistentVolumeSource=_RBD,
    CinderVolumeSource=_CINDER,
    CinderPersistentVolumeSource=_CINDER,
    AWSElasticBlockStoreVolumeSource=numbered(volumeID=1, **_CLOUD_DISK),
    GCEPersistentDiskVolumeSource=numbered(pdName=1, **_CLOUD_DISK),
    AzureDiskVolumeSource=numbered(diskName=1, diskURI=2, kind=6, cachingMode=3, fsType=4, readOnly=5),
)  # fmt: skip
