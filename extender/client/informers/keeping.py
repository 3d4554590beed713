"""Reduces objects to the fields that scheduling reads, and shares equal parts between objects to save memory.

Annotations are kept because plugins may read them, except the one in which kubectl stores a second copy of the object.
Volumes of types that scheduling ignores are dropped: the name of the service account's volume differs from pod to pod
and would make equal pods look different.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec.structs import replace

from extender.values import limits
from extender.values.objects.kinds import NODES, PODS, WatchedKind
from extender.values.objects.meta import ApiObject, Condition, ObjectMeta
from extender.values.objects.node import Node
from extender.values.objects.pod import Container, Pod, PodSpec, PodStatus, Volume

P = TypeVar("P")

_ENTRY_BYTES: Final = 128
"""What a part in a table takes besides its bytes."""


@final
class SharedParts:
    """Makes equal strings, or equal parts of one field, the same object: those that encode alike must have one type.

    Strings are not left to `sys.intern`, which keeps them for ever in Python 3.12.
    """

    def __init__(self) -> None:
        self._known: dict[bytes | str, Any] = {}
        self._size = 0
        self._encode: Callable[[object], bytes] = msgspec.json.Encoder().encode

    def __call__(self, part: P, transform: Callable[[P], P] | None = None) -> P:
        """Returns the first part that was equal to this one, transformed if need be; a long one is not shared."""
        name = part if isinstance(part, str) else self._encode(part)
        shared: P | None = self._known.get(name)
        if shared is None:
            shared = part if transform is None else transform(part)
            if len(name) > limits.SHARED_PART_BYTES:
                return shared
            self._size += len(name) + _ENTRY_BYTES
            if self._size > limits.SHARED_PARTS:
                self._known.clear()
                self._size = len(name) + _ENTRY_BYTES
            self._known[name] = shared
        return shared


A = TypeVar("A", bound=ApiObject)

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# Most parts of most objects are empty, and share these values, which must not be changed either.
_NO_ITEMS: Final[list[object]] = []
_NO_ENTRIES: Final[dict[str, object]] = {}


def keep_metadata(obj: Any) -> Any:
    """Keeps everything but kubectl's copy, for kinds with few objects."""
    meta = obj.metadata
    if LAST_APPLIED not in meta.annotations:
        return obj
    return replace(obj, metadata=replace(meta, annotations=_annotations(meta)))


@final
class PodKeeper:
    """Shares the parts that pods of a workload have in common: of 5.5 KB a pod, about 0.7 KB remain."""

    def __init__(self) -> None:
        self._strings = SharedParts()
        self._labels, self._annotations, self._owners = SharedParts(), SharedParts(), SharedParts()
        self._spec = _PartsOf(
            "containers",
            "init_containers",
            "overhead",
            "node_selector",
            "affinity",
            "tolerations",
            "topology_spread_constraints",
            "scheduling_gates",
            "volumes",
            "resource_claims",
        )
        self._status = _PartsOf(
            "conditions",
            "container_statuses",
            "init_container_statuses",
            "allocated_resources",
            "resource_claim_statuses",
        )
        # Most pods are equal in all of the spec but the node, and until they start or are refused in all of the status.
        self._specs, self._statuses = SharedParts(), SharedParts()

    def __call__(self, pod: Pod) -> Pod:
        meta, spec, status, same = pod.metadata, pod.spec, pod.status, self._strings
        annotations, labels, owners = _annotations(meta), meta.labels, meta.owner_references
        if spec.node_name:
            annotations, spec = annotations and _read_of_others(annotations), _without_container_ports(spec)
            if status.conditions:
                status = replace(status, conditions=_without_times(status.conditions))
        is_its_own = status.start_time or (status.conditions and not spec.node_name)
        return Pod(
            replace(
                meta,
                namespace=same(meta.namespace),
                labels=self._labels(labels) if labels else _NO_ENTRIES,
                annotations=self._annotations(annotations) if annotations else _NO_ENTRIES,
                owner_references=self._owners(owners) if owners else _NO_ITEMS,
                creation_timestamp=meta.creation_timestamp and same(meta.creation_timestamp),
            ),
            self._shared_spec(spec),
            self._shared_status(status) if is_its_own else self._statuses(status, self._shared_status),
        )

    def _shared_status(self, status: PodStatus) -> PodStatus:
        same = self._strings
        return self._status.share(
            status,
            phase=same(status.phase),
            start_time=status.start_time and same(status.start_time),
            nominated_node_name=status.nominated_node_name and same(status.nominated_node_name),
        )

    def _shared_spec(self, spec: PodSpec) -> PodSpec:
        node = spec.node_name
        if spec.volumes:
            read = [volume for volume in spec.volumes if volume != Volume(name=volume.name)]
            spec = replace(spec, volumes=read)
        if not node:
            return self._specs(spec, self._shared_parts)
        return replace(self._specs(replace(spec, node_name=""), self._shared_parts), node_name=self._strings(node))

    def _shared_parts(self, spec: PodSpec) -> PodSpec:
        same = self._strings
        return self._spec.share(
            spec,
            scheduler_name=spec.scheduler_name and same(spec.scheduler_name),
            priority_class_name=spec.priority_class_name and same(spec.priority_class_name),
            preemption_policy=spec.preemption_policy and same(spec.preemption_policy),
        )


@final
class NodeKeeper:
    """Shares images, capacities and conditions of nodes."""

    def __init__(self) -> None:
        self._strings = SharedParts()
        self._metadata = _PartsOf("annotations", "owner_references")
        self._status = _PartsOf("allocatable", "capacity", "conditions", "declared_features")
        self._image = SharedParts()

    def __call__(self, node: Node) -> Node:
        meta = node.metadata
        created = meta.creation_timestamp and self._strings(meta.creation_timestamp)
        return Node(
            metadata=self._metadata.share(meta, annotations=_annotations(meta), creation_timestamp=created),
            spec=node.spec,
            status=self._status.share(
                node.status,
                images=[self._image(image) for image in node.status.images],
                conditions=_without_times(node.status.conditions),
            ),
        )


@final
class _PartsOf:
    """Some fields of a struct, each with the values seen before."""

    def __init__(self, *fields: str) -> None:
        self._fields = [(field, SharedParts()) for field in fields]

    def share(self, struct: A, **changes: object) -> A:
        """Returns the struct with these fields shared, and the given changes."""
        for field, shared in self._fields:
            part: object = changes[field] if field in changes else getattr(struct, field)
            if part:
                changes[field] = shared(part)
            elif part is not None:
                changes[field] = _NO_ITEMS if isinstance(part, list) else _NO_ENTRIES
        return replace(struct, **changes)


def _annotations(meta: ObjectMeta) -> dict[str, str]:
    if LAST_APPLIED not in meta.annotations:
        return meta.annotations
    return {name: text for name, text in meta.annotations.items() if name != LAST_APPLIED}


def _read_of_others(annotations: dict[str, str]) -> dict[str, str]:
    """Leaves out the longest annotations of a pod with a node beyond the limit."""
    room = int(limits.POD_ANNOTATIONS)
    if sum(map(len, annotations.values())) <= room:
        return annotations
    short = dict[str, str]()
    for name, text in sorted(annotations.items(), key=lambda annotation: len(annotation[1])):
        room -= len(text)
        if room < 0:
            break
        short[name] = text
    return short


def _without_times(conditions: list[Condition]) -> list[Condition]:
    """Leaves out the times of conditions, which differ from object to object: only those of waiting pods are read."""
    return [
        Condition(condition.type, condition.status, condition.reason, condition.message) for condition in conditions
    ]


def _without_container_ports(spec: PodSpec) -> PodSpec:
    """Leaves out the ports of a pod with a node that are not host ports: they keep no pod away."""
    for container in spec.containers:
        if container.ports:
            return replace(spec, containers=[_with_host_ports(container) for container in spec.containers])
    return spec


def _with_host_ports(container: Container) -> Container:
    return replace(container, ports=[port for port in container.ports if port.host_port])


def keeper_of(kind: WatchedKind[Any]) -> Callable[[Any], Any]:
    """Returns what removes from objects of the kind what scheduling does not read; one per reflector."""
    if kind is NODES:
        return NodeKeeper()
    return PodKeeper() if kind is PODS else keep_metadata
