"""ClusterState: the objects of a cluster at one moment, as a dump or a scenario holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.objects import decoding
from extender.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.objects.disruption import PodDisruptionBudget
from extender.objects.meta import ApiObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.objects.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet

NAMESPACED = frozenset(
    ("pdbs", "pvcs", "csi_storage_capacities", "services", "replication_controllers", "replica_sets", "stateful_sets", "resource_claims")
)


@final
@dataclass(frozen=True, slots=True)
class ClusterState:
    """Lists by kind, in the order in which the scheduler sees them."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    namespaces: Sequence[Namespace] = ()
    pdbs: Sequence[PodDisruptionBudget] = ()
    pvcs: Sequence[PersistentVolumeClaim] = ()
    pvs: Sequence[PersistentVolume] = ()
    storage_classes: Sequence[StorageClass] = ()
    csi_nodes: Sequence[CSINode] = ()
    csi_drivers: Sequence[CSIDriver] = ()
    csi_storage_capacities: Sequence[CSIStorageCapacity] = ()
    volume_attachments: Sequence[VolumeAttachment] = ()
    services: Sequence[Service] = ()
    replication_controllers: Sequence[ReplicationController] = ()
    replica_sets: Sequence[ReplicaSet] = ()
    stateful_sets: Sequence[StatefulSet] = ()
    resource_claims: Sequence[ResourceClaim] = ()
    device_classes: Sequence[DeviceClass] = ()
    resource_slices: Sequence[ResourceSlice] = ()

    @staticmethod
    def decode(objects: Mapping[str, Sequence[object]]) -> "ClusterState":
        """Lists of plain objects under the names that a scenario uses (`nodes`, `storageClasses`, ...).

        Raises:
            DecodeError: an unknown kind, or an object with a field of the wrong type; the message says which.
        """
        lists: dict[str, Any] = {}
        for name, items in objects.items():
            table = _TABLE_OF_NAME.get(name)
            if table is None:
                raise decoding.DecodeError(f"objects: unknown kind {name!r:.64}; known are {', '.join(_TABLE_OF_NAME)}")
            if not isinstance(items, Sequence) or isinstance(items, str):
                raise decoding.DecodeError(f"objects.{name}: expected a list")
            lists[table.field] = [_decoded(table.kind, name, place, item) for place, item in enumerate(items)]
        return ClusterState(**lists)


def identified(pod: Pod) -> Pod:
    """A dump made by hand may lack UIDs; namespace and name serve as well, for they are unique at one moment."""
    if pod.uid:
        return pod
    return decoding.replaced(pod, metadata=decoding.replaced(pod.metadata, uid=pod.key))


def _decoded(kind: type[ApiObject], name: str, place: int, item: object) -> ApiObject:
    try:
        return decoding.convert(kind, item)
    except decoding.DecodeError as exc:
        raise decoding.DecodeError(f"objects.{name}[{place}]: {exc}") from exc


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A list of `ClusterState`: what scenarios call it, its field, and the type of its objects."""

    name: str
    field: str
    kind: type[ApiObject]


TABLES: Final = (
    Table("nodes", "nodes", Node),
    Table("pods", "pods", Pod),
    Table("namespaces", "namespaces", Namespace),
    Table("pdbs", "pdbs", PodDisruptionBudget),
    Table("pvcs", "pvcs", PersistentVolumeClaim),
    Table("pvs", "pvs", PersistentVolume),
    Table("storageClasses", "storage_classes", StorageClass),
    Table("csiNodes", "csi_nodes", CSINode),
    Table("csiDrivers", "csi_drivers", CSIDriver),
    Table("csiStorageCapacities", "csi_storage_capacities", CSIStorageCapacity),
    Table("volumeAttachments", "volume_attachments", VolumeAttachment),
    Table("services", "services", Service),
    Table("replicationControllers", "replication_controllers", ReplicationController),
    Table("replicaSets", "replica_sets", ReplicaSet),
    Table("statefulSets", "stateful_sets", StatefulSet),
    Table("resourceClaims", "resource_claims", ResourceClaim),
    Table("deviceClasses", "device_classes", DeviceClass),
    Table("resourceSlices", "resource_slices", ResourceSlice),
)
"""In the order in which a cluster is taken in: nodes before pods."""

_TABLE_OF_NAME: Final = {table.name: table for table in TABLES}
