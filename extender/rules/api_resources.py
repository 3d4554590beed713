"""The served resources: their names, scope, verbs and subresources, and the fields for field selectors.

Upstream: pkg/registry, the storage of each kind; pkg/apis, the field label conversions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, Protocol, TypedDict, Unpack, final

import msgspec

Object = dict[str, Any]
"""An API object as JSON values."""

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY: Final = ("create",)
STATUS_VERBS: Final = ("get", "patch", "update")


@final
class Subresource(msgspec.Struct, frozen=True):
    """A subresource such as `pods/binding`, with its group and version if they differ from the object's."""

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
        storage: the name under which the objects are stored, if not the plural; two versions of a kind share it.
        is_stored: False for reviews, which are answered and not stored.
        created_by_update: a PUT creates an object that does not exist. Upstream: AllowCreateOnUpdate of each strategy.
        needs_version: an update has to say its resourceVersion. Upstream: AllowUnconditionalUpdate of each strategy.
        returns_deleted: a DELETE answers with the object, not with a Status. Upstream: ReturnDeletedObject.
        gate: the feature without which the resource is not served; empty if it always is.
        is_typed: False if the published types lack the kind, so that any field is kept.
        is_inert: nothing acts on the objects; a warning tells those who create one.
        is_custom: a CustomResourceDefinition defines it.
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
    created_by_update: bool = False
    needs_version: bool = False
    returns_deleted: bool = False
    gate: str = ""
    is_typed: bool = True
    is_inert: bool = False
    is_custom: bool = False

    @property
    def ruled_as(self) -> str:
        """Returns the kind by which rules are found; empty for custom resources, which may share the name of others."""
        return "" if self.is_custom else self.kind

    @property
    def api_version(self) -> str:
        """Returns `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Returns the plural with its group, as in errors: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_as(self) -> str:
        return self.storage or self.qualified

    @property
    def fields(self) -> Mapping[str, str]:
        return _DEFAULT_FIELDS if self.selectable is None else self.selectable

    @property
    def kinds(self) -> tuple[tuple[str, str, str], ...]:
        """Returns the group, version and kind of the objects and of their subresources."""
        own_version = self.group, self.version
        below = [
            ((subresource.group, subresource.version) if subresource.version else own_version, subresource.kind)
            for subresource in self.subresources
        ]
        return (*own_version, self.kind), *((*where, kind) for where, kind in below)

    def subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)


def _paths(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


_DEFAULT_FIELDS: Final = _paths("metadata.name", "metadata.namespace")
_POD_FIELDS: Final = {
    **_paths(
        "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
        "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
        "status.nominatedNodeName",
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
_ALL: Final = ("all",)
_STORAGE: Final = "storage.k8s.io"
_NETWORK: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_DEVICES: Final = "resource.k8s.io"


class _More(TypedDict, total=False):
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    selectable: Mapping[str, str]
    storage: str
    is_stored: bool
    created_by_update: bool
    needs_version: bool
    returns_deleted: bool
    gate: str
    is_typed: bool
    is_inert: bool


def _resource(
    group: str,
    kind: str,
    short_name: str = "",
    *below: Subresource,
    namespaced: bool = True,
    has_status: bool = False,
    version: str = "v1",
    **more: Unpack[_More],
) -> Resource:
    """Returns a resource with the regular plural of its kind, of version v1 by default."""
    singular = kind.lower()
    ending = next((suffix for suffix in ("points", "y", "s") if singular.endswith(suffix)), "")
    plural = {"points": singular, "y": f"{singular[:-1]}ies", "s": f"{singular}es", "": f"{singular}s"}[ending]
    subresources = (*below, Subresource("status", kind)) if has_status else below
    short_names = (short_name,) if short_name else ()
    return Resource(group, version, plural, singular, kind, namespaced, short_names, subresources=subresources, **more)


_inert: Final = partial(_resource, is_inert=True)

NODES: Final = _resource(
    "", "Node", "no", namespaced=False, has_status=True, selectable=_paths("metadata.name", "spec.unschedulable")
)
PODS: Final = _resource(
    "", "Pod", "po", Subresource("binding", "Binding", CREATE_ONLY),
    Subresource("eviction", "Eviction", CREATE_ONLY, "policy", "v1"), Subresource("resize", "Pod"),
    has_status=True, categories=_ALL, selectable=_POD_FIELDS, returns_deleted=True,
)  # fmt: skip
BINDINGS: Final = _resource("", "Binding", verbs=CREATE_ONLY, is_stored=False)
NAMESPACES: Final = _resource(
    "", "Namespace", "ns", Subresource("finalize", "Namespace", ("update",)), namespaced=False, has_status=True,
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    selectable=_paths("status.phase", "metadata.name"),
)  # fmt: skip
SERVICES: Final = _resource(
    "", "Service", "svc", has_status=True, categories=_ALL, created_by_update=True, returns_deleted=True,
    selectable=_paths("metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"),
)  # fmt: skip
REPLICATION_CONTROLLERS: Final = _resource(
    "", "ReplicationController", "rc", _SCALE, has_status=True, categories=_ALL,
    selectable=_paths("metadata.name", "metadata.namespace", "status.replicas"),
)  # fmt: skip
EVENTS: Final = _resource("", "Event", "ev", selectable=_EVENT_FIELDS, storage="events", created_by_update=True)
NEW_EVENTS: Final = _resource(
    "events.k8s.io", "Event", "ev", selectable=_NEW_EVENT_FIELDS, storage="events", created_by_update=True
)
CONFIG_MAPS: Final = _inert("", "ConfigMap", "cm")
SECRETS: Final = _inert("", "Secret", selectable=_paths("type", "metadata.namespace", "metadata.name"))
SERVICE_ACCOUNTS: Final = _inert("", "ServiceAccount", "sa", returns_deleted=True)
ENDPOINTS: Final = _inert("", "Endpoints", "ep")
LIMIT_RANGES: Final = _inert("", "LimitRange", "limits")
RESOURCE_QUOTAS: Final = _inert("", "ResourceQuota", "quota", has_status=True, returns_deleted=True)
PERSISTENT_VOLUMES: Final = _resource(
    "", "PersistentVolume", "pv", namespaced=False, has_status=True, returns_deleted=True
)
PERSISTENT_VOLUME_CLAIMS: Final = _resource("", "PersistentVolumeClaim", "pvc", has_status=True, returns_deleted=True)
REPLICA_SETS: Final = _resource("apps", "ReplicaSet", "rs", _SCALE, has_status=True, categories=_ALL)
STATEFUL_SETS: Final = _resource("apps", "StatefulSet", "sts", _SCALE, has_status=True, categories=_ALL)
DEPLOYMENTS: Final = _resource("apps", "Deployment", "deploy", _SCALE, has_status=True, categories=_ALL)
DAEMON_SETS: Final = _resource("apps", "DaemonSet", "ds", has_status=True, categories=_ALL)
JOBS: Final = _resource(
    "batch", "Job", has_status=True, categories=_ALL,
    selectable=_paths("metadata.name", "metadata.namespace", "status.successful"),
)  # fmt: skip
CRON_JOBS: Final = _inert("batch", "CronJob", "cj", has_status=True, categories=_ALL)
POD_DISRUPTION_BUDGETS: Final = _resource("policy", "PodDisruptionBudget", "pdb", has_status=True, needs_version=True)
PRIORITY_CLASSES: Final = _resource("scheduling.k8s.io", "PriorityClass", "pc", namespaced=False)
POD_GROUPS: Final = _resource(
    "scheduling.k8s.io", "PodGroup", has_status=True, version="v1alpha2", gate="GenericWorkload"
)
WORKLOADS: Final = _resource("scheduling.k8s.io", "Workload", version="v1alpha2", gate="GenericWorkload")
STORAGE_CLASSES: Final = _resource(_STORAGE, "StorageClass", "sc", namespaced=False, returns_deleted=True)
CSI_NODES: Final = _resource(_STORAGE, "CSINode", namespaced=False, needs_version=True, returns_deleted=True)
CSI_DRIVERS: Final = _resource(_STORAGE, "CSIDriver", namespaced=False, needs_version=True, returns_deleted=True)
CSI_STORAGE_CAPACITIES: Final = _resource(_STORAGE, "CSIStorageCapacity", needs_version=True)
VOLUME_ATTACHMENTS: Final = _resource(
    _STORAGE, "VolumeAttachment", namespaced=False, has_status=True, needs_version=True, returns_deleted=True
)
LEASES: Final = _resource("coordination.k8s.io", "Lease", created_by_update=True, needs_version=True)
RESOURCE_CLAIMS: Final = _resource(_DEVICES, "ResourceClaim", has_status=True, returns_deleted=True)
RESOURCE_CLAIM_TEMPLATES: Final = _resource(_DEVICES, "ResourceClaimTemplate", returns_deleted=True)
DEVICE_CLASSES: Final = _resource(_DEVICES, "DeviceClass", namespaced=False, returns_deleted=True)
RESOURCE_SLICES: Final = _resource(
    _DEVICES,
    "ResourceSlice",
    namespaced=False,
    selectable=_paths("metadata.name", "spec.nodeName", "spec.driver"),
    returns_deleted=True,
)
DEVICE_TAINT_RULES: Final = _resource(
    _DEVICES,
    "DeviceTaintRule",
    namespaced=False,
    has_status=True,
    returns_deleted=True,
    version="v1beta2",
    gate="DRADeviceTaintRules",
)
RUNTIME_CLASSES: Final = _resource("node.k8s.io", "RuntimeClass", namespaced=False)
INGRESSES: Final = _inert(_NETWORK, "Ingress", "ing", has_status=True)
INGRESS_CLASSES: Final = _inert(_NETWORK, "IngressClass", namespaced=False)
NETWORK_POLICIES: Final = _inert(_NETWORK, "NetworkPolicy", "netpol")
ENDPOINT_SLICES: Final = _inert("discovery.k8s.io", "EndpointSlice")
ROLES: Final = _inert(_RBAC, "Role")
ROLE_BINDINGS: Final = _inert(_RBAC, "RoleBinding")
CLUSTER_ROLES: Final = _inert(_RBAC, "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = _inert(_RBAC, "ClusterRoleBinding", namespaced=False)
AUTOSCALERS: Final = _inert(
    "autoscaling", "HorizontalPodAutoscaler", "hpa", has_status=True, version="v2", is_typed=False
)
MUTATING_WEBHOOKS: Final = _inert(_ADMISSION, "MutatingWebhookConfiguration", namespaced=False, is_typed=False)
VALIDATING_WEBHOOKS: Final = _inert(_ADMISSION, "ValidatingWebhookConfiguration", namespaced=False, is_typed=False)
API_SERVICES: Final = _inert("apiregistration.k8s.io", "APIService", namespaced=False, has_status=True, is_typed=False)
CUSTOM_RESOURCE_DEFINITIONS: Final = _resource(
    "apiextensions.k8s.io", "CustomResourceDefinition", "crd", namespaced=False, has_status=True, is_typed=False
)
TOKEN_REVIEWS: Final = _resource(
    "authentication.k8s.io", "TokenReview", namespaced=False, verbs=CREATE_ONLY, is_stored=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = _resource(
    "authorization.k8s.io", "SelfSubjectAccessReview", namespaced=False, verbs=CREATE_ONLY, is_stored=False
)
SUBJECT_ACCESS_REVIEWS: Final = _resource(
    "authorization.k8s.io", "SubjectAccessReview", namespaced=False, verbs=CREATE_ONLY, is_stored=False
)

RESOURCES: Final = (
    BINDINGS, CONFIG_MAPS, ENDPOINTS, EVENTS, LIMIT_RANGES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES, PODS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS, SECRETS, SERVICE_ACCOUNTS, SERVICES,
    API_SERVICES,
    DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS,
    NEW_EVENTS,
    TOKEN_REVIEWS,
    SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS,
    AUTOSCALERS,
    CRON_JOBS, JOBS,
    INGRESSES, INGRESS_CLASSES, NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES,
    CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, STORAGE_CLASSES, VOLUME_ATTACHMENTS,
    MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS,
    CUSTOM_RESOURCE_DEFINITIONS,
    PRIORITY_CLASSES, POD_GROUPS, WORKLOADS,
    LEASES,
    RUNTIME_CLASSES,
    ENDPOINT_SLICES,
    DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES, DEVICE_TAINT_RULES,
)  # fmt: skip
"""All resources by group, in the order of the discovery documents."""


NEW_NAME_OF: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""The names in events.k8s.io/v1 of fields of a core/v1 Event, where they differ."""
CORE_NAME_OF: Final = {new: core for core, new in NEW_NAME_OF.items()}


class GatesThatAreOn(Protocol):
    """The part of `FeatureGates` that this module needs, so that commands need not load the configuration."""

    def enabled(self, name: str, /) -> bool: ...


@cache
def served(features: GatesThatAreOn) -> tuple[Resource, ...]:
    return tuple(resource for resource in RESOURCES if not resource.gate or features.enabled(resource.gate))


_BY_NAME: Final = {(resource.group, resource.version, resource.plural): resource for resource in RESOURCES}
_BY_KIND: Final = {(resource.api_version, resource.kind): resource for resource in RESOURCES}
_BY_BARE_KIND: Final = {resource.kind: resource for resource in reversed(RESOURCES) if resource.is_stored}


def find(group: str, version: str, plural: str, custom: Iterable[Resource] = ()) -> Resource | None:
    """Returns the resource that a path names, or None if it is not served."""
    defined = (
        resource
        for resource in custom
        if (resource.group, resource.version, resource.plural) == (group, version, plural)
    )
    return _BY_NAME.get((group, version, plural)) or next(defined, None)


def of_kind(api_version: str, kind: str, custom: Iterable[Resource] = ()) -> Resource | None:
    """Returns the resource whose objects have this apiVersion and kind, or None if it is not served."""
    defined = (resource for resource in custom if (resource.api_version, resource.kind) == (api_version, kind))
    return _BY_KIND.get((api_version, kind)) or next(defined, None)


def stored_kind(kind: str) -> Resource | None:
    """Returns the resource that stores objects of this kind, whatever their apiVersion; None if there is none."""
    return _BY_BARE_KIND.get(kind)
