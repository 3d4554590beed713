"""ResourceClaims: who has reserved them and is not there any more is struck off, and with the last one goes what was allocated.

Upstream: pkg/controller/resourceclaim/controller.go, syncClaim, syncPod (v1.36.2).
"""

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Final, final

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.controller import Controller, Steps
from extender.embedded.controllers.seen import Key, Seen, SeenPod
from extender.embedded.controllers.writes import Delete, Update
from extender.embedded.resources import RESOURCE_CLAIMS, Object

FINALIZER: Final = "resource.kubernetes.io/delete-protection"


@final
class ResourceClaims(Controller):
    """Keys are those of claims."""

    name = "resource claim"

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._users: dict[Key, dict[Key, None]] = {}
        """The pods that use a claim."""
        self._freed: set[Key] = set()
        """Claims that were let go of by their last user a moment ago, and still have the finalizer."""

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """The claims themselves."""
        if new is not None and new.resource is RESOURCE_CLAIMS:
            self.queue.add(new.key)

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Pods that use claims, when they come, are bound, end or go."""
        for pod in (old, new):
            if pod is None or not pod.resource_claims:
                continue
            for name in pod.resource_claims:
                key = (pod.namespace, name)
                users = self._users.setdefault(key, {})
                if pod is new:
                    users[pod.key] = None
                else:
                    users.pop(pod.key, None)
                if not users:
                    del self._users[key]
                self.queue.add(key)

    def reconcile(self, key: Key) -> Steps:
        """One step: reservations, then the finalizer, then the claim itself."""
        seen = self.cluster.get(RESOURCE_CLAIMS, *key)
        freed = key in self._freed
        self._freed.discard(key)
        if seen is None:
            return
        claim = seen.content()
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        valid = [each for each in reserved if self._is_valid(seen.namespace, each)]
        if len(valid) < len(reserved):
            if not valid and FINALIZER in seen.finalizers:
                self._freed.add(key)
            yield Update(seen, claim | {"status": _with_reservations(claim, valid)}, "status")
        elif seen.deleted and FINALIZER in seen.finalizers and not valid:
            if status.get("allocation") is not None:
                yield Update(seen, claim | {"status": _with_reservations(claim, [])}, "status")
            else:
                yield _without_finalizer(seen, claim)
        elif freed and FINALIZER in seen.finalizers and status.get("allocation") is None and not valid:
            # Not whenever it is so: a scheduler that allocates puts the finalizer on first.
            yield _without_finalizer(seen, claim)
        elif not valid and not seen.deleted and self._belongs_to_the_past(seen):
            yield Delete(seen)
        elif status.get("allocation") is not None:
            missing = self._missing_reservations(key, {each.get("uid") for each in valid})
            if missing:
                yield Update(seen, claim | {"status": {**status, "reservedFor": [*reserved, *missing]}}, "status")

    def _is_valid(self, namespace: str, reservation: Object) -> bool:
        if reservation.get("apiGroup") or reservation.get("resource") != "pods":
            return True
        pod = self.cluster.pods.get((namespace, reservation.get("name", "")))
        return pod is not None and pod.uid == reservation.get("uid") and not _is_done(pod)

    def _belongs_to_the_past(self, seen: Seen) -> bool:
        """Whether it was made for a pod that will not run any more. If the pod is gone, the garbage collector takes the claim."""
        owner = seen.controller
        if owner is None or owner.kind != "Pod":
            return False
        pod = self.cluster.pods.get((seen.namespace, owner.name))
        return pod is not None and (pod.uid != owner.uid or _is_done(pod))

    def _missing_reservations(self, key: Key, reserved: set[str | None]) -> list[Object]:
        """Bound pods that use the claim and have not reserved it: those that no scheduler has bound. Upstream: reserveForPod."""
        pods = [self.cluster.pods.get(user) for user in self._users.get(key, ())]
        return [
            {"resource": "pods", "name": pod.name, "uid": pod.uid}
            for pod in pods
            if pod is not None and pod.node and pod.is_active and pod.uid not in reserved
        ]


def _is_done(pod: SeenPod) -> bool:
    return pod.is_finished or bool(pod.deleted and not pod.node)


def _with_reservations(claim: Object, valid: list[Object]) -> Object:
    status = {name: value for name, value in (claim.get("status") or {}).items() if name != "reservedFor"}
    if valid:
        return status | {"reservedFor": valid}
    # The last user lets go of what was allocated, so that the next one may get something else.
    if FINALIZER in (claim["metadata"].get("finalizers") or ()):
        status.pop("allocation", None)
    return status


def _without_finalizer(seen: Seen, claim: Object) -> Update:
    finalizers = [each for each in claim["metadata"].get("finalizers") or () if each != FINALIZER]
    return Update(seen, {**claim, "metadata": {**claim["metadata"], "finalizers": finalizers}})
