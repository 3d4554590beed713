"""JobSets: the Jobs of which they are made.

Upstream: sigs.k8s.io/jobset, api/jobset/v1alpha2; pkg/controllers/jobset_controller.go, constructJobsFromTemplate.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from extender.values.objects import decoding
from extender.values.objects.meta import ApiObject, Object, ObjectMeta

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
    found = decoding.convert(_JobSet, job_set)
    name, namespace = found.metadata.name, found.metadata.namespace
    for each in found.spec.replicated_jobs:
        for index in range(each.replicas):
            labels = {
                f"{_LABELS}jobset-name": name,
                f"{_LABELS}replicatedjob-name": each.name,
                f"{_LABELS}replicatedjob-replicas": str(each.replicas),
                f"{_LABELS}job-index": str(index),
            }
            spec = each.template.spec
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": f"{name}-{each.name}-{index}", **({"namespace": namespace} if namespace else {})},
                "spec": {
                    **spec,
                    "suspend": found.spec.suspend or spec.get("suspend", False),
                    "template": _labelled(spec.get("template"), labels),
                },
            }


def _labelled(template: Any, labels: dict[str, str]) -> Any:
    """Returns the pod template with further labels; what is none as it is, for the Job's reader to refuse."""
    if not isinstance(template, dict) or not isinstance(metadata := template.get("metadata") or {}, dict):
        return template
    own = metadata.get("labels") or {}
    return {**template, "metadata": {**metadata, "labels": {**own, **labels}}} if isinstance(own, dict) else template
