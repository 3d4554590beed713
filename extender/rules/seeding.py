"""Seeds a cluster with objects as they were, with uids, times, status, bindings and owners.

Of objects that a server printed, which had checked and completed them, only the fields for scheduling are checked
again, so that a large dump is stored within seconds. Objects written by hand are checked and completed as new ones, but
keep their uid, priority, status and node.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, final

from extender.rules import statuses, validation
from extender.rules.admission import admission_plugins
from extender.rules.admission.defaults import set_defaults
from extender.rules.admission.strategies import qos_class
from extender.rules.api_resources import (
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    Object,
    Resource,
    of_kind,
    stored_kind,
)
from extender.rules.lookup import Lookup
from extender.rules.schema import api_types
from extender.rules.statuses import ApiStatus
from extender.values.golang.json import JsonError, cannot_unmarshal, type_word
from extender.values.golang.times import rfc3339
from extender.values.objects import decoding
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.grouping import SYSTEM_CLASSES
from extender.values.objects.meta import ApiObject
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim

_FIRST: Final = (NAMESPACES, PRIORITY_CLASSES, RUNTIME_CLASSES, STORAGE_CLASSES, NODES)
"""The resources that other objects refer to when they are admitted."""
_TYPED: Final[Mapping[str, type[ApiObject]]] = {
    "Pod": Pod,
    "Node": Node,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "ResourceClaim": ResourceClaim,
    "CSINode": CSINode,
}
"""The kinds that are numerous in dumps."""
_ONLY_SERVERS_SAY: Final = {
    "Pod": ("status", "qosClass"),
    "PersistentVolume": ("status", "phase"),
    "PersistentVolumeClaim": ("status", "phase"),
}
"""Fields that only servers write, by which their objects are recognised without a resourceVersion."""


@final
@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object that was not stored. The name includes its namespace, if it has one: `default/web`."""

    kind: str
    name: str
    why: str


@final
@dataclass(frozen=True, slots=True)
class SeedReport:
    """The results for the objects of a dump: the stored ones and those of unserved kinds, counted by kind.

    `added` are objects that the dump refers to and lacks: `Namespace shop`, `PriorityClass high`.
    """

    stored: Mapping[str, int]
    left_out: Mapping[str, int]
    refused: Sequence[RefusedObject]
    added: Sequence[str]


class SeededCluster(Lookup, Protocol):
    """The store of the objects."""

    def keep(self, resource: Resource, namespace: str, name: str, obj: Object) -> None:
        """Stores the object, replacing another one of its name. Raises ApiStatus if it is too large."""
        ...

    def create(self, resource: Resource, namespace: str, obj: Object) -> object:
        """Stores a new object as a request does. Raises ApiStatus if it is refused."""
        ...

    def custom_resources(self) -> Sequence[Resource]:
        """Returns the resources of its CustomResourceDefinitions."""
        ...

    def new_uid(self) -> str: ...

    def now(self) -> datetime: ...


def seed(cluster: SeededCluster, objects: Iterable[Object]) -> SeedReport:
    """Stores objects in the cluster, namespaces and classes first; the cluster owns them afterwards.

    They have kind and apiVersion. A refused object does not keep the others out.
    """
    return _Seeding(cluster).run(objects)


@final
class _Seeding:
    def __init__(self, cluster: SeededCluster) -> None:
        self._cluster = cluster
        self._stored: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._refused: list[RefusedObject] = []
        self._added: list[str] = []
        self._namespaces: set[str] = set()

    def run(self, objects: Iterable[Object]) -> SeedReport:
        by_resource: dict[Resource, list[Object]] = {resource: [] for resource in _FIRST}
        undefined = []
        for obj in objects:
            resource = _resource_of(obj)
            if resource is None:
                undefined.append(obj)
            else:
                by_resource.setdefault(resource, []).append(obj)
        for resource, items in by_resource.items():
            for obj in items:
                self._put(resource, obj)
        # Now their definitions are stored, if there are any.
        custom = self._cluster.custom_resources()
        for obj in undefined:
            resource = of_kind(str(obj.get("apiVersion")), str(obj.get("kind")), custom)
            if resource is None or not resource.is_stored:
                self._left_out[str(obj.get("kind"))] += 1
            else:
                self._put(resource, obj)
        return SeedReport(dict(self._stored), dict(self._left_out), tuple(self._refused), tuple(self._added))

    def _put(self, resource: Resource, obj: Object) -> None:
        metadata = obj.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name, namespace = metadata.get("name"), metadata.get("namespace") or ("default" if resource.namespaced else "")
        try:
            for field in ("name", "namespace"):
                if not isinstance(text := metadata.get(field), str | None):
                    raise statuses.bad_request(
                        cannot_unmarshal(type_word(text), "string", f"ObjectMeta.metadata.{field}")
                    )
            if not name:
                raise statuses.bad_request("metadata.name: Required value: name is required")
            self._store(resource, namespace, name, obj)
        except (ApiStatus, decoding.DecodeError) as exc:
            self._refused.append(
                RefusedObject(resource.kind, f"{namespace}/{name}" if namespace else str(name), str(exc))
            )
        else:
            self._stored[resource.kind] += 1

    def _store(self, resource: Resource, namespace: str, name: str, obj: Object) -> None:
        # The namespaces and priority classes of every cluster exist already; the dump's replace them.
        is_of_every_cluster = resource is NAMESPACES or (resource is PRIORITY_CLASSES and name in SYSTEM_CLASSES)
        if self._cluster.find(resource, namespace, name) is not None and not is_of_every_cluster:
            raise statuses.already_exists(resource, name)
        if namespace:
            self._require_namespace(namespace)
        typed = _TYPED.get(resource.ruled_as)
        if typed is not None and _was_served(resource, obj):
            decoding.convert(typed, obj)
            self._require_class(resource, obj)
        else:
            obj = self._admitted(resource, namespace, obj)
        metadata = obj["metadata"]
        if resource.namespaced:
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        if not metadata.get("uid"):
            metadata["uid"] = self._cluster.new_uid()
        if not metadata.get("creationTimestamp"):
            metadata["creationTimestamp"] = rfc3339(self._cluster.now())
        self._cluster.keep(resource, namespace, name, obj)

    def _admitted(self, resource: Resource, namespace: str, raw: Object) -> Object:
        """Returns an object written by hand, completed and checked as a new one, with its own values first."""
        try:
            obj, _ = api_types.read(resource, raw)
        except JsonError as exc:
            raise statuses.undecodable(resource.kind, resource.version, str(exc)) from exc
        obj["metadata"].pop("resourceVersion", None)
        if resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        set_defaults(resource, obj)
        if resource is NAMESPACES:
            obj["spec"].setdefault("finalizers", ["kubernetes"])
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        elif resource is PODS:
            self._require_class(resource, obj)
            parts = ["priority", "preemptionPolicy"]
            name = obj["spec"].get("runtimeClassName")
            if not name or self._cluster.find(RUNTIME_CLASSES, "", name) is None:
                parts += ["runtimeClassName", "overhead"]
            own_fields = {part: obj["spec"].pop(part) for part in parts if obj["spec"].get(part) is not None}
            admission_plugins.admit_create(self._cluster, resource, namespace, obj)
            obj["spec"].update(own_fields)
            status = obj.setdefault("status", {})
            status.setdefault("phase", "Pending")
            status.setdefault("qosClass", qos_class(obj["spec"]))
        else:
            admission_plugins.admit_create(self._cluster, resource, namespace, obj)
        errors = validation.validate_create(resource, obj)
        if errors:
            raise statuses.invalid(resource.group, resource.kind, obj["metadata"]["name"], errors)
        if resource is not NAMESPACES and "spec" in obj:
            obj["metadata"].setdefault("generation", 1)
        return obj

    def _require_namespace(self, name: str) -> None:
        if name in self._namespaces:
            return
        self._namespaces.add(name)
        if self._cluster.find(NAMESPACES, "", name) is None:
            self._cluster.create(NAMESPACES, "", {"metadata": {"name": name}})
            self._added.append(f"Namespace {name}")

    def _require_class(self, resource: Resource, obj: Object) -> None:
        """Creates the pod's priority class if it is missing, since further pods of a controller need it."""
        spec: Any = obj.get("spec") or {}
        name, priority = spec.get("priorityClassName"), spec.get("priority")
        if (
            resource is not PODS
            or not name
            or priority is None
            or self._cluster.find(PRIORITY_CLASSES, "", name) is not None
        ):
            return
        policy = spec.get("preemptionPolicy") or "PreemptLowerPriority"
        self._cluster.create(
            PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": priority, "preemptionPolicy": policy}
        )
        self._added.append(f"PriorityClass {name}")


def _was_served(resource: Resource, obj: Object) -> bool:
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        return True
    part, name = _ONLY_SERVERS_SAY.get(resource.ruled_as, ("", ""))
    fields = obj.get(part)
    return bool(
        isinstance(fields, dict) and fields.get(name) and metadata.get("uid") and metadata.get("creationTimestamp")
    )


def _resource_of(obj: Object) -> Resource | None:
    kind, api_version = str(obj.get("kind")), str(obj.get("apiVersion") or "")
    resource = of_kind(api_version, kind) if api_version else stored_kind(kind)
    if resource is None or not resource.is_stored:
        return None
    return EVENTS if resource.stored_as == EVENTS.stored_as and not api_version else resource
