"""The objects of a cluster: as lists, as dumps have them, and as the tables that the cache keeps."""

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, final, overload

from extender.values.objects import decoding, grouping
from extender.values.objects.claims import VolumeGroup, volume_group
from extender.values.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.values.objects.kinds import KINDS, kind_of
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import (
    AttachProfile,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    attach_profile,
)

Key = tuple[str, str]
"""(namespace, name)."""

_KIND_OF_LIST: Final = {kind.list_name: kind for kind in KINDS}


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
G = TypeVar("G", bound=Hashable)
D = TypeVar("D")

_EMPTY: Final[Mapping[object, object]] = MappingProxyType({})


@final
class GroupedTable(MutableMapping[K, V], Generic[K, V, G]):
    """A dict from keys to objects, in order of arrival, that also finds those of a group without the others.

    Objects are frozen, so that one changes its group only by being replaced.
    """

    __slots__ = ("_group_of", "_groups", "_items", "version")

    def __init__(self, group_of: Callable[[V], G]) -> None:
        self.version = 0
        """Grows with every change."""
        self._group_of = group_of
        self._items: dict[K, V] = {}
        self._groups: dict[G, dict[K, V]] = {}

    def copy(self) -> "GroupedTable[K, V, G]":
        other: GroupedTable[K, V, G] = GroupedTable(self._group_of)
        other.version = self.version
        other._items = self._items.copy()
        other._groups = {group: members.copy() for group, members in self._groups.items()}
        return other

    def group(self, group: G) -> Mapping[K, V]:
        """Returns the objects of a group; a view, in order of arrival there."""
        members = self._groups.get(group)
        return members if members is not None else _EMPTY  # type: ignore[return-value]

    def groups(self) -> Mapping[G, Mapping[K, V]]:
        return self._groups

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: V | D | None = None, /) -> V | D | None:
        """Returns the object, or `default`. The inherited method is correct, too, but takes five times as long."""
        return self._items.get(key, default)

    def __setitem__(self, key: K, value: V) -> None:
        self.version += 1
        old = self._items.get(key)
        group = self._group_of(value)
        if old is not None and self._group_of(old) != group:
            self._leave(key, old)
        self._items[key] = value
        self._groups.setdefault(group, {})[key] = value

    def __delitem__(self, key: K) -> None:
        self._leave(key, self._items.pop(key))
        self.version += 1

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<GroupedTable of {len(self._items)} in {len(self._groups)} groups>"

    def _leave(self, key: K, value: V) -> None:
        group = self._group_of(value)
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]


@final
@dataclass(frozen=True, slots=True)
class ClusterState:
    """The objects of a cluster at one moment, as a dump holds them: a list per kind, as the scheduler sees them."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    namespaces: Sequence[grouping.Namespace] = ()
    pdbs: Sequence[grouping.PodDisruptionBudget] = ()
    pvcs: Sequence[PersistentVolumeClaim] = ()
    pvs: Sequence[PersistentVolume] = ()
    storage_classes: Sequence[StorageClass] = ()
    csi_nodes: Sequence[CSINode] = ()
    csi_drivers: Sequence[CSIDriver] = ()
    csi_storage_capacities: Sequence[CSIStorageCapacity] = ()
    volume_attachments: Sequence[VolumeAttachment] = ()
    services: Sequence[grouping.Service] = ()
    replication_controllers: Sequence[grouping.ReplicationController] = ()
    replica_sets: Sequence[grouping.ReplicaSet] = ()
    stateful_sets: Sequence[grouping.StatefulSet] = ()
    resource_claims: Sequence[ResourceClaim] = ()
    device_classes: Sequence[DeviceClass] = ()
    resource_slices: Sequence[ResourceSlice] = ()
    priority_classes: Sequence[grouping.PriorityClass] = ()
    pod_groups: Sequence[grouping.PodGroup] = ()
    device_taint_rules: Sequence[DeviceTaintRule] = ()

    @staticmethod
    def decode(objects: Mapping[str, Sequence[object]]) -> "ClusterState":
        """Reads lists of plain objects by a scenario's names (`nodes`, `storageClasses`, ...). Raises DecodeError."""
        lists: dict[str, Any] = {}
        for name, items in objects.items():
            kind = _KIND_OF_LIST.get(name)
            if kind is None:
                raise decoding.DecodeError(f"objects: unknown kind {name!r:.64}; known are {', '.join(_KIND_OF_LIST)}")
            if not isinstance(items, Sequence) or isinstance(items, str):
                raise decoding.DecodeError(f"objects.{name}: expected a list")
            decoded = lists[kind.field] = []
            for place, item in enumerate(items):
                try:
                    decoded.append(decoding.convert(kind.type, item))
                except decoding.DecodeError as exc:
                    raise decoding.DecodeError(f"objects.{name}[{place}]: {exc}") from exc
        return ClusterState(**lists)

    def items(self) -> Iterator[HasMetadata]:
        """Yields all objects in the order in which a cluster is taken in: nodes before pods."""
        for kind in KINDS:
            yield from getattr(self, kind.field)


def identified(pod: Pod) -> Pod:
    """Returns the pod with a UID. Dumps made by hand may lack one; the key serves as well, unique at one moment."""
    if pod.uid:
        return pod
    return decoding.replaced(pod, metadata=decoding.replaced(pod.metadata, uid=pod.key))


@final
@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects besides nodes and pods, a table per kind in order of arrival, which only the cache writes."""

    namespaces: dict[str, grouping.Namespace] = field(default_factory=dict)
    pdbs: dict[Key, grouping.PodDisruptionBudget] = field(default_factory=dict)
    pvcs: dict[Key, PersistentVolumeClaim] = field(default_factory=dict)
    pvs: GroupedTable[str, PersistentVolume, VolumeGroup] = field(default_factory=lambda: GroupedTable(volume_group))
    """Grouped by StorageClass and claim."""
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: GroupedTable[str, CSINode, AttachProfile] = field(default_factory=lambda: GroupedTable(attach_profile))
    """Grouped by what they say of attaching volumes."""
    csi_drivers: dict[str, CSIDriver] = field(default_factory=dict)
    csi_storage_capacities: dict[Key, CSIStorageCapacity] = field(default_factory=dict)
    volume_attachments: GroupedTable[str, VolumeAttachment, str] = field(
        default_factory=lambda: GroupedTable(lambda attachment: attachment.spec.node_name)
    )
    """Grouped by node."""
    services: GroupedTable[Key, grouping.Service, str] = field(
        default_factory=lambda: GroupedTable[Key, grouping.Service, str](
            lambda service: service.metadata.namespace or "default"
        )
    )
    """Services are grouped by namespace, since a pod is selected by those of its own."""
    replication_controllers: dict[Key, grouping.ReplicationController] = field(default_factory=dict)
    replica_sets: dict[Key, grouping.ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[Key, grouping.StatefulSet] = field(default_factory=dict)
    resource_claims: dict[Key, ResourceClaim] = field(default_factory=dict)
    device_classes: GroupedTable[str, DeviceClass, str] = field(
        default_factory=lambda: GroupedTable[str, DeviceClass, str](
            lambda device_class: device_class.spec.extended_resource_name or ""
        )
    )
    """Grouped by the extended resource that they name."""
    resource_slices: dict[str, ResourceSlice] = field(default_factory=dict)
    priority_classes: dict[str, grouping.PriorityClass] = field(default_factory=dict)
    pod_groups: dict[Key, grouping.PodGroup] = field(default_factory=dict)
    device_taint_rules: dict[str, DeviceTaintRule] = field(default_factory=dict)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Puts an object into its table, replaces it, or removes it; KeyError if its kind is not watched."""
        item = old if new is None else new
        if item is None:
            return
        table, key = self._table_of(item)
        if new is None:
            table.pop(key, None)
            return
        table[key] = new

    def known(self, item: HasMetadata) -> HasMetadata | None:
        """Returns the object of this kind and name that is here now. Raises as `changed`."""
        table, key = self._table_of(item)
        return table.get(key)

    def _table_of(self, item: HasMetadata) -> tuple[MutableMapping[object, HasMetadata], object]:
        kind, meta = kind_of(item), item.metadata
        return getattr(self, kind.field), (meta.namespace or "default", meta.name) if kind.is_namespaced else meta.name

    def everything(self) -> Iterator[HasMetadata]:
        for table in fields(self):
            yield from getattr(self, table.name).values()

    def copy(self) -> "ClusterObjects":
        return ClusterObjects(**{table.name: getattr(self, table.name).copy() for table in fields(self)})
