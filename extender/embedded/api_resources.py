"""The resources that are served: their names, scope, verbs and subresources, and the fields that field selectors may name.

Upstream: pkg/registry, the storage of each kind; pkg/apis, the field label conversions (v1.36.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

Object = dict[str, Any]
"""An API object as JSON values."""

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY: Final = ("create",)
STATUS_VERBS: Final = ("get", "patch", "update")


@final
@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource such as `pods/binding`. Group and version are empty if its kind is of the group and version of the object."""

    name: str
    kind: str
    verbs: tuple[str, ...] = STATUS_VERBS
    group: str = ""
    version: str = ""


@final
@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as a group and version serve it.

    Attributes:
        selectable: the fields that a selector may name, with the path of their value; None: only name and namespace.
        storage: the name under which the objects are kept; two resources with one name are two versions of the same objects.
        is_stored: False for reviews, which are answered and not kept.
    """

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    selectable: Mapping[str, str] | None = field(default=None, hash=False)
    storage: str = ""
    is_stored: bool = True

    @property
    def api_version(self) -> str:
        """Returns `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Returns the plural with its group, as errors name it: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_as(self) -> str:
        """Returns the name under which the objects are kept."""
        return self.storage or self.qualified

    @property
    def fields(self) -> Mapping[str, str]:
        """Returns the fields that a selector may name, with the paths of their values."""
        return _DEFAULT_FIELDS if self.selectable is None else self.selectable

    @property
    def kinds(self) -> tuple[tuple[str, str, str], ...]:
        """Returns the group, version and kind of the objects and of their subresources."""
        here = self.group, self.version
        below = [((each.group, each.version) if each.version else here, each.kind) for each in self.subresources]
        return (*here, self.kind), *((*where, kind) for where, kind in below)

    def subresource(self, name: str) -> Subresource | None:
        return next((each for each in self.subresources if each.name == name), None)


def _paths(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


_DEFAULT_FIELDS: Final = _paths("metadata.name", "metadata.namespace")
_POD_FIELDS: Final = {
    **_paths(
        "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    "spec.host": "spec.nodeName",
}  # fmt: skip
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS: Final = {
    **{f"involvedObject.{name}": f"involvedObject.{name}" for name in _REFERENCE},
    **_paths("reason", "reportingComponent", "source", "type", "metadata.namespace", "metadata.name"),
}
_NEW_EVENT_FIELDS: Final = {
    **{f"regarding.{name}": f"involvedObject.{name}" for name in _REFERENCE},
    **_paths("reason", "type", "metadata.namespace", "metadata.name"),
    "reportingController": "reportingComponent",
}

_SCALE: Final = Subresource("scale", "Scale", group="autoscaling", version="v1")


def _status(kind: str) -> Subresource:
    return Subresource("status", kind)


def _workload(plural: str, kind: str, short_name: str, group: str = "apps", selectable: Mapping[str, str] | None = None) -> Resource:
    return Resource(
        group, "v1", plural, kind.lower(), kind, True, (short_name,), ("all",), subresources=(_SCALE, _status(kind)), selectable=selectable
    )


NODES: Final = Resource(
    "", "v1", "nodes", "node", "Node", False, ("no",),
    subresources=(_status("Node"),), selectable=_paths("metadata.name", "spec.unschedulable"),
)  # fmt: skip
PODS: Final = Resource(
    "", "v1", "pods", "pod", "Pod", True, ("po",), ("all",),
    subresources=(
        Subresource("binding", "Binding", CREATE_ONLY),
        Subresource("eviction", "Eviction", CREATE_ONLY, "policy", "v1"),
        _status("Pod"),
    ),
    selectable=_POD_FIELDS,
)  # fmt: skip
BINDINGS: Final = Resource("", "v1", "bindings", "binding", "Binding", True, verbs=CREATE_ONLY, is_stored=False)
NAMESPACES: Final = Resource(
    "", "v1", "namespaces", "namespace", "Namespace", False, ("ns",),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    subresources=(Subresource("finalize", "Namespace", ("update",)), _status("Namespace")),
    selectable=_paths("status.phase", "metadata.name"),
)  # fmt: skip
SERVICES: Final = Resource(
    "", "v1", "services", "service", "Service", True, ("svc",), ("all",), subresources=(_status("Service"),),
    selectable=_paths("metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"),
)  # fmt: skip
REPLICATION_CONTROLLERS: Final = _workload(
    "replicationcontrollers", "ReplicationController", "rc", "", _paths("metadata.name", "metadata.namespace", "status.replicas")
)
EVENTS: Final = Resource("", "v1", "events", "event", "Event", True, ("ev",), selectable=_EVENT_FIELDS, storage="events")
NEW_EVENTS: Final = Resource(
    "events.k8s.io", "v1", "events", "event", "Event", True, ("ev",), selectable=_NEW_EVENT_FIELDS, storage="events"
)
PERSISTENT_VOLUMES: Final = Resource(
    "", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", False, ("pv",), subresources=(_status("PersistentVolume"),)
)
PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", True, ("pvc",),
    subresources=(_status("PersistentVolumeClaim"),),
)  # fmt: skip
REPLICA_SETS: Final = _workload("replicasets", "ReplicaSet", "rs")
STATEFUL_SETS: Final = _workload("statefulsets", "StatefulSet", "sts")
DEPLOYMENTS: Final = _workload("deployments", "Deployment", "deploy")
POD_DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", True, ("pdb",),
    subresources=(_status("PodDisruptionBudget"),),
)  # fmt: skip
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", False, ("pc",))
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass", False, ("sc",))
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", "csinode", "CSINode", False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", "csidriver", "CSIDriver", False)
CSI_STORAGE_CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity", True)
VOLUME_ATTACHMENTS: Final = Resource(
    "storage.k8s.io", "v1", "volumeattachments", "volumeattachment", "VolumeAttachment", False, subresources=(_status("VolumeAttachment"),)
)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "lease", "Lease", True)
RESOURCE_CLAIMS: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaims", "resourceclaim", "ResourceClaim", True, subresources=(_status("ResourceClaim"),)
)
RESOURCE_CLAIM_TEMPLATES: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "resourceclaimtemplate", "ResourceClaimTemplate", True
)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "deviceclass", "DeviceClass", False)
RESOURCE_SLICES: Final = Resource(
    "resource.k8s.io", "v1", "resourceslices", "resourceslice", "ResourceSlice", False,
    selectable=_paths("metadata.name", "spec.nodeName", "spec.driver"),
)  # fmt: skip


def _review(group: str, plural: str, kind: str) -> Resource:
    return Resource(group, "v1", plural, kind.lower(), kind, False, verbs=CREATE_ONLY, is_stored=False)


TOKEN_REVIEWS: Final = _review("authentication.k8s.io", "tokenreviews", "TokenReview")
SELF_SUBJECT_ACCESS_REVIEWS: Final = _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
SUBJECT_ACCESS_REVIEWS: Final = _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview")

RESOURCES: Final = (
    BINDINGS, EVENTS, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, REPLICATION_CONTROLLERS, SERVICES,
    DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS,
    NEW_EVENTS,
    TOKEN_REVIEWS,
    SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS,
    POD_DISRUPTION_BUDGETS,
    CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, STORAGE_CLASSES, VOLUME_ATTACHMENTS,
    PRIORITY_CLASSES,
    LEASES,
    DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES,
)  # fmt: skip
"""All resources by group, in the order of the discovery documents."""

_BY_NAME: Final = {(each.group, each.version, each.plural): each for each in RESOURCES}
_BY_KIND: Final = {(each.api_version, each.kind): each for each in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    """Returns the resource that a path names, or None if it is not served."""
    return _BY_NAME.get((group, version, plural))


def of_kind(api_version: str, kind: str) -> Resource | None:
    """Returns the resource whose objects have this apiVersion and kind, or None if it is not served."""
    return _BY_KIND.get((api_version, kind))
