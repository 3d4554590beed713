"""Deployments: a ReplicaSet for each template, and replicas that move from the old ones to the new one.

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
        for seen in (old, new):
            if seen is None:
                continue
            if seen.resource is DEPLOYMENTS:
                if new is not None:
                    self._selecting.put(new.key, new.content())
                    self.queue.add(new.key)
                else:
                    self._selecting.remove(seen.key)
            elif seen.resource is REPLICA_SETS:
                self._observe_replica_set(seen, exists=seen is new)

    def _observe_replica_set(self, seen: Observed, *, exists: bool) -> None:
        owner = seen.controller
        loose = self._loose.setdefault(seen.namespace, set())
        loose.discard(seen.key)
        if owner is not None:
            if owner.kind == DEPLOYMENTS.kind:
                self.queue.add_after((seen.namespace, owner.name), SETTLING)
        elif exists and not seen.deleted:
            loose.add(seen.key)
            for key in self._selecting.selecting(seen.namespace, seen.labels):
                self.queue.add(key)
        if not loose:
            del self._loose[seen.namespace]

    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(DEPLOYMENTS, *key)
        if seen is None:
            return
        adoptions = list(self._adoptions(seen))
        if adoptions:
            yield from adoptions
            yield RequeueAfter(0)
            return
        content = seen.content()
        mine = sorted(self.cluster.controlled(REPLICA_SETS, seen.uid), key=lambda each: (each.created, each.name))
        sets = {each.name: each.content() for each in mine}
        new = next((each for each in mine if same_template(sets[each.name], content)), None)
        if seen.deleted:
            yield from self._say(seen, content, new, sets)
            return
        if new is None and not content["spec"].get("paused"):
            yield from self._create(seen, content, mine, sets)
            return
        yield from self._move(seen, content, new, mine, sets)

    def _adoptions(self, seen: Observed) -> Sequence[Update]:
        found = []
        for key in self._loose.get(seen.namespace, ()):
            replica_set = self.cluster.get(REPLICA_SETS, *key)
            if replica_set is not None and seen.key in self._selecting.selecting(seen.namespace, replica_set.labels):
                found.append(adopted(replica_set, seen))
        return found if not seen.deleted else ()

    def _create(self, seen: Observed, content: Object, mine: Sequence[Observed], sets: Mapping[str, Object]) -> Steps:
        replicas = content["spec"].get("replicas", 1)
        surge, _ = fenceposts(content["spec"])
        total = sum(each["spec"].get("replicas", 1) for each in sets.values())
        recreates = (content["spec"].get("strategy") or {}).get("type") == "Recreate"
        if recreates and (total or any(self.cluster.pods_of(each.uid).pods for each in mine)):
            # The old pods have to be gone first.
            first = 0
        else:
            first = replicas if recreates else min(replicas, max(replicas + surge - total, 0))
        wanted = new_replica_set(content, first, next_revision(sets.values()))
        try:
            yield Create(REPLICA_SETS, seen.namespace, wanted)
        except ApiStatus as refused:
            if refused.reason != "AlreadyExists":
                raise
            status = dict(content.get("status") or {})
            status["collisionCount"] = status.get("collisionCount", 0) + 1
            yield Update(seen, content | {"status": status}, "status")
        # The new ReplicaSet comes back as a change, which continues the rollout.

    def _move(
        self,
        seen: Observed,
        content: Object,
        new: Observed | None,
        mine: Sequence[Observed],
        sets: Mapping[str, Object],
    ) -> Steps:
        spec = content["spec"]
        surge, _ = fenceposts(spec)
        replicas = spec.get("replicas", 1)
        old = [each for each in mine if each is not new]
        revision = None
        if new is not None:
            revision = max(next_revision(sets[each.name] for each in old), revision_number(sets[new.name]))
        moves = self._moves(spec, new, old, sets)
        written = False
        for each in mine:
            wanted = updated_replica_set(
                sets[each.name],
                content,
                moves.get(each.name, sets[each.name]["spec"].get("replicas", 1)),
                (replicas, replicas + surge),
                revision if each is new else None,
            )
            if wanted is not None:
                written = True
                yield Update(each, wanted)
        annotations = content["metadata"].get("annotations") or {}
        if revision is not None and annotations.get(REVISION) != str(revision):
            content["metadata"]["annotations"] = annotations | {REVISION: str(revision)}
            yield Update(seen, content)
            return
        if written:
            return
        yield from self._say(seen, content, new, sets)
        yield from self._tidy(spec, old, sets)

    def _moves(
        self, spec: Object, new: Observed | None, old: Sequence[Observed], sets: Mapping[str, Object]
    ) -> Mapping[str, int]:
        replicas, (surge, unavailable) = spec.get("replicas", 1), fenceposts(spec)
        former = [Revision.of(sets[each.name]) for each in old]
        latest = None if new is None else Revision.of(sets[new.name])
        active = [each for each in (*former, latest) if each is not None and each.wanted > 0]
        is_rescaled = any(desired_replicas(sets[each.name]) not in (None, replicas) for each in active)
        if active and (spec.get("paused") or (is_rescaled and (len(active) == 1 or latest is not None))):
            return scaled(replicas, surge, active)
        if latest is None:
            return {}
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            if any(each.wanted for each in former):
                return {each.name: 0 for each in old}
            gone = not any(self.cluster.pods_of(each.uid).pods for each in old)
            return {latest.name: replicas} if gone else {}
        return rolled(replicas, surge, unavailable, latest, former)

    def _say(self, seen: Observed, content: Object, new: Observed | None, sets: Mapping[str, Object]) -> Steps:
        status, again = deployment_status(
            content, None if new is None else sets[new.name], list(sets.values()), self.now()
        )
        yield from changed_status(seen, content, status)
        if again is not None:
            yield RequeueAfter(again)

    def _tidy(self, spec: Object, old: Sequence[Observed], sets: Mapping[str, Object]) -> Steps:
        """Deletes old ReplicaSets beyond the history limit. Upstream: sync.go, cleanupDeployment."""
        limit = spec.get("revisionHistoryLimit", _DEFAULT_HISTORY)
        empty = [each for each in old if not each.deleted and not is_in_use(sets[each.name])]
        empty.sort(key=lambda each: revision_number(sets[each.name]))
        for each in empty[: max(len(empty) - limit, 0)]:
            yield Delete(each)


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
    """Returns the status that follows from the ReplicaSets, of which `new` has the current template, and the seconds
    until the progress deadline.
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
    """The condition Progressing, and the seconds until its deadline. Upstream: progress.go, syncRolloutStatus."""
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
        # The time that the rollout was paused does not count towards its deadline.
        conditions = _with(conditions, "Progressing", "Unknown", _RESUMED, "Deployment is resumed", now=now)
    name = (deployment if new is None else new)["metadata"]["name"]
    subject = f'{"Deployment" if new is None else "ReplicaSet"} "{name}"'
    replicas = spec.get("replicas", 1)
    is_ours = str(known.get("message")).startswith(subject)
    # A rollout that is complete stays so: pods that fail later, or scaling, begin no new one.
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
    if not known and new is not None:
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
    since = moment_of(known.get("lastUpdateTime")) or now
    left = (since + timedelta(seconds=deadline) - now).total_seconds()
    if left >= 0:
        # One second late rather than early: looked at too soon, the deadline would not have passed.
        return conditions, left + 1
    return _with(conditions, "Progressing", "False", _TIMED_OUT, f"{subject} has timed out progressing.", now=now), None


def _with(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, *, now: datetime, refresh: bool = False
) -> list[Object]:
    known = condition(conditions, kind)
    if (
        known is not None
        and not refresh
        and (known.get("status"), known.get("reason"), known.get("message")) == (status, reason, message)
    ):
        return conditions
    wanted = {"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": timestamp(now)}
    return with_condition(conditions, wanted, now)
