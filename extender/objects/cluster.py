"""The objects of a cluster besides nodes and pods, each kind in one table."""

from dataclasses import dataclass, field, fields
from typing import final

from extender.objects.claims import VolumeGroup, volume_group
from extender.objects.csi_nodes import AttachProfile, attach_profile
from extender.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.objects.disruption import PodDisruptionBudget
from extender.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.objects.tables import GroupedTable
from extender.objects.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet

Key = tuple[str, str]
"""(namespace, name)."""


def _volumes() -> GroupedTable[str, PersistentVolume, VolumeGroup]:
    return GroupedTable(volume_group)


def _csi_nodes() -> GroupedTable[str, CSINode, AttachProfile]:
    return GroupedTable(attach_profile)


def _volume_attachments() -> GroupedTable[str, VolumeAttachment, str]:
    return GroupedTable(lambda attachment: attachment.spec.node_name)


@final
@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The tables are in order of arrival. Only the cache writes them, between cycles."""

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    pdbs: dict[Key, PodDisruptionBudget] = field(default_factory=dict)
    pvcs: dict[Key, PersistentVolumeClaim] = field(default_factory=dict)
    pvs: GroupedTable[str, PersistentVolume, VolumeGroup] = field(default_factory=_volumes)
    """Grouped by StorageClass and claim."""
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: GroupedTable[str, CSINode, AttachProfile] = field(default_factory=_csi_nodes)
    """Grouped by what they say of attaching volumes."""
    csi_drivers: dict[str, CSIDriver] = field(default_factory=dict)
    csi_storage_capacities: dict[Key, CSIStorageCapacity] = field(default_factory=dict)
    volume_attachments: GroupedTable[str, VolumeAttachment, str] = field(default_factory=_volume_attachments)
    """Grouped by node."""
    services: dict[Key, Service] = field(default_factory=dict)
    replication_controllers: dict[Key, ReplicationController] = field(default_factory=dict)
    replica_sets: dict[Key, ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[Key, StatefulSet] = field(default_factory=dict)
    resource_claims: dict[Key, ResourceClaim] = field(default_factory=dict)
    device_classes: dict[str, DeviceClass] = field(default_factory=dict)
    resource_slices: dict[str, ResourceSlice] = field(default_factory=dict)

    def copy(self) -> "ClusterObjects":
        """The same objects in tables of their own."""
        return ClusterObjects(**{each.name: getattr(self, each.name).copy() for each in fields(self)})
