"""ClusterState: the objects of a cluster at one moment, as a dump or a scenario holds them; and a Cache filled with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, final

from extender.cache import Cache, CacheError
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
            table = _TABLES.get(name)
            if table is None:
                raise decoding.DecodeError(f"objects: unknown kind {name!r:.64}; known are {', '.join(_TABLES)}")
            if not isinstance(items, Sequence) or isinstance(items, str):
                raise decoding.DecodeError(f"objects.{name}: expected a list")
            lists[table.field] = [_decoded(table.kind, name, place, item) for place, item in enumerate(items)]
        return ClusterState(**lists)

    @staticmethod
    def from_items(items: Iterable[tuple[str, object]]) -> "ClusterState":
        """Objects of mixed kinds, as `kubectl get -o json` lists them; kinds that scheduling does not look at are left out.

        Arguments:
            items: (kind, plain object) pairs.
        """
        objects: dict[str, list[object]] = {}
        for kind, item in items:
            name = _NAME_OF_KIND.get(kind)
            if name is not None:
                objects.setdefault(name, []).append(item)
        return ClusterState.decode(objects)


@final
@dataclass(frozen=True, slots=True)
class FilledCache:
    """A cache with the cluster in it, and what could not be put there."""

    cache: Cache
    nominated: dict[str, str] = field(default_factory=dict)
    """UID of a pending pod -> the node it is nominated to, in order of nomination."""
    pending: dict[str, Pod] = field(default_factory=dict)
    """UID -> pods without a node."""
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    """(pod as namespace/name, why it was left out)."""


def fill_cache(state: ClusterState) -> FilledCache:
    """Put a cluster into a new cache, as the scheduler would after its first listing.

    Finished pods are dropped. A pod that cannot be read (a request that is no quantity) is left out and reported: one bad pod must not
    keep the others from being scheduled.
    """
    filled = FilledCache(Cache())
    for node in state.nodes:
        filled.cache.add_node(node)
    for pod in state.pods:
        if pod.is_terminal:
            continue
        if not pod.spec.node_name:
            pending = identified(pod)
            filled.pending[pending.uid] = pending
            continue
        try:
            filled.cache.add_pod(identified(pod))
        except (ValueError, CacheError) as exc:
            filled.unreadable.append((pod.key, str(exc)))
    for table in fields(filled.cache.objects):
        into = getattr(filled.cache.objects, table.name)
        for item in getattr(state, table.name):
            meta = item.metadata
            into[(meta.namespace or "default", meta.name) if table.name in NAMESPACED else meta.name] = item
    return filled


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
class _Table:
    field: str
    kind: type[ApiObject]


_TABLES: dict[str, _Table] = {
    "nodes": _Table("nodes", Node),
    "pods": _Table("pods", Pod),
    "namespaces": _Table("namespaces", Namespace),
    "pdbs": _Table("pdbs", PodDisruptionBudget),
    "pvcs": _Table("pvcs", PersistentVolumeClaim),
    "pvs": _Table("pvs", PersistentVolume),
    "storageClasses": _Table("storage_classes", StorageClass),
    "csiNodes": _Table("csi_nodes", CSINode),
    "csiDrivers": _Table("csi_drivers", CSIDriver),
    "csiStorageCapacities": _Table("csi_storage_capacities", CSIStorageCapacity),
    "volumeAttachments": _Table("volume_attachments", VolumeAttachment),
    "services": _Table("services", Service),
    "replicationControllers": _Table("replication_controllers", ReplicationController),
    "replicaSets": _Table("replica_sets", ReplicaSet),
    "statefulSets": _Table("stateful_sets", StatefulSet),
    "resourceClaims": _Table("resource_claims", ResourceClaim),
    "deviceClasses": _Table("device_classes", DeviceClass),
    "resourceSlices": _Table("resource_slices", ResourceSlice),
}

_NAME_OF_KIND = {table.kind.__name__: name for name, table in _TABLES.items()}
