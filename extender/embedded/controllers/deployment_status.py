"""What a Deployment says of itself, as `kubectl rollout status` reads it.

Upstream: pkg/controller/deployment, sync.go, progress.go; util/deployment_util.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from extender.embedded.controllers.conditions import condition, parsed_time, timestamp, with_condition
from extender.embedded.resources import Object
from extender.workloads.availability import fenceposts

NO_DEADLINE: Final = 2**31 - 1
_NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
_NEW_CREATED: Final = "NewReplicaSetCreated"
_UPDATED: Final = "ReplicaSetUpdated"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_PAUSED: Final = "DeploymentPaused"
_RESUMED: Final = "DeploymentResumed"


def deployment_status(deployment: Object, new: Object | None, replica_sets: Sequence[Object], now: datetime) -> tuple[Object, float | None]:
    """The status that follows from the ReplicaSets, and after how many seconds the progress deadline passes.

    Arguments:
        new: the ReplicaSet of the current template, also among `replica_sets`, if it exists.
    """
    old_status = deployment.get("status") or {}
    updated = (new.get("status") or {}).get("replicas", 0) if new is not None else 0
    available = _sum(replica_sets, "availableReplicas")
    counts = {
        "replicas": _sum(replica_sets, "replicas"),
        "updatedReplicas": updated,
        "readyReplicas": _sum(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(each["spec"].get("replicas", 1) for each in replica_sets) - available, 0),
    }
    status = {name: number for name, number in counts.items() if number}
    status["terminatingReplicas"] = _sum(replica_sets, "terminatingReplicas")
    status["observedGeneration"] = deployment["metadata"].get("generation", 0)
    if old_status.get("collisionCount"):
        status["collisionCount"] = old_status["collisionCount"]
    conditions = _with_availability(old_status.get("conditions") or [], deployment, available, now)
    conditions, again = _with_progress(conditions, deployment, new, counts, now)
    if conditions:
        status["conditions"] = conditions
    return status, again


def _sum(replica_sets: Sequence[Object], name: str) -> int:
    return sum((each.get("status") or {}).get(name, 0) for each in replica_sets)


def _with_availability(conditions: list[Object], deployment: Object, available: int, now: datetime) -> list[Object]:
    unavailable = fenceposts(deployment["spec"])[1]
    if available >= deployment["spec"].get("replicas", 1) - unavailable:
        wanted = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        wanted = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return _with(conditions, "Available", *wanted, now=now)


def _with_progress(
    conditions: list[Object], deployment: Object, new: Object | None, counts: dict[str, int], now: datetime
) -> tuple[list[Object], float | None]:
    spec, old = deployment["spec"], deployment.get("status") or {}
    deadline = spec.get("progressDeadlineSeconds", NO_DEADLINE)
    known = condition(conditions, "Progressing") or {}
    reason = known.get("reason")
    if deadline == NO_DEADLINE:
        return conditions, None
    if spec.get("paused"):
        if reason not in (_TIMED_OUT, _PAUSED):
            conditions = _with(conditions, "Progressing", "Unknown", _PAUSED, "Deployment is paused", now=now)
        return conditions, None
    if reason == _PAUSED:
        conditions = _with(conditions, "Progressing", "Unknown", _RESUMED, "Deployment is resumed", now=now)
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{deployment["metadata"]["name"]}"'
    replicas = spec.get("replicas", 1)
    if counts["replicas"] == counts["updatedReplicas"] and reason == _NEW_AVAILABLE and _same_revision(known, subject):
        return conditions, None
    if counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == replicas:
        return _with(conditions, "Progressing", "True", _NEW_AVAILABLE, f"{subject} has successfully progressed.", now=now), None
    old_left = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    progresses = (
        counts["updatedReplicas"] > old.get("updatedReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < old_left
        or counts["readyReplicas"] > old.get("readyReplicas", 0)
        or counts["availableReplicas"] > old.get("availableReplicas", 0)
    )
    if not known and new is not None:
        message = f'Created new replica set "{new["metadata"]["name"]}"'
        return _with(conditions, "Progressing", "True", _NEW_CREATED, message, now=now), float(deadline)
    if progresses or reason == _NEW_AVAILABLE:
        conditions = _with(conditions, "Progressing", "True", _UPDATED, f"{subject} is progressing.", now=now, refresh=True)
        return conditions, float(deadline)
    if reason == _TIMED_OUT:
        return conditions, None
    since = parsed_time(known.get("lastUpdateTime")) or now
    left = (since + timedelta(seconds=deadline) - now).total_seconds()
    if left >= 0:
        return conditions, left + 1
    return _with(conditions, "Progressing", "False", _TIMED_OUT, f"{subject} has timed out progressing.", now=now), None


def _same_revision(known: Mapping[str, Any], subject: str) -> bool:
    return str(known.get("message", "")).startswith(subject)


def _with(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, *, now: datetime, refresh: bool = False
) -> list[Object]:
    known = condition(conditions, kind)
    if known is not None and not refresh and (known.get("status"), known.get("reason"), known.get("message")) == (status, reason, message):
        return conditions
    wanted = {"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": timestamp(now)}
    return with_condition(conditions, wanted, now)
