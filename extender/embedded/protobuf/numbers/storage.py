"""Claims, persistent volumes, and who provides and attaches them."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_SPEC, WITH_STATUS

_PERSISTENT_SOURCES: Final = numbered(
    csi=22, local=20, hostPath=3, nfs=5, iscsi=7, rbd=6, cinder=8, awsElasticBlockStore=2, azureDisk=16, gcePersistentDisk=1
)

STORAGE: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    PersistentVolumeClaim=WITH_STATUS,
    PersistentVolumeClaimSpec=numbered(
        accessModes=1, resources=2, storageClassName=5, volumeAttributesClassName=9, volumeMode=6, volumeName=3, selector=4,
        dataSource=7, dataSourceRef=8,
    ),
    VolumeResourceRequirements=numbered(requests=2, limits=1),
    # 6 was the state of growing.
    PersistentVolumeClaimStatus=numbered(
        phase=1, accessModes=2, capacity=3, conditions=4, allocatedResources=5, allocatedResourceStatuses=7,
        currentVolumeAttributesClassName=8, modifyVolumeStatus=9,
    ),
    PersistentVolumeClaimCondition=numbered(type=1, status=2, reason=5, message=6, lastProbeTime=3, lastTransitionTime=4),
    ModifyVolumeStatus=numbered(targetVolumeAttributesClassName=1, status=2),
    PersistentVolume=WITH_STATUS,
    PersistentVolumeSpec=numbered(
        {2: _PERSISTENT_SOURCES},
        capacity=1, accessModes=3, claimRef=4, storageClassName=6, volumeAttributesClassName=10, persistentVolumeReclaimPolicy=5,
        mountOptions=7, volumeMode=8, nodeAffinity=9,
    ),
    VolumeNodeAffinity=numbered(required=1),
    LocalVolumeSource=numbered(path=1, fsType=2),
    CSIPersistentVolumeSource=numbered(
        driver=1, volumeHandle=2, readOnly=3, fsType=4, volumeAttributes=5, nodeStageSecretRef=7, nodePublishSecretRef=8,
        nodeExpandSecretRef=10, controllerPublishSecretRef=6, controllerExpandSecretRef=9,
    ),
    PersistentVolumeStatus=numbered(phase=1, reason=3, message=2, lastPhaseTransitionTime=4),
    TopologySelectorTerm=numbered(matchLabelExpressions=1),
    TopologySelectorLabelRequirement=numbered(key=1, values=2),
) | in_package(
    "io.k8s.api.storage.v1",
    StorageClass=numbered(
        metadata=1, provisioner=2, parameters=3, reclaimPolicy=4, mountOptions=5, allowVolumeExpansion=6, volumeBindingMode=7,
        allowedTopologies=8,
    ),
    CSIDriver=WITH_SPEC,
    CSIDriverSpec=numbered(
        attachRequired=1, podInfoOnMount=2, volumeLifecycleModes=3, storageCapacity=4, fsGroupPolicy=5, tokenRequests=6,
        requiresRepublish=7, seLinuxMount=8, nodeAllocatableUpdatePeriodSeconds=9, serviceAccountTokenInSecrets=10,
        preventPodSchedulingIfMissing=11,
    ),
    TokenRequest=numbered(audience=1, expirationSeconds=2),
    CSINode=WITH_SPEC,
    CSINodeSpec=numbered(drivers=1),
    CSINodeDriver=numbered(name=1, nodeID=2, topologyKeys=3, allocatable=4),
    VolumeNodeResources=numbered(count=1),
    CSIStorageCapacity=numbered(metadata=1, nodeTopology=2, storageClassName=3, capacity=4, maximumVolumeSize=5),
    VolumeAttachment=WITH_STATUS,
    VolumeAttachmentSpec=numbered(attacher=1, source=2, nodeName=3),
    VolumeAttachmentSource=numbered(persistentVolumeName=1, inlineVolumeSpec=2),
    VolumeAttachmentStatus=numbered(attached=1, attachmentMetadata=2, attachError=3, detachError=4),
    VolumeError=numbered(time=1, message=2, errorCode=3),
)  # fmt: skip
