"""Objects as controllers remember them: identity, owners, and the fields of pods and nodes that they decide by.

With 150,000 pods a controller cannot hold every object as dictionaries. These values share the bytes of the store and
are decoded in full (`content`) only when an object is about to be written.
"""

from collections.abc import Mapping
from typing import Any, Final, final
from weakref import WeakValueDictionary

import msgspec
import orjson

from extender.rules.api_resources import NODES, PODS, Object, Resource
from extender.values.objects import decoding
from extender.values.objects.meta import ApiObject, Condition
from extender.values.objects.node import Taint

Key = tuple[str, str]
"""(namespace, name) of an object among those of its resource; the namespace is empty for resources without one."""

FINISHED: Final = ("Succeeded", "Failed")
RUNS_FOR: Final = "reprieve.dev/runs-for"
"""The annotation of a pod that succeeds by itself after a while: `5s`, `1m30s`."""


@final
class Labels:
    """A set of labels. Equal sets are the same object and thus cheap keys."""

    __slots__ = ("__weakref__", "by_name")

    def __init__(self, by_name: Mapping[str, str]) -> None:
        self.by_name: Final = by_name


class ObservedOwner(ApiObject, frozen=True):
    """metav1.OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Observed(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An object of any kind as of its latest change. `deleted` is its deletion timestamp, or empty."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    labels: Labels
    owners: tuple[ObservedOwner, ...]
    finalizers: tuple[str, ...]
    created: str
    deleted: str
    raw: bytes

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def controller(self) -> ObservedOwner | None:
        """Returns the owner that controls the object (controller_ref.go, GetControllerOf)."""
        return next((owner for owner in self.owners if owner.controller), None)

    def content(self) -> Object:
        """Returns a new copy of the whole object."""
        return {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **orjson.loads(self.raw)}


@final
class ObservedPod(Observed, frozen=True, gc=False, kw_only=True):
    """A pod.

    Attributes:
        is_victim: whether its condition DisruptionTarget is True.
        grace: the seconds of grace of its deletion; None unless it is being deleted.
        runs_for: the annotation RUNS_FOR.
        wants_objects: whether it has ResourceClaim templates or ephemeral volumes, for which objects are made.
        group: the name of its PodGroup; empty if it is in none.
    """

    node: str
    phase: str
    is_ready: bool
    is_victim: bool
    grace: int | None
    runs_for: str
    wants_objects: bool
    resource_claims: tuple[str, ...]
    group: str

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def is_active(self) -> bool:
        """Returns True if the pod is neither finished nor being deleted (controller_utils.go, IsPodActive)."""
        return not self.deleted and self.phase not in FINISHED


class NodeTaint(Taint, frozen=True):
    """v1.Taint with its timeAdded."""

    time_added: str | None = None


@final
class ObservedNode(Observed, frozen=True, gc=False, kw_only=True):
    """A node, with the status of each of its conditions."""

    unschedulable: bool
    taints: tuple[NodeTaint, ...]
    conditions: Mapping[str, str]


@final
class Reader:
    """Decodes the bytes of the store into Observed objects."""

    def __init__(self) -> None:
        self._labels: WeakValueDictionary[frozenset[tuple[str, str]], Labels] = WeakValueDictionary()
        self._no_labels = Labels({})

    def read(self, resource: Resource, raw: bytes) -> Observed:
        """Returns the decoded object. Raises DecodeError if the bytes hold no such object."""
        if resource is PODS:
            return self.pod(raw)
        if resource is NODES:
            return self._node(raw)
        meta = decoding.decode(_Any, raw).metadata
        return Observed(**self._of_meta(resource, meta, raw))

    def pod(self, raw: bytes) -> ObservedPod:
        pod = decoding.decode(_Pod, raw)
        spec, status = pod.spec, pod.status
        true = [condition.type for condition in status.conditions if condition.status == "True"]
        claims: tuple[str, ...] = ()
        if spec.resource_claims:
            statuses = {claim.name: claim.resource_claim_name for claim in status.resource_claim_statuses}
            names = (claim.resource_claim_name or statuses.get(claim.name, "") for claim in spec.resource_claims)
            claims = tuple(dict.fromkeys(name for name in names if name))
        if status.extended_resource_claim_status is not None:
            claims = (*claims, status.extended_resource_claim_status.resource_claim_name)
        return ObservedPod(
            **self._of_meta(PODS, pod.metadata, raw),
            node=spec.node_name,
            phase=status.phase,
            is_ready="Ready" in true,
            is_victim="DisruptionTarget" in true,
            grace=pod.metadata.deletion_grace_period_seconds,
            runs_for=pod.metadata.annotations.get(RUNS_FOR, "") if pod.metadata.annotations else "",
            wants_objects=any(claim.resource_claim_template_name for claim in spec.resource_claims)
            or any(volume.ephemeral is not None for volume in spec.volumes),
            resource_claims=claims,
            group=spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else "",
        )

    def _node(self, raw: bytes) -> ObservedNode:
        node = decoding.decode(_Node, raw)
        return ObservedNode(
            **self._of_meta(NODES, node.metadata, raw),
            unschedulable=node.spec.unschedulable,
            taints=tuple(node.spec.taints),
            conditions={condition.type: condition.status for condition in node.status.conditions},
        )

    def _of_meta(self, resource: Resource, meta: "_Meta", raw: bytes) -> dict[str, Any]:
        return {
            "resource": resource,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "labels": self.labels(meta.labels) if meta.labels else self._no_labels,
            "owners": tuple(meta.owner_references),
            "finalizers": tuple(meta.finalizers),
            "created": meta.creation_timestamp or "",
            "deleted": meta.deletion_timestamp or "",
            "raw": raw,
        }

    def labels(self, by_name: Mapping[str, str]) -> Labels:
        """Returns the one Labels object of this set of labels."""
        key = frozenset(by_name.items())
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = Labels(by_name)
        return labels


class _Meta(ApiObject, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[ObservedOwner] = []  # noqa: RUF012 - msgspec copies empty defaults
    finalizers: list[str] = []  # noqa: RUF012
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _Any(ApiObject, frozen=True, gc=False):
    metadata: _Meta


class _PodClaim(ApiObject, frozen=True):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class _Ephemeral(ApiObject, frozen=True, gc=False):
    """Only its presence matters."""


class _Volume(ApiObject, frozen=True, gc=False):
    ephemeral: _Ephemeral | None = None


class _SchedulingGroup(ApiObject, frozen=True):
    pod_group_name: str = ""


class _PodSpec(ApiObject, frozen=True):
    node_name: str = ""
    resource_claims: list[_PodClaim] = []  # noqa: RUF012
    volumes: list[_Volume] = []  # noqa: RUF012
    scheduling_group: _SchedulingGroup | None = None


class _PodStatus(ApiObject, frozen=True):
    phase: str = ""
    conditions: list[Condition] = []  # noqa: RUF012
    resource_claim_statuses: list[_PodClaim] = []  # noqa: RUF012
    extended_resource_claim_status: _PodClaim | None = None


class _Pod(ApiObject, frozen=True, gc=False):
    metadata: _Meta
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _NodeSpec(ApiObject, frozen=True, gc=False):
    unschedulable: bool = False
    taints: list[NodeTaint] = []  # noqa: RUF012


class _NodeStatus(ApiObject, frozen=True):
    conditions: list[Condition] = []  # noqa: RUF012


class _Node(ApiObject, frozen=True, gc=False):
    metadata: _Meta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()
