"""The kinds of objects that the scheduler watches, and under which paths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

from extender.apiserver.informers.keeping import MetadataKeeper, NodeKeeper, PodKeeper
from extender.apiserver.informers.store import HasMetadata
from extender.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.objects.disruption import PodDisruptionBudget
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

T = TypeVar("T", bound=HasMetadata)


@final
@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One resource of the API, and what is wanted of it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    type: type[T]
    """A msgspec Struct, named like the kind."""
    field_selector: str = ""
    keeper: Callable[[], Callable[[T], T]] = MetadataKeeper
    """Makes what takes from an object that was read whatever scheduling does not look at. It may remember objects: one a reflector."""

    @property
    def name(self) -> str:
        """As in an object's `kind`."""
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """As in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As kubectl and RBAC name it: `pods`, `poddisruptionbudgets.policy`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def may_be_unknown(self) -> bool:
        """True if a server may not serve it. What does not know nodes is no Kubernetes."""
        return bool(self.group)


NODES: Final = Kind("", "v1", "nodes", Node, keeper=NodeKeeper)
PODS: Final = Kind("", "v1", "pods", Pod, "status.phase!=Succeeded,status.phase!=Failed", PodKeeper)
"""Finished pods hold nothing. Upstream: pkg/scheduler/scheduler.go, newPodInformer (v1.36.2)."""
NAMESPACES: Final = Kind("", "v1", "namespaces", Namespace)
SERVICES: Final = Kind("", "v1", "services", Service)
REPLICATION_CONTROLLERS: Final = Kind("", "v1", "replicationcontrollers", ReplicationController)
PERSISTENT_VOLUMES: Final = Kind("", "v1", "persistentvolumes", PersistentVolume)
PERSISTENT_VOLUME_CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", PersistentVolumeClaim)
REPLICA_SETS: Final = Kind("apps", "v1", "replicasets", ReplicaSet)
STATEFUL_SETS: Final = Kind("apps", "v1", "statefulsets", StatefulSet)
POD_DISRUPTION_BUDGETS: Final = Kind("policy", "v1", "poddisruptionbudgets", PodDisruptionBudget)
STORAGE_CLASSES: Final = Kind("storage.k8s.io", "v1", "storageclasses", StorageClass)
CSI_NODES: Final = Kind("storage.k8s.io", "v1", "csinodes", CSINode)
CSI_DRIVERS: Final = Kind("storage.k8s.io", "v1", "csidrivers", CSIDriver)
CSI_STORAGE_CAPACITIES: Final = Kind("storage.k8s.io", "v1", "csistoragecapacities", CSIStorageCapacity)
VOLUME_ATTACHMENTS: Final = Kind("storage.k8s.io", "v1", "volumeattachments", VolumeAttachment)
RESOURCE_CLAIMS: Final = Kind("resource.k8s.io", "v1", "resourceclaims", ResourceClaim)
DEVICE_CLASSES: Final = Kind("resource.k8s.io", "v1", "deviceclasses", DeviceClass)
RESOURCE_SLICES: Final = Kind("resource.k8s.io", "v1", "resourceslices", ResourceSlice)

KINDS: Final[tuple[Kind[Any], ...]] = (
    NODES,
    PODS,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    RESOURCE_CLAIMS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
)
"""All that scheduling looks at, nodes first."""
