"""The API objects of storage (v1, storage.k8s.io/v1): claims, volumes, classes, CSI nodes, drivers, attachments."""

from typing import Final, final

import msgspec

from extender.values.objects import pod
from extender.values.objects.meta import ApiObject, HasMetadata, Int32, LabelSelector, Namespaced, NodeSelector
from extender.values.objects.node import ResourceList


class PersistentVolumeClaimSpec(ApiObject, frozen=True):
    """v1.PersistentVolumeClaimSpec. `storage_class_name` None and "" mean different things."""

    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: pod.ResourceRequirements = msgspec.field(default_factory=pod.ResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiObject, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Namespaced, frozen=True):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class ObjectReference(ApiObject, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CSIPersistentVolumeSource(ApiObject, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class LocalVolumeSource(ApiObject, frozen=True):
    path: str = ""


class VolumeNodeAffinity(ApiObject, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiObject, frozen=True):
    """v1.PersistentVolumeSpec, with the sources that scheduling looks at."""

    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    gce_persistent_disk: pod.GCEPersistentDisk | None = None
    aws_elastic_block_store: pod.AWSElasticBlockStore | None = None
    azure_disk: pod.AzureDisk | None = None
    azure_file: pod.AzureFile | None = None
    cinder: pod.CinderVolume | None = None
    portworx_volume: pod.PortworxVolume | None = None
    vsphere_volume: pod.VsphereVolume | None = None


class PersistentVolumeStatus(ApiObject, frozen=True):
    phase: str = ""


class PersistentVolume(HasMetadata, frozen=True):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class TopologySelectorLabelRequirement(ApiObject, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(ApiObject, frozen=True):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(HasMetadata, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(ApiObject, frozen=True):
    """storagev1.VolumeNodeResources: how many volumes of a driver a node can attach; None is no limit."""

    count: Int32 | None = None


class CSINodeDriver(ApiObject, frozen=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiObject, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(HasMetadata, frozen=True):
    """storagev1.CSINode: named like its node."""

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(ApiObject, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(HasMetadata, frozen=True):
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(HasMetadata, frozen=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSource(ApiObject, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiObject, frozen=True):
    attacher: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)
    node_name: str = ""


class VolumeAttachment(HasMetadata, frozen=True):
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)


MIGRATED_PLUGINS_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""The in-tree plugins, with commas between them, whose volumes the node serves through CSI drivers."""


@final
class AttachProfile(msgspec.Struct, frozen=True):
    """The number of volumes of each driver that a node can attach, and the in-tree volumes that count as theirs."""

    limits: tuple[tuple[str, int], ...] = ()
    """(driver, volumes) of the drivers that have a limit."""
    migrated_plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()
    """The drivers that are installed, with and without a limit."""


def attach_profile(node: CSINode) -> AttachProfile:
    """Returns the profile of a node. Of a driver that is listed twice, the last limit holds.

    Upstream: framework/plugins/nodevolumelimits/csi.go, getVolumeLimits; volumebinding/binder.go,
    isPluginMigratedToCSIOnNode.
    """
    limits = {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    listed = node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION)
    drivers = frozenset(driver.name for driver in node.spec.drivers)
    return AttachProfile(tuple(limits.items()), frozenset(listed.split(",")) if listed else frozenset(), drivers)
