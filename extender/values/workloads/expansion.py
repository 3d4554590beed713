"""What a workload makes: the pods that it lacks, and the objects that these need; and the Jobs of JobSets.

Which of its pods it keeps, and which it replaces, is decided elsewhere.

Upstream: sigs.k8s.io/jobset, api/jobset/v1alpha2; pkg/controllers/jobset_controller.go, constructJobsFromTemplate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, final

import msgspec

from extender.values.objects import decoding
from extender.values.objects.meta import ApiObject, Object, ObjectMeta
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.workloads.daemon_sets import daemon_pods
from extender.values.workloads.deployments import new_replica_set
from extender.values.workloads.stateful_sets import claims_of, pod_of
from extender.values.workloads.templates import pod_from_template

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


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a workload finds in the cluster.

    `owned` has (kind, namespace, name) of a controller -> the pods that it has and keeps; of a Deployment, those of its
    ReplicaSets. `is_taken` tells whether there is a pod of this namespace and name.
    """

    nodes: Sequence[Node]
    owned: Callable[[str, str, str], Sequence[Pod]]
    is_taken: Callable[[str, str], bool]


def objects_of(workload: Object, around: Surroundings) -> Iterator[Object]:
    """Yields the pods that the workload makes now, after the claims and the ReplicaSet that they need."""
    kind, spec = workload["kind"], workload.get("spec") or {}
    if kind == "CronJob":
        # One run of it.
        template = spec.get("jobTemplate") or {}
        metadata = {
            **(template.get("metadata") or {}),
            **{part: workload["metadata"].get(part) for part in ("name", "namespace", "uid")},
        }
        yield from _of_job({**template, "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}, around)
    elif kind == "Job":
        yield from _of_job(workload, around)
    elif kind == "DaemonSet":
        yield from _of_daemon_set(workload, around)
    elif kind == "StatefulSet":
        yield from _of_stateful_set(workload, around)
    elif kind == "Deployment":
        yield from _of_deployment(workload, around)
    else:
        has = len(around.owned(kind, _namespace(workload), workload["metadata"]["name"]))
        yield from _replicas(workload, spec.get("replicas", 1) - has, around)


def _of_deployment(deployment: Object, around: Surroundings) -> Iterator[Object]:
    namespace, name = _namespace(deployment), deployment["metadata"]["name"]
    replicas = deployment["spec"].get("replicas", 1)
    replica_set = new_replica_set(deployment, replicas, revision=1)
    code = replica_set["metadata"]["name"].removeprefix(f"{name}-")
    replica_set["metadata"] |= {"namespace": namespace, "uid": f"{deployment['metadata']['uid']}-{code}"}
    yield replica_set
    has = len(around.owned("Deployment", namespace, name))
    yield from _replicas(replica_set, replicas - has, around, called=name)


def _of_stateful_set(stateful_set: Object, around: Surroundings) -> Iterator[Object]:
    spec, namespace = stateful_set["spec"], _namespace(stateful_set)
    first = (spec.get("ordinals") or {}).get("start", 0)
    for ordinal in range(first, first + spec.get("replicas", 1)):
        pod = pod_of(stateful_set, ordinal)
        if not around.is_taken(namespace, pod["metadata"]["name"]):
            for claim in claims_of(stateful_set, ordinal):
                yield _placed(claim, namespace)
            yield _placed(pod, namespace)


def _of_job(job: Object, around: Surroundings) -> Iterator[Object]:
    spec, namespace, name = job.get("spec") or {}, _namespace(job), job["metadata"]["name"]
    if spec.get("suspend"):
        return
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    num_pods = parallelism if completions is None else min(parallelism, completions)
    for pod in _replicas(job, num_pods - len(around.owned("Job", namespace, name)), around):
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **dict.fromkeys(_JOB_NAME_LABELS, name)}
        yield pod


def _of_daemon_set(daemon_set: Object, around: Surroundings) -> Iterator[Object]:
    """A pod for each node that has none of it yet, and that lets one run there."""
    namespace = _namespace(daemon_set)
    has = {pod.spec.node_name for pod in around.owned("DaemonSet", namespace, daemon_set["metadata"]["name"])}
    for node, pod in daemon_pods(daemon_set, around.nodes):
        if node.name not in has and not around.is_taken(namespace, pod["metadata"]["name"]):
            yield _placed(pod, namespace)


def _replicas(owner: Object, number: int, around: Surroundings, called: str = "") -> Iterator[Object]:
    """So many pods of the owner's template, under free names that begin as given, or with the owner's."""
    namespace, base = _namespace(owner), called or owner["metadata"]["name"]
    template = (owner.get("spec") or {}).get("template") or {}
    free = (name for place in count(1) if not around.is_taken(namespace, name := f"{base}-{place}"))
    for name in islice(free, max(number, 0)):
        pod = pod_from_template(template, owner)
        pod["metadata"]["name"] = name
        yield _placed(pod, namespace)


def _placed(obj: Object, namespace: str) -> Object:
    obj["metadata"]["namespace"] = namespace
    return obj


def _namespace(obj: Object) -> str:
    return obj["metadata"].get("namespace") or "default"


JOB_SET: Final = ("jobset.x-k8s.io/v1alpha2", "JobSet")
"""The apiVersion and the kind of JobSets."""
_LABELS: Final = "jobset.sigs.k8s.io/"


class _TemplateOfJobs(ApiObject, frozen=True):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class _ReplicatedJob(ApiObject, frozen=True):
    name: str = ""
    replicas: int = 1
    template: _TemplateOfJobs = msgspec.field(default_factory=_TemplateOfJobs)


class _JobSetSpec(ApiObject, frozen=True):
    suspend: bool = False
    replicated_jobs: list[_ReplicatedJob] = msgspec.field(default_factory=list)


class _JobSet(ApiObject, frozen=True):
    metadata: ObjectMeta
    spec: _JobSetSpec = msgspec.field(default_factory=_JobSetSpec)


def jobs_of(job_set: Object) -> Iterator[Object]:
    """Yields all Jobs of a JobSet, in whichever order they start. Raises DecodeError."""
    decoded = decoding.convert(_JobSet, job_set)
    name, namespace = decoded.metadata.name, decoded.metadata.namespace
    for replicated in decoded.spec.replicated_jobs:
        for index in range(replicated.replicas):
            labels = {
                f"{_LABELS}jobset-name": name,
                f"{_LABELS}replicatedjob-name": replicated.name,
                f"{_LABELS}replicatedjob-replicas": str(replicated.replicas),
                f"{_LABELS}job-index": str(index),
            }
            spec = replicated.template.spec
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": f"{name}-{replicated.name}-{index}",
                    **({"namespace": namespace} if namespace else {}),
                },
                "spec": {
                    **spec,
                    "suspend": decoded.spec.suspend or spec.get("suspend", False),
                    "template": _labelled(spec.get("template"), labels),
                },
            }


def _labelled(template: Any, labels: dict[str, str]) -> Any:
    """Returns the pod template with further labels; anything but a mapping is returned unchanged, and refused later."""
    if not isinstance(template, dict) or not isinstance(metadata := template.get("metadata") or {}, dict):
        return template
    template_labels = metadata.get("labels") or {}
    return (
        {**template, "metadata": {**metadata, "labels": {**template_labels, **labels}}}
        if isinstance(template_labels, dict)
        else template
    )
