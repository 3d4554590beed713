"""Deployments: one ReplicaSet for each template; replicas move from the old ones to the new one.

Upstream: pkg/controller/deployment, deployment_controller.go, sync.go, rolling.go, recreate.go, progress.go.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, final

from extender.rules.api_resources import DEPLOYMENTS, REPLICA_SETS, Object
from extender.rules.statuses import ApiStatus
from extender.values.golang.times import moment_of
from extender.values.workloads.deployments import (
    REVISION,
    Revision,
    fenceposts,
    new_replica_set,
    rolled,
    scaled,
)
from reprieve.cluster.controllers.cluster_view import SelectorIndex
from reprieve.cluster.controllers.controller_loop import SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, RequeueAfter, Update, adopted, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed
from reprieve.cluster.controllers.revisions import (
    desired_replicas,
    is_in_use,
    next_revision,
    revision_number,
    same_template,
    updated_replica_set,
)
from reprieve.cluster.registry.conditions import condition, timestamp, with_condition

_DEFAULT_HISTORY: Final = 10


@final
class Deployments(Controller):
    """Controls apps/v1 Deployments. Keys are those of Deployments."""

    name = "deployment"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selecting = SelectorIndex()
        self._loose: dict[str, set[Key]] = {}
        """The ReplicaSets without a controller, by namespace."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        for obj in (old, new):
            if obj is None:
                continue
            if obj.resource is DEPLOYMENTS:
                if new is not None:
                    self._selecting.put(new.key, new.content())
                    self.queue.add(new.key)
                else:
                    self._selecting.remove(obj.key)
            elif obj.resource is REPLICA_SETS:
                self._observe_replica_set(obj, exists=obj is new)

    def _observe_replica_set(self, replica_set: Observed, *, exists: bool) -> None:
        owner = replica_set.controller
        loose = self._loose.setdefault(replica_set.namespace, set())
        loose.discard(replica_set.key)
        if owner is not None:
            if owner.kind == DEPLOYMENTS.kind:
                self.queue.add_after((replica_set.namespace, owner.name), SETTLING)
        elif exists and not replica_set.deleted:
            loose.add(replica_set.key)
            for key in self._selecting.selecting(replica_set.namespace, replica_set.labels):
                self.queue.add(key)
        if not loose:
            del self._loose[replica_set.namespace]

    def reconcile(self, key: Key) -> Steps:
        deployment = self.cluster.get(DEPLOYMENTS, *key)
        if deployment is None:
            return
        adoptions = list(self._adoptions(deployment))
        if adoptions:
            yield from adoptions
            yield RequeueAfter(0)
            return
        content = deployment.content()
        mine = sorted(
            self.cluster.controlled(REPLICA_SETS, deployment.uid),
            key=lambda replica_set: (replica_set.created, replica_set.name),
        )
        sets = {replica_set.name: replica_set.content() for replica_set in mine}
        new = next((replica_set for replica_set in mine if same_template(sets[replica_set.name], content)), None)
        if deployment.deleted:
            yield from self._write_status(deployment, content, new, sets)
            return
        if new is None and not content["spec"].get("paused"):
            yield from self._create(deployment, content, mine, sets)
            return
        yield from self._move(deployment, content, new, mine, sets)

    def _adoptions(self, deployment: Observed) -> Sequence[Update]:
        adoptions = []
        for key in self._loose.get(deployment.namespace, ()):
            replica_set = self.cluster.get(REPLICA_SETS, *key)
            if replica_set is not None and deployment.key in self._selecting.selecting(
                deployment.namespace, replica_set.labels
            ):
                adoptions.append(adopted(replica_set, deployment))
        return adoptions if not deployment.deleted else ()

    def _create(
        self, deployment: Observed, content: Object, mine: Sequence[Observed], sets: Mapping[str, Object]
    ) -> Steps:
        replicas = content["spec"].get("replicas", 1)
        surge, _ = fenceposts(content["spec"])
        total = sum(replica_set["spec"].get("replicas", 1) for replica_set in sets.values())
        recreates = (content["spec"].get("strategy") or {}).get("type") == "Recreate"
        if recreates and (total or any(self.cluster.pods_of(replica_set.uid).pods for replica_set in mine)):
            # The old pods have to be gone first.
            first = 0
        else:
            first = replicas if recreates else min(replicas, max(replicas + surge - total, 0))
        new = new_replica_set(content, first, next_revision(sets.values()))
        try:
            yield Create(REPLICA_SETS, deployment.namespace, new)
        except ApiStatus as refused:
            if refused.reason != "AlreadyExists":
                raise
            status = dict(content.get("status") or {})
            status["collisionCount"] = status.get("collisionCount", 0) + 1
            yield Update(deployment, content | {"status": status}, "status")
        # The new ReplicaSet comes back as a change, which continues the rollout.

    def _move(
        self,
        deployment: Observed,
        content: Object,
        new: Observed | None,
        mine: Sequence[Observed],
        sets: Mapping[str, Object],
    ) -> Steps:
        spec = content["spec"]
        surge, _ = fenceposts(spec)
        replicas = spec.get("replicas", 1)
        old = [replica_set for replica_set in mine if replica_set is not new]
        revision = None
        if new is not None:
            revision = max(
                next_revision(sets[replica_set.name] for replica_set in old), revision_number(sets[new.name])
            )
        moves = self._moves(spec, new, old, sets)
        has_written = False
        for replica_set in mine:
            new_content = updated_replica_set(
                sets[replica_set.name],
                content,
                moves.get(replica_set.name, sets[replica_set.name]["spec"].get("replicas", 1)),
                (replicas, replicas + surge),
                revision if replica_set is new else None,
            )
            if new_content is not None:
                has_written = True
                yield Update(replica_set, new_content)
        annotations = content["metadata"].get("annotations") or {}
        if revision is not None and annotations.get(REVISION) != str(revision):
            content["metadata"]["annotations"] = annotations | {REVISION: str(revision)}
            yield Update(deployment, content)
            return
        if has_written:
            return
        yield from self._write_status(deployment, content, new, sets)
        yield from self._tidy(spec, old, sets)

    def _moves(
        self, spec: Object, new: Observed | None, old: Sequence[Observed], sets: Mapping[str, Object]
    ) -> Mapping[str, int]:
        replicas, (surge, unavailable) = spec.get("replicas", 1), fenceposts(spec)
        former = [Revision.of(sets[replica_set.name]) for replica_set in old]
        latest = None if new is None else Revision.of(sets[new.name])
        active = [revision for revision in (*former, latest) if revision is not None and revision.replicas > 0]
        is_rescaled = any(desired_replicas(sets[revision.name]) not in (None, replicas) for revision in active)
        if active and (spec.get("paused") or (is_rescaled and (len(active) == 1 or latest is not None))):
            return scaled(replicas, surge, active)
        if latest is None:
            return {}
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            if any(revision.replicas for revision in former):
                return {replica_set.name: 0 for replica_set in old}
            are_gone = not any(self.cluster.pods_of(replica_set.uid).pods for replica_set in old)
            return {latest.name: replicas} if are_gone else {}
        return rolled(replicas, surge, unavailable, latest, former)

    def _write_status(
        self, deployment: Observed, content: Object, new: Observed | None, sets: Mapping[str, Object]
    ) -> Steps:
        status, delay = deployment_status(
            content, None if new is None else sets[new.name], list(sets.values()), self.now()
        )
        yield from changed_status(deployment, content, status)
        if delay is not None:
            yield RequeueAfter(delay)

    def _tidy(self, spec: Object, old: Sequence[Observed], sets: Mapping[str, Object]) -> Steps:
        """Deletes old ReplicaSets beyond the history limit. Upstream: sync.go, cleanupDeployment."""
        limit = spec.get("revisionHistoryLimit", _DEFAULT_HISTORY)
        empty = [
            replica_set for replica_set in old if not replica_set.deleted and not is_in_use(sets[replica_set.name])
        ]
        empty.sort(key=lambda replica_set: revision_number(sets[replica_set.name]))
        for replica_set in empty[: max(len(empty) - limit, 0)]:
            yield Delete(replica_set)


NO_DEADLINE: Final = 2**31 - 1
_NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
_NEW_CREATED: Final = "NewReplicaSetCreated"
_UPDATED: Final = "ReplicaSetUpdated"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_PAUSED: Final = "DeploymentPaused"
_RESUMED: Final = "DeploymentResumed"


def deployment_status(
    deployment: Object, new: Object | None, replica_sets: Sequence[Object], now: datetime
) -> tuple[Object, float | None]:
    """Returns the status that the ReplicaSets imply, and the seconds until the progress deadline.

    `new` is the ReplicaSet with the current template.
    """
    old_status = deployment.get("status") or {}
    updated = (new.get("status") or {}).get("replicas", 0) if new is not None else 0
    available = _sum(replica_sets, "availableReplicas")
    counts = {
        "replicas": _sum(replica_sets, "replicas"),
        "updatedReplicas": updated,
        "readyReplicas": _sum(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(
            sum(replica_set["spec"].get("replicas", 1) for replica_set in replica_sets) - available, 0
        ),
    }
    status = {name: number for name, number in counts.items() if number}
    status["terminatingReplicas"] = _sum(replica_sets, "terminatingReplicas")
    status["observedGeneration"] = deployment["metadata"].get("generation", 0)
    if old_status.get("collisionCount"):
        status["collisionCount"] = old_status["collisionCount"]
    conditions = _with_availability(old_status.get("conditions") or [], deployment, available, now)
    conditions, delay = _with_progress(conditions, deployment, new, counts, now)
    if conditions:
        status["conditions"] = conditions
    return status, delay


def _sum(replica_sets: Sequence[Object], name: str) -> int:
    return sum((replica_set.get("status") or {}).get(name, 0) for replica_set in replica_sets)


def _with_availability(conditions: list[Object], deployment: Object, available: int, now: datetime) -> list[Object]:
    unavailable = fenceposts(deployment["spec"])[1]
    if available >= deployment["spec"].get("replicas", 1) - unavailable:
        availability = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        availability = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return _with(conditions, "Available", *availability, now=now)


def _with_progress(
    conditions: list[Object], deployment: Object, new: Object | None, counts: dict[str, int], now: datetime
) -> tuple[list[Object], float | None]:
    """Returns the conditions with Progressing, and the seconds until its deadline (progress.go, syncRolloutStatus)."""
    spec, old = deployment["spec"], deployment.get("status") or {}
    deadline = spec.get("progressDeadlineSeconds", NO_DEADLINE)
    progress = condition(conditions, "Progressing") or {}
    reason = progress.get("reason")
    if deadline == NO_DEADLINE:
        return conditions, None
    if spec.get("paused"):
        if reason not in (_TIMED_OUT, _PAUSED):
            conditions = _with(conditions, "Progressing", "Unknown", _PAUSED, "Deployment is paused", now=now)
        return conditions, None
    if reason == _PAUSED:
        # The time that the rollout was paused does not count towards its deadline.
        conditions = _with(conditions, "Progressing", "Unknown", _RESUMED, "Deployment is resumed", now=now)
    name = (deployment if new is None else new)["metadata"]["name"]
    subject = f'{"Deployment" if new is None else "ReplicaSet"} "{name}"'
    replicas = spec.get("replicas", 1)
    is_ours = str(progress.get("message")).startswith(subject)
    # A complete rollout stays complete: neither pods that fail later nor scaling begin a new one.
    if counts["replicas"] == counts["updatedReplicas"] and reason == _NEW_AVAILABLE and is_ours:
        return conditions, None
    if counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == replicas:
        return _with(
            conditions, "Progressing", "True", _NEW_AVAILABLE, f"{subject} has successfully progressed.", now=now
        ), None
    old_left = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    progresses = (
        counts["updatedReplicas"] > old.get("updatedReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < old_left
        or counts["readyReplicas"] > old.get("readyReplicas", 0)
        or counts["availableReplicas"] > old.get("availableReplicas", 0)
    )
    if not progress and new is not None:
        message = f'Created new replica set "{name}"'
        return _with(conditions, "Progressing", "True", _NEW_CREATED, message, now=now), float(deadline)
    if progresses or reason == _NEW_AVAILABLE:
        # The refreshed lastUpdateTime restarts the deadline.
        conditions = _with(
            conditions, "Progressing", "True", _UPDATED, f"{subject} is progressing.", now=now, refresh=True
        )
        return conditions, float(deadline)
    if reason == _TIMED_OUT:
        return conditions, None
    since = moment_of(progress.get("lastUpdateTime")) or now
    remaining = (since + timedelta(seconds=deadline) - now).total_seconds()
    if remaining >= 0:
        # One second is added, so that the deadline has passed at the next look.
        return conditions, remaining + 1
    return _with(conditions, "Progressing", "False", _TIMED_OUT, f"{subject} has timed out progressing.", now=now), None


def _with(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, *, now: datetime, refresh: bool = False
) -> list[Object]:
    old = condition(conditions, kind)
    if (
        old is not None
        and not refresh
        and (old.get("status"), old.get("reason"), old.get("message")) == (status, reason, message)
    ):
        return conditions
    new = {"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": timestamp(now)}
    return with_condition(conditions, new, now)
