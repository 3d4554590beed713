"""Deployments: a ReplicaSet for each template, and replicas moved from the old ones to the new one.

Upstream: pkg/controller/deployment, deployment_controller.go, sync.go, rolling.go, recreate.go (v1.36.2).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Final, final

import orjson

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.controller import SETTLING, Controller, Steps
from extender.embedded.controllers.deployment_status import deployment_status
from extender.embedded.controllers.owning import adopted, controller_reference
from extender.embedded.controllers.rollout import Revision, fenceposts, rolled, scaled
from extender.embedded.controllers.seen import Key, Seen, SeenPod
from extender.embedded.controllers.selecting import Selecting, label_selector
from extender.embedded.controllers.writes import Create, Delete, LookAgain, Update
from extender.embedded.resources import DEPLOYMENTS, REPLICA_SETS, Object
from extender.embedded.statuses import ApiStatus

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
)
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_DEFAULT_HISTORY: Final = 10


@final
class Deployments(Controller):
    """apps/v1 Deployments."""

    name = "deployment"

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._selecting = Selecting(lambda content: label_selector(content["spec"].get("selector")))
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
        wanted = new_replica_set(content, seen, first, _next_revision(sets.values()))
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
            wanted = _as_wanted(
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
        if any(_desired(sets[each.name]) not in (None, replicas) for each in active) or (spec.get("paused") and active):
            if len(active) == 1:
                return {active[0].name: replicas}
            if new is not None or spec.get("paused"):
                return scaled(replicas, surge, [_revision(each, sets) for each in active])
        if new is None:
            return {}
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            if any(sets[each.name]["spec"].get("replicas", 1) for each in old):
                return {each.name: 0 for each in old}
            gone = not any(self.cluster.pods_of(each.uid).pods for each in old)
            return {new.name: replicas} if gone else {}
        return rolled(replicas, surge, unavailable, _revision(new, sets), [_revision(each, sets) for each in old])

    def _revision_of(self, new: Seen | None, old: Sequence[Seen], sets: Mapping[str, Object]) -> int | None:
        if new is None:
            return None
        return max(_next_revision(sets[each.name] for each in old), _revision_number(sets[new.name]))

    def _say(self, seen: Seen, content: Object, new: Seen | None, sets: Mapping[str, Object]) -> Steps:
        status, again = deployment_status(content, None if new is None else sets[new.name], list(sets.values()), self.now())
        if status != (content.get("status") or {}):
            yield Update(seen, content | {"status": status}, "status")
        if again is not None:
            yield LookAgain(again)

    def _tidy(self, spec: Object, old: Sequence[Seen], sets: Mapping[str, Object]) -> Steps:
        """Delete old ReplicaSets beyond the history limit. Upstream: sync.go, cleanupDeployment."""
        limit = spec.get("revisionHistoryLimit", _DEFAULT_HISTORY)
        empty = [each for each in old if not each.deleted and not _is_in_use(sets[each.name])]
        empty.sort(key=lambda each: _revision_number(sets[each.name]))
        for each in empty[: max(len(empty) - limit, 0)]:
            yield Delete(each)


def same_template(replica_set: Object, deployment: Object) -> bool:
    """Whether the ReplicaSet makes the pods that the Deployment wants; the hash label aside. Upstream: EqualIgnoreHash."""
    mine, theirs = replica_set["spec"].get("template") or {}, deployment["spec"].get("template") or {}
    return _without_hash(mine) == _without_hash(theirs)


def new_replica_set(deployment: Object, owner: Seen, replicas: int, revision: int) -> Object:
    """The ReplicaSet for the Deployment's template. Upstream: sync.go, getNewReplicaSet."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    template = spec["template"]
    code = template_hash(template, (deployment.get("status") or {}).get("collisionCount"))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: code}
    surge, _ = fenceposts(spec)
    wanted = spec.get("replicas", 1)
    copied = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in _NOT_COPIED}
    numbers = {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + surge), REVISION: str(revision)}
    selector = spec.get("selector") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{code}",
            "labels": labels,
            "annotations": copied | numbers,
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": {
            "replicas": replicas,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: code}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def template_hash(template: Object, collisions: int | None) -> str:
    """A short name for a template. Not upstream's number, which depends on how Go prints the template; but as stable and as short."""
    code = 0x811C9DC5
    salt = b"" if collisions is None else collisions.to_bytes(8, "little")
    for byte in orjson.dumps(template, option=orjson.OPT_SORT_KEYS) + salt:
        code = ((code ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(code))


def _without_hash(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": {**metadata, "labels": labels}}


def _as_wanted(
    replica_set: Object, deployment: Object, replicas: int, desired_and_max: tuple[int, int], revision: int | None
) -> Object | None:
    """The ReplicaSet with these replicas and numbers on it; None if that is how it is."""
    annotations = dict(replica_set["metadata"].get("annotations") or {})
    if replicas or revision is not None:
        annotations |= {DESIRED_REPLICAS: str(desired_and_max[0]), MAX_REPLICAS: str(desired_and_max[1])}
    spec = {**replica_set["spec"], "replicas": replicas}
    if revision is not None:
        annotations[REVISION] = str(revision)
        copied = deployment["metadata"].get("annotations") or {}
        annotations |= {name: value for name, value in copied.items() if name not in _NOT_COPIED}
        seconds = deployment["spec"].get("minReadySeconds", 0)
        if seconds != spec.get("minReadySeconds", 0):
            spec["minReadySeconds"] = seconds
    if spec == replica_set["spec"] and annotations == (replica_set["metadata"].get("annotations") or {}):
        return None
    return {**replica_set, "metadata": {**replica_set["metadata"], "annotations": annotations}, "spec": spec}


def _revision(seen: Seen, sets: Mapping[str, Object]) -> Revision:
    content = sets[seen.name]
    return Revision(seen.name, content["spec"].get("replicas", 1), (content.get("status") or {}).get("availableReplicas", 0))


def _revision_number(replica_set: Object) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _next_revision(replica_sets: Iterable[Object]) -> int:
    return max(map(_revision_number, replica_sets), default=0) + 1


def _desired(replica_set: Object) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(DESIRED_REPLICAS, "")
    return int(text) if text.isdecimal() else None


def _is_in_use(replica_set: Object) -> bool:
    status = replica_set.get("status") or {}
    behind = status.get("observedGeneration", 0) < replica_set["metadata"].get("generation", 0)
    return bool(replica_set["spec"].get("replicas", 1) or status.get("replicas") or behind)
