"""The kinds of objects that the scheduler watches, for informers, cluster tables and event handlers.

To watch another kind, add it here, to `KINDS`, and as a field of `ClusterState` and `ClusterObjects` in
`extender.values.objects.cluster`.

Upstream: pkg/scheduler/eventhandlers.go, addAllEventHandlers.
"""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

from extender.values.objects import grouping
from extender.values.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

T = TypeVar("T", bound=HasMetadata)


@final
@dataclass(frozen=True, slots=True, eq=False)
class WatchedKind(Generic[T]):
    """One kind of object: its Python type, its resource in the API, and what its list is called."""

    type: type[T]
    """A msgspec Struct, named like the kind."""
    api_version: str
    """As in an object's `apiVersion`: `v1`, `apps/v1`."""
    plural: str
    """The resource in paths: `poddisruptionbudgets`."""
    field: str
    """The field of `ClusterState` and `ClusterObjects` with objects of this kind."""
    is_namespaced: bool = False
    field_selector: str = ""
    """Objects that it does not match are not watched."""
    is_optional: bool = False
    """True if no decision depends on it: where it may not be read, it counts as empty."""
    gate: str = ""
    """The feature without which it is not watched; empty if it always is."""
    other_api_version: str = ""
    """Asked for where the server does not serve `api_version`; empty for none."""

    @property
    def name(self) -> str:
        """As in an object's `kind`."""
        return self.type.__name__

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def resource(self) -> str:
        """As kubectl and RBAC name it: `pods`, `poddisruptionbudgets.policy`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def event_resource(self) -> str:
        """As cluster events name it: `Node`, `storage.k8s.io/CSINode`."""
        return f"{self.group}/{self.name}" if self.group else self.name

    @property
    def list_name(self) -> str:
        """The field in camel case, as dumps and scenarios name the list: `storageClasses`."""
        first, *further_words = self.field.split("_")
        return first + "".join(map(str.capitalize, further_words))

    @property
    def may_be_unknown(self) -> bool:
        """True if a server may not serve it. A server that does not know nodes is no Kubernetes API server."""
        return bool(self.group)


NODES: Final = WatchedKind(Node, "v1", "nodes", "nodes")
# Finished pods hold nothing. Upstream: pkg/scheduler/scheduler.go, newPodInformer.
PODS: Final = WatchedKind(
    Pod, "v1", "pods", "pods", is_namespaced=True, field_selector="status.phase!=Succeeded,status.phase!=Failed"
)
NAMESPACES: Final = WatchedKind(grouping.Namespace, "v1", "namespaces", "namespaces")
POD_DISRUPTION_BUDGETS: Final = WatchedKind(
    grouping.PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", "pdbs", is_namespaced=True
)
PERSISTENT_VOLUME_CLAIMS: Final = WatchedKind(
    PersistentVolumeClaim, "v1", "persistentvolumeclaims", "pvcs", is_namespaced=True
)
PERSISTENT_VOLUMES: Final = WatchedKind(PersistentVolume, "v1", "persistentvolumes", "pvs")
STORAGE_CLASSES: Final = WatchedKind(StorageClass, "storage.k8s.io/v1", "storageclasses", "storage_classes")
CSI_NODES: Final = WatchedKind(CSINode, "storage.k8s.io/v1", "csinodes", "csi_nodes")
CSI_DRIVERS: Final = WatchedKind(CSIDriver, "storage.k8s.io/v1", "csidrivers", "csi_drivers")
CSI_STORAGE_CAPACITIES: Final = WatchedKind(
    CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities", "csi_storage_capacities", is_namespaced=True
)
VOLUME_ATTACHMENTS: Final = WatchedKind(
    VolumeAttachment, "storage.k8s.io/v1", "volumeattachments", "volume_attachments"
)
SERVICES: Final = WatchedKind(grouping.Service, "v1", "services", "services", is_namespaced=True)
REPLICATION_CONTROLLERS: Final = WatchedKind(
    grouping.ReplicationController, "v1", "replicationcontrollers", "replication_controllers", is_namespaced=True
)
REPLICA_SETS: Final = WatchedKind(grouping.ReplicaSet, "apps/v1", "replicasets", "replica_sets", is_namespaced=True)
STATEFUL_SETS: Final = WatchedKind(grouping.StatefulSet, "apps/v1", "statefulsets", "stateful_sets", is_namespaced=True)
RESOURCE_CLAIMS: Final = WatchedKind(
    ResourceClaim, "resource.k8s.io/v1", "resourceclaims", "resource_claims", is_namespaced=True
)
DEVICE_CLASSES: Final = WatchedKind(DeviceClass, "resource.k8s.io/v1", "deviceclasses", "device_classes")
RESOURCE_SLICES: Final = WatchedKind(ResourceSlice, "resource.k8s.io/v1", "resourceslices", "resource_slices")
DEVICE_TAINT_RULES: Final = WatchedKind(
    DeviceTaintRule,
    "resource.k8s.io/v1",
    "devicetaintrules",
    "device_taint_rules",
    gate="DRADeviceTaintRules",
    other_api_version="resource.k8s.io/v1beta2",
)
PRIORITY_CLASSES: Final = WatchedKind(
    grouping.PriorityClass, "scheduling.k8s.io/v1", "priorityclasses", "priority_classes", is_optional=True
)
POD_GROUPS: Final = WatchedKind(
    grouping.PodGroup,
    "scheduling.k8s.io/v1alpha2",
    "podgroups",
    "pod_groups",
    is_namespaced=True,
    gate="GenericWorkload",
    other_api_version="scheduling.k8s.io/v1beta1",
)

KINDS: Final[tuple[WatchedKind[Any], ...]] = (
    NODES,
    PODS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    RESOURCE_CLAIMS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    PRIORITY_CLASSES,
    POD_GROUPS,
    DEVICE_TAINT_RULES,
)
"""All kinds that scheduling and answers look at, in the order in which a cluster is taken in: nodes before pods."""

_KIND_OF_TYPE: Final[dict[type, WatchedKind[Any]]] = {kind.type: kind for kind in KINDS}


def kind_of(item: HasMetadata) -> WatchedKind[Any]:
    """Returns the kind of an object; KeyError if it is not watched. Nothing else looks up the type of an object.

    An object that remembers its JSON is of a type of its own, but of no other kind, see `whole`.
    """
    exact = type(item)
    kind = _KIND_OF_TYPE.get(exact)
    return _KIND_OF_TYPE[exact.__base__ or object] if kind is None else kind
