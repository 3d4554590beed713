"""The ReplicaSets of a Deployment: the revision of each, and its update.

Upstream: pkg/controller/deployment, sync.go, util/deployment_util.go.
"""

from collections.abc import Iterable

from extender.rules.api_resources import Object
from extender.values.workloads.deployments import DESIRED_REPLICAS, MAX_REPLICAS, NOT_COPIED, REVISION
from extender.values.workloads.templates import HASH_LABEL


def same_template(replica_set: Object, deployment: Object) -> bool:
    """Returns whether the templates are equal, apart from the hash label (EqualIgnoreHash)."""
    mine, theirs = replica_set["spec"].get("template") or {}, deployment["spec"].get("template") or {}
    return _without_hash(mine) == _without_hash(theirs)


def updated_replica_set(
    replica_set: Object, deployment: Object, replicas: int, desired_and_max: tuple[int, int], revision: int | None
) -> Object | None:
    """Returns the ReplicaSet with these replicas and annotations; None if it has them already."""
    annotations = dict(replica_set["metadata"].get("annotations") or {})
    if replicas or revision is not None:
        annotations |= {DESIRED_REPLICAS: str(desired_and_max[0]), MAX_REPLICAS: str(desired_and_max[1])}
    spec = {**replica_set["spec"], "replicas": replicas}
    if revision is not None:
        annotations[REVISION] = str(revision)
        copied = deployment["metadata"].get("annotations") or {}
        annotations |= {name: value for name, value in copied.items() if name not in NOT_COPIED}
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if seconds != spec.get("minReadySeconds", 0):
            spec["minReadySeconds"] = seconds
    if spec == replica_set["spec"] and annotations == (replica_set["metadata"].get("annotations") or {}):
        return None
    return {**replica_set, "metadata": {**replica_set["metadata"], "annotations": annotations}, "spec": spec}


def revision_number(replica_set: Object) -> int:
    """Returns the ReplicaSet's revision of the Deployment; 0 without the annotation."""
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(replica_sets: Iterable[Object]) -> int:
    return max(map(revision_number, replica_sets), default=0) + 1


def desired_replicas(replica_set: Object) -> int | None:
    """Returns the Deployment's replicas when the ReplicaSet was last scaled; None without the annotation."""
    text = (replica_set["metadata"].get("annotations") or {}).get(DESIRED_REPLICAS, "")
    return int(text) if text.isdecimal() else None


def is_in_use(replica_set: Object) -> bool:
    """Returns whether the ReplicaSet has replicas, or may still get some."""
    status = replica_set.get("status") or {}
    behind = status.get("observedGeneration", 0) < replica_set["metadata"].get("generation", 0)
    return bool(replica_set["spec"].get("replicas", 1) or status.get("replicas") or behind)


def _without_hash(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": {**metadata, "labels": labels}}
