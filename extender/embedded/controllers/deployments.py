"""Deployments: a ReplicaSet for each template, and replicas moved from the old ones to the new one.

Upstream: pkg/controller/deployment, deployment_controller.go, sync.go, rolling.go, recreate.go (v1.36.2).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Final, final

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.controller import SETTLING, Controller, Steps
from extender.embedded.controllers.deployment_status import deployment_status
from extender.embedded.controllers.owning import adopted
from extender.embedded.controllers.seen import Key, Seen, SeenPod
from extender.embedded.controllers.selecting import Selecting
from extender.embedded.controllers.writes import Create, Delete, LookAgain, Update
from extender.embedded.resources import DEPLOYMENTS, REPLICA_SETS, Object
from extender.embedded.statuses import ApiStatus
from extender.workloads.availability import fenceposts
from extender.workloads.deployments import (
    REVISION,
    Revision,
    desired_replicas,
    is_in_use,
    new_replica_set,
    next_revision,
    revision_number,
    rolled,
    same_template,
    scaled,
    updated_replica_set,
)

_DEFAULT_HISTORY: Final = 10


@final
class Deployments(Controller):
    """apps/v1 Deployments."""

    name = "deployment"

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._selecting = Selecting()
        self._loose: dict[str, set[Key]] = {}
        """ReplicaSets without a controller, by namespace."""

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Deployments, and ReplicaSets that are or may become theirs."""
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

    def _observe_replica_set(self, seen: Seen, *, exists: bool) -> None:
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

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """ReplicaSets tell about their pods."""

    def reconcile(self, key: Key) -> Steps:
        """One step of a rollout, and the status."""
        seen = self.cluster.get(DEPLOYMENTS, *key)
        if seen is None:
            return
        adoptions = list(self._adoptions(seen))
        if adoptions:
            yield from adoptions
            yield LookAgain(0)
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

    def _adoptions(self, seen: Seen) -> Sequence[Update]:
        found = []
        for key in self._loose.get(seen.namespace, ()):
            replica_set = self.cluster.get(REPLICA_SETS, *key)
            if replica_set is not None and seen.key in self._selecting.selecting(seen.namespace, replica_set.labels):
                found.append(adopted(replica_set, seen))
        return found if not seen.deleted else ()

    def _create(self, seen: Seen, content: Object, mine: Sequence[Seen], sets: Mapping[str, Object]) -> Steps:
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
        # The new one comes back as a change, and with it the rest.

    def _move(self, seen: Seen, content: Object, new: Seen | None, mine: Sequence[Seen], sets: Mapping[str, Object]) -> Steps:
        spec = content["spec"]
        surge, unavailable = fenceposts(spec)
        replicas = spec.get("replicas", 1)
        old = [each for each in mine if each is not new]
        revision = self._revision_of(new, old, sets)
        moves = self._moves(spec, new, old, sets, surge, unavailable)
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
        self, spec: Object, new: Seen | None, old: Sequence[Seen], sets: Mapping[str, Object], surge: int, unavailable: int
    ) -> Mapping[str, int]:
        replicas = spec.get("replicas", 1)
        everything = [*old, new] if new is not None else list(old)
        active = [each for each in everything if sets[each.name]["spec"].get("replicas", 1) > 0]
        if any(desired_replicas(sets[each.name]) not in (None, replicas) for each in active) or (spec.get("paused") and active):
            if len(active) == 1:
                return {active[0].name: replicas}
            if new is not None or spec.get("paused"):
                return scaled(replicas, surge, [Revision.of(sets[each.name]) for each in active])
        if new is None:
            return {}
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            if any(sets[each.name]["spec"].get("replicas", 1) for each in old):
                return {each.name: 0 for each in old}
            gone = not any(self.cluster.pods_of(each.uid).pods for each in old)
            return {new.name: replicas} if gone else {}
        return rolled(replicas, surge, unavailable, Revision.of(sets[new.name]), [Revision.of(sets[each.name]) for each in old])

    def _revision_of(self, new: Seen | None, old: Sequence[Seen], sets: Mapping[str, Object]) -> int | None:
        if new is None:
            return None
        return max(next_revision(sets[each.name] for each in old), revision_number(sets[new.name]))

    def _say(self, seen: Seen, content: Object, new: Seen | None, sets: Mapping[str, Object]) -> Steps:
        status, again = deployment_status(content, None if new is None else sets[new.name], list(sets.values()), self.now())
        if status != (content.get("status") or {}):
            yield Update(seen, content | {"status": status}, "status")
        if again is not None:
            yield LookAgain(again)

    def _tidy(self, spec: Object, old: Sequence[Seen], sets: Mapping[str, Object]) -> Steps:
        """Delete old ReplicaSets beyond the history limit. Upstream: sync.go, cleanupDeployment."""
        limit = spec.get("revisionHistoryLimit", _DEFAULT_HISTORY)
        empty = [each for each in old if not each.deleted and not is_in_use(sets[each.name])]
        empty.sort(key=lambda each: revision_number(sets[each.name]))
        for each in empty[: max(len(empty) - limit, 0)]:
            yield Delete(each)
