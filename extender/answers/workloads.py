"""Workloads as their controllers understand them: which pods one makes, besides those that it has already and keeps.

Which of them it keeps is said in `rollouts`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, final

from extender.embedded.controllers.deployments import HASH_LABEL, template_hash
from extender.embedded.controllers.stateful_pods import INDEX_LABEL, POD_NAME_LABEL, claims_of
from extender.objects import decoding
from extender.objects.node import Node
from extender.objects.node_selectors import NAME_FIELD, required_node_affinity
from extender.objects.pod import Pod, Toleration
from extender.objects.tolerations import find_untolerated_taint

Object = dict[str, Any]

WORKLOADS: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "ReplicationController"),
)
"""(apiVersion, kind) of what makes pods."""

_JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_ALWAYS_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""By pods of DaemonSets."""
_NETWORK_UNAVAILABLE: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")
"""By those that use the node's own network, too.

Upstream: pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations (v1.36.2).
"""


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a workload finds in the cluster."""

    nodes: Sequence[Node]
    owned: Callable[[str, str, str], Sequence[Pod]]
    """(kind, namespace, name) of a controller -> the pods that it has already and keeps; of a Deployment, those of its ReplicaSets."""
    is_taken: Callable[[str, str], bool]
    """Whether there is a pod of this namespace and name."""


def objects_of(workload: Object, around: Surroundings) -> Iterator[Object]:
    """The pods that the workload makes now, and before them the objects that they need: claims, and a Deployment's ReplicaSet."""
    kind, spec = workload["kind"], workload.get("spec") or {}
    if kind == "CronJob":
        # One run of it.
        template = spec.get("jobTemplate") or {}
        metadata = {**(template.get("metadata") or {}), **{part: workload["metadata"].get(part) for part in ("name", "namespace", "uid")}}
        yield from _pods_of_job({"apiVersion": "batch/v1", "kind": "Job", **template, "metadata": metadata}, around)
    elif kind == "Job":
        yield from _pods_of_job(workload, around)
    elif kind == "DaemonSet":
        yield from _pods_of_daemon_set(workload, around)
    elif kind == "StatefulSet":
        yield from _of_stateful_set(workload, around)
    elif kind == "Deployment":
        yield from _of_deployment(workload, around)
    else:
        yield from _replicas(workload, spec.get("replicas", 1), around)


def _replicas(owner: Object, wanted: int, around: Surroundings, called: str = "", has: int | None = None) -> Iterator[Object]:
    """As many pods as are missing, under names that are free.

    Arguments:
        called: what their names begin with; the owner's name if empty.
        has: how many there are; None to look.
    """
    namespace, base = _namespace(owner), called or owner["metadata"]["name"]
    if has is None:
        has = len(around.owned(owner["kind"], namespace, owner["metadata"]["name"]))
    free = (name for number in count(1) if not around.is_taken(namespace, name := f"{base}-{number}"))
    for name in islice(free, max(wanted - has, 0)):
        yield _pod(owner, name)


def _of_deployment(deployment: Object, around: Surroundings) -> Iterator[Object]:
    spec, metadata = deployment["spec"], deployment["metadata"]
    template, selector = spec["template"], spec.get("selector") or {}
    code = template_hash(template, None)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: code}
    replica_set: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{code}",
            "namespace": _namespace(deployment),
            "uid": f"{metadata['uid']}-{code}",
            "labels": labels,
            "ownerReferences": [_reference(deployment)],
        },
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: code}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    yield replica_set
    has = len(around.owned("Deployment", _namespace(deployment), metadata["name"]))
    yield from _replicas(replica_set, spec.get("replicas", 1), around, metadata["name"], has)


def _of_stateful_set(stateful_set: Object, around: Surroundings) -> Iterator[Object]:
    spec, metadata = stateful_set["spec"], stateful_set["metadata"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    for ordinal in range(first, first + spec.get("replicas", 1)):
        name = f"{metadata['name']}-{ordinal}"
        if around.is_taken(_namespace(stateful_set), name):
            continue
        claims = claims_of(stateful_set, ordinal)
        for claim in claims:
            claim["metadata"]["namespace"] = _namespace(stateful_set)
            yield claim
        pod = _pod(stateful_set, name)
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal)}
        mine = {
            template["metadata"]["name"]: claim["metadata"]["name"]
            for template, claim in zip(spec.get("volumeClaimTemplates") or (), claims, strict=True)
        }
        others = [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") not in mine]
        volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in mine.items()]
        if volumes or others:
            pod["spec"] = {**pod["spec"], "volumes": [*volumes, *others]}
        yield pod


def _pods_of_job(job: Object, around: Surroundings) -> Iterator[Object]:
    spec, name = job.get("spec") or {}, job["metadata"]["name"]
    if spec.get("suspend"):
        return
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    wanted = parallelism if completions is None else min(parallelism, completions)
    for pod in _replicas(job, wanted, around):
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **dict.fromkeys(_JOB_NAME_LABELS, name)}
        yield pod


def _pods_of_daemon_set(daemon_set: Object, around: Surroundings) -> Iterator[Object]:
    """A pod for each node that it has none on, and that lets it run there.

    Upstream: pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod (v1.36.2).
    """
    namespace, name = _namespace(daemon_set), daemon_set["metadata"]["name"]
    has = {pod.spec.node_name for pod in around.owned("DaemonSet", namespace, name)}
    template = _pod(daemon_set, name)
    spec = template["spec"]
    pod = decoding.convert(Pod, template)
    always = [*_ALWAYS_TOLERATED, *([_NETWORK_UNAVAILABLE] if pod.spec.host_network else [])]
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *({"key": key, "operator": "Exists", "effect": effect} for key, effect in always),
    ]
    tolerations = [*pod.spec.tolerations, *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in always)]
    for node in around.nodes:
        if node.name in has or not may_run_on(node, pod, tolerations) or around.is_taken(namespace, f"{name}-{node.name}"):
            continue
        yield {
            **template,
            "metadata": {**template["metadata"], "name": f"{name}-{node.name}"},
            "spec": {**spec, "affinity": _pinned(spec.get("affinity") or {}, node.name)},
        }


def may_run_on(node: Node, pod: Pod, tolerations: Sequence[Toleration]) -> bool:
    """Whether a DaemonSet puts a pod like this one, with these tolerations, on the node."""
    return required_node_affinity(pod).matches(node) and find_untolerated_taint(node.spec.taints, tolerations) is None


def _pinned(affinity: Mapping[str, Any], node: str) -> Object:
    """Upstream: daemonset_util.go, ReplaceDaemonSetPodNodeNameNodeAffinity."""
    on_node = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def _pod(owner: Object, name: str) -> Object:
    """A pod of the owner's template."""
    template = (owner.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    kept = {part: dict(metadata[part]) for part in ("labels", "annotations") if metadata.get(part)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "name": name, "namespace": _namespace(owner), "ownerReferences": [_reference(owner)]},
        "spec": dict(template.get("spec") or {}),
    }


def _reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _namespace(obj: Object) -> str:
    return obj["metadata"].get("namespace") or "default"
