"""What a workload does with the pods that it has: which are surplus, and which are of another template and are
replaced.

Upstream: pkg/controller/deployment/rolling.go; pkg/controller/replicaset/replica_set.go, getPodsToDelete;
pkg/controller/statefulset/ stateful_set_control.go.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import msgspec

from extender.values import limits
from extender.values.objects import decoding
from extender.values.objects.meta import Object
from extender.values.objects.pod import DEFAULT_SCHEDULER_NAME, Container, Pod, PodSpec, Volume
from extender.values.objects.quantity import quantity_of
from extender.values.workloads.deployments import DELETION_COST, deletion_rank, fenceposts, hash_of
from extender.values.workloads.stateful_sets import (
    INDEX_LABEL,
    POD_NAME_LABEL,
    REVISION_LABEL,
    ordinal_of,
    revision_name,
)
from extender.values.workloads.templates import HASH_LABEL


@final
@dataclass(frozen=True, slots=True)
class Rollout:
    """Pods of an old template are replaced by pods of the new one."""

    name: str
    how: Literal["rolling", "recreate", "ordered"]
    """rolling: new and old pods in turn, within surge and unavailable; recreate: all old pods are deleted first;
    ordered: one after the other, the highest ordinal first, each new pod under the name of the old one.
    """
    replicas: int
    unchanged: tuple[Pod, ...]
    """Pods that stay: those of the new template, and those that it is not to replace yet."""
    old: tuple[Pod, ...]
    """The others; those that are deleted first come first."""
    surge: int = 0
    unavailable: int = 0
    in_turn: bool = True
    """Of ordered ones: no pod is replaced before all have a node."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of the pods that a workload has."""

    surplus: tuple[Pod, ...] = ()
    """Pods that are deleted, since there are too many."""
    rollout: Rollout | None = None
    notes: tuple[str, ...] = ()

    @property
    def leaving(self) -> tuple[Pod, ...]:
        """All pods that are deleted sooner or later."""
        return (*self.surplus, *(self.rollout.old if self.rollout is not None else ()))


def plan_of(workload: Object, owned: Sequence[Pod]) -> Plan:
    """Returns what the workload, as it is written now, does with the pods that it has."""
    kind = workload["kind"]
    if not owned:
        return Plan()
    if kind == "StatefulSet":
        return _of_stateful_set(workload, owned)
    if kind == "Job":
        spec = workload.get("spec") or {}
        parallelism = 0 if spec.get("suspend") else spec.get("parallelism", 1)
        return Plan(tuple(in_deletion_order(owned)[: max(len(owned) - parallelism, 0)]))
    if kind in ("Deployment", "ReplicaSet", "ReplicationController"):
        return _of_replicas(workload, owned)
    if kind == "DaemonSet":
        _, notes = _of_another_template(workload, owned)
        return Plan(
            notes=notes
            and (*notes, f"{_name(workload)}: an update of its pods is not simulated; they stay as they are")
        )
    return Plan()


def _of_replicas(workload: Object, owned: Sequence[Pod]) -> Plan:
    spec = workload["spec"]
    replicas = spec.get("replicas", 1)
    old, notes = _of_another_template(workload, owned)
    in_order = in_deletion_order(owned)
    surplus = tuple(in_order[: max(len(owned) - replicas, 0)])
    if not old:
        return Plan(surplus, notes=notes)
    if workload["kind"] != "Deployment" or spec.get("paused"):
        why = "it is paused" if spec.get("paused") else f"a {workload['kind']} does not change pods that it has"
        return Plan(surplus, notes=(*notes, f"{_name(workload)}: these pods stay as they are: {why}"))
    how: Literal["rolling", "recreate"] = (
        "recreate" if (spec.get("strategy") or {}).get("type") == "Recreate" else "rolling"
    )
    surge, unavailable = fenceposts(spec)
    unchanged = tuple(pod for pod in in_order if pod.uid not in old)
    replaced = tuple(pod for pod in in_order if pod.uid in old)
    return Plan((), Rollout(_name(workload), how, replicas, unchanged, replaced, surge, unavailable), notes)


def _of_stateful_set(workload: Object, owned: Sequence[Pod]) -> Plan:
    spec, name = workload["spec"], workload["metadata"]["name"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    by_ordinal = {ordinal: pod for pod in owned if (ordinal := ordinal_of(pod.name, name)) is not None}
    ordinals = range(first, first + spec.get("replicas", 1))
    surplus = tuple(by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in ordinals)
    stays = {ordinal: pod for ordinal, pod in by_ordinal.items() if ordinal in ordinals}
    old, notes = _of_another_template(workload, list(stays.values()))
    strategy = spec.get("updateStrategy") or {}
    partition = max((strategy.get("rollingUpdate") or {}).get("partition", 0), 0)
    on_delete = strategy.get("type") == "OnDelete"
    waits = [pod for ordinal, pod in stays.items() if pod.uid in old and (on_delete or ordinal < partition)]
    if waits:
        why = "its updateStrategy is OnDelete" if on_delete else f"its partition is {partition}"
        is_one = len(waits) == 1
        stays_as_is = f"{waits[0].key} stays as it is" if is_one else f"{len(waits)} of these pods stay as they are"
        notes = (*notes, f"{_name(workload)}: {stays_as_is} until {'it is' if is_one else 'they are'} deleted: {why}")
    replaced_uids = old - {pod.uid for pod in waits}
    replaced = tuple(stays[ordinal] for ordinal in sorted(stays, reverse=True) if stays[ordinal].uid in replaced_uids)
    if not replaced:
        return Plan(surplus, notes=notes)
    unchanged = tuple(pod for pod in stays.values() if pod.uid not in replaced_uids)
    in_turn = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
    rollout = Rollout(_name(workload), "ordered", len(ordinals), unchanged, replaced, in_turn=in_turn)
    return Plan(surplus, rollout, notes)


def _of_another_template(workload: Object, owned: Sequence[Pod]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The UIDs of the pods that are not of the template, and notes about them."""
    template, kind = workload["spec"].get("template") or {}, workload["kind"]
    # This recognizes the pods of our own controllers; the hashes of other clusters are different.
    label = None
    if kind == "Deployment":
        label = HASH_LABEL, hash_of(workload)
    elif kind == "StatefulSet":
        label = REVISION_LABEL, revision_name(workload)
    claimed = workload["spec"].get("volumeClaimTemplates") or ()
    claims = {f"volume {(claim.get('metadata') or {}).get('name')}" for claim in claimed}
    old: set[str] = set()
    changed: dict[str, None] = {}
    added: dict[str, None] = {}
    for pod in owned:
        if label is not None and pod.labels.get(label[0]) == label[1]:
            continue
        differing, more = _differences(template, pod, is_pinned=kind == "DaemonSet")
        added.update(dict.fromkeys(part for part in more if part not in claims))
        if differing:
            old.add(pod.uid)
            changed.update(dict.fromkeys(differing))
    notes = []
    if changed:
        few = f"{len(old)} of its {len(owned)} pods" if len(owned) > 1 else "its pod"
        notes.append(
            f"{_name(workload)}: {few} {'is' if len(old) == 1 else 'are'} not of this template ({_listed(changed)})"
        )
    if added:
        notes.append(
            f"{_name(workload)}: what its pods have in addition to the template counts as added on admission "
            f"({_listed(added)})"
        )
    return frozenset(old), tuple(notes)


def in_deletion_order(pods: Sequence[Pod]) -> list[Pod]:
    """Returns the pods in the order in which a ReplicaSet deletes them.

    Ages count as they are and not by their order of magnitude, since there is no clock here; restarts do not count.
    """
    crowd = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    by_age = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
    return sorted(
        by_age,
        key=lambda pod: deletion_rank(
            node=pod.spec.node_name,
            phase=pod.status.phase,
            is_ready=("Ready", "True") in [(condition.type, condition.status) for condition in pod.status.conditions],
            cost=pod.annotations.get(DELETION_COST, "0"),
            neighbours=crowd[pod.spec.node_name],
        ),
    )


def _name(workload: Object) -> str:
    return f"{workload['kind']} {workload['metadata'].get('namespace') or 'default'}/{workload['metadata']['name']}"


def _listed(parts: Mapping[str, None]) -> str:
    names, more = list(parts), len(parts) - limits.ROLLOUT_DIFFERENCES
    return ", ".join(names[: limits.ROLLOUT_DIFFERENCES]) + (f" and {more} more" if more > 0 else "")


_LABELS_OF_CONTROLLERS: Final = frozenset(
    (
        HASH_LABEL,
        REVISION_LABEL,
        POD_NAME_LABEL,
        INDEX_LABEL,
        "pod-template-generation",
        "batch.kubernetes.io/job-name",
        "job-name",
    )
)
"""Labels that controllers put on pods."""
_SERVICE_ACCOUNT_VOLUME: Final = "kube-api-access-"
_ALWAYS_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OFTEN_ADDED: Final = ("label ", "container ", "image ", "request ", "toleration ", "volume ", "overhead ")
"""What admission may add to pods. (A node selector that only a pod has was taken out of the template.)"""


def _differences(template: Object, pod: Pod, *, is_pinned: bool) -> tuple[list[str], list[str]]:
    """(parts of the pod that differ, parts that only it has and that admission may have added), as far as scheduling
    looks at them. With `is_pinned` it is a DaemonSet's, whose controller sets node affinity and many tolerations.
    """
    metadata = template.get("metadata") or {}
    spec = decoding.convert(PodSpec, template.get("spec") or {})
    template_parts = dict(_parts(metadata.get("labels") or {}, spec, is_pinned=is_pinned))
    pod_parts = dict(_parts(pod.labels, pod.spec, is_pinned=is_pinned))
    more = [part for part in pod_parts if part not in template_parts]
    added = [part for part in more if part.startswith(_OFTEN_ADDED)]
    changed = [part for part, value in template_parts.items() if pod_parts.get(part) != value]
    return [*changed, *(part for part in more if part not in added)], added


def _parts(labels: dict[str, str], spec: PodSpec, *, is_pinned: bool) -> Iterator[tuple[str, object]]:
    yield "scheduler name", spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    for name, text in labels.items():
        if name not in _LABELS_OF_CONTROLLERS:
            yield f"label {name}", text
    for container in (*spec.init_containers, *spec.containers):
        yield from _parts_of(container)
    for resource, amount in spec.overhead.items():
        yield f"overhead {resource}", quantity_of(amount)
    for name, text in (spec.node_selector or {}).items():
        yield f"node selector {name}", text
    if spec.affinity is not None and not is_pinned:
        yield "affinity", _json(spec.affinity)
    for toleration in spec.tolerations:
        if not is_pinned and toleration.key not in _ALWAYS_TOLERATED:
            yield f"toleration {toleration.key or 'of everything'} {toleration.effect}".rstrip(), _json(toleration)
    if spec.topology_spread_constraints:
        yield "spread constraints", [_json(constraint) for constraint in spec.topology_spread_constraints]
    for volume in spec.volumes:
        # Claims of a StatefulSet are only in its pods, and volumes of other kinds are not kept.
        is_seen = volume != Volume(name=volume.name) and volume.persistent_volume_claim is None
        if is_seen and not volume.name.startswith(_SERVICE_ACCOUNT_VOLUME):
            yield f"volume {volume.name}", _json(volume)
        elif volume.persistent_volume_claim is not None:
            yield f"volume {volume.name}", volume.persistent_volume_claim.claim_name
    for claim in spec.resource_claims:
        yield f"resource claim {claim.name}", _json(claim)
    if spec.priority_class_name:
        yield "priority class", spec.priority_class_name
    if spec.host_network:
        yield "host network", True


def _parts_of(container: Container) -> Iterator[tuple[str, object]]:
    name, resources = container.name, container.resources
    yield f"container {name}", container.restart_policy
    yield f"image {name}", container.image
    for resource, amount in {**resources.limits, **resources.requests}.items():
        yield f"request {resource} of {name}", quantity_of(amount)
    for port in container.ports:
        if port.host_port:
            yield f"host port {port.host_port} of {name}", (port.host_ip, port.protocol or "TCP")


def _json(value: object) -> Any:
    return _without_merged_keys(msgspec.to_builtins(value))


def _without_merged_keys(value: Any) -> Any:
    """The value without what the API server merges into the label selectors of a pod with matchLabelKeys."""
    if isinstance(value, list):
        return [_without_merged_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    read = {key: _without_merged_keys(item) for key, item in value.items()}
    keys = {*(read.get("matchLabelKeys") or ()), *(read.get("mismatchLabelKeys") or ())}
    selector = read.get("labelSelector")
    if keys and isinstance(selector, dict):
        expressions = [item for item in selector.get("matchExpressions") or () if item.get("key") not in keys]
        rest = {key: item for key, item in selector.items() if key != "matchExpressions"}
        read["labelSelector"] = rest | ({"matchExpressions": expressions} if expressions else {})
    return read
