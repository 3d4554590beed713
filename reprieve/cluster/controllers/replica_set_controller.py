"""ReplicaSets and ReplicationControllers: a number of pods from a template.

Upstream: pkg/controller/replicaset, replica_set.go, replica_set_utils.go; controller_utils.go.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Final, final

from extender.rules.api_resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Object, Resource
from extender.rules.statuses import ApiStatus
from extender.values.golang.times import moment_of
from extender.values.workloads.deployments import DELETION_COST, deletion_rank
from extender.values.workloads.templates import pod_from_template
from reprieve.cluster.controllers.cluster_view import OwnedPods, SelectorIndex
from reprieve.cluster.controllers.controller_loop import BURST, SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import (
    Create,
    Delete,
    RequeueAfter,
    Update,
    adopted,
    changed_status,
    released,
)
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod
from reprieve.cluster.registry.conditions import condition, seconds_since, with_condition, without_condition


class SelectingController(Controller):
    """Controls the objects of one resource, whose pods it tells by their selectors. Keys are those of the objects."""

    resource: ClassVar[Resource]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selecting = SelectorIndex()

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.resource is self.resource:
            self._selecting.put(new.key, new.content())
            self.queue.add(new.key)
        elif new is None and old is not None and old.resource is self.resource:
            self._selecting.remove(old.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for key in changed_owners(old, new, self.resource):
            self.queue.add_after(key, SETTLING)
        if new is None or new.controller is not None or not new.is_active:
            return
        if old is None or not same_for_its_owner(old, new):
            for key in self._selecting.selecting(new.namespace, new.labels):
                if self.adopts(new, key[1]):
                    self.queue.add(key)

    def adopts(self, pod: ObservedPod, name: str) -> bool:
        """Returns whether an object of this name takes a pod that it selects and that has no controller."""
        del pod, name
        return True

    def moves(self, seen: Observed) -> Steps:
        """Releases pods that are not selected any more, and adopts others; then the object is looked at again."""
        moves = list(islice(self._moves(seen), BURST))
        if moves:
            yield from moves
            yield RequeueAfter(0)

    def _moves(self, seen: Observed) -> Iterator[Update]:
        selector, group = self._selecting.selector(seen.key), self.cluster.pods_of(seen.uid)
        strangers = {labels for labels in group.labels if not selector.matches(labels.of)}
        if strangers:
            yield from (released(pod, seen.uid) for pod in group.pods.values() if pod.labels in strangers)
        if not seen.deleted:
            for labels, pods in self.cluster.loose_pods(seen.namespace).items():
                if seen.key in self._selecting.selecting(seen.namespace, labels):
                    yield from (adopted(pod, seen) for pod in pods.values() if self.adopts(pod, seen.name))


class _Replicas(SelectingController):
    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(self.resource, *key)
        if seen is None:
            return
        if moves := list(self.moves(seen)):
            yield from moves
            return
        content, group = seen.content(), self.cluster.pods_of(seen.uid)
        status, again = self._status(content, group)
        surplus = group.active - content["spec"].get("replicas", 1)
        if seen.deleted or not surplus:
            yield from self._say(seen, content, without_condition(status.get("conditions"), "ReplicaFailure"), status)
        elif surplus > 0:
            related = [pod for each in self._siblings(seen) for pod in self.cluster.pods_of(each.uid).pods.values()]
            crowd = Counter(pod.node for pod in related if pod.is_active and pod.node)
            active = [pod for pod in group.pods.values() if pod.is_active]
            yield from self._say(seen, content, status.get("conditions") or [], status)
            for pod in pods_to_delete(active, crowd, min(surplus, BURST), self.now()):
                yield Delete(pod)
        else:
            yield from self._grow(seen, content, status, min(-surplus, BURST))
        if again is not None:
            yield RequeueAfter(again)

    def _grow(self, seen: Observed, content: Object, status: Object, count: int) -> Steps:
        template = content["spec"].get("template") or {}
        try:
            for _ in range(count):
                pod = pod_from_template(template, content)
                pod["metadata"]["generateName"] = f"{seen.name}-"
                yield Create(PODS, seen.namespace, pod)
        except ApiStatus as refused:
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused.message}
            conditions = status.get("conditions") or []
            if (condition(conditions, "ReplicaFailure") or {}).get("message") != refused.message:
                conditions = with_condition(conditions, failure, self.now())
            yield from self._say(seen, content, conditions, status)
            raise
        yield from self._say(seen, content, without_condition(status.get("conditions"), "ReplicaFailure"), status)

    def _siblings(self, seen: Observed) -> Sequence[Observed]:
        owner = seen.controller
        return [seen] if owner is None else list(self.cluster.controlled(self.resource, owner.uid))

    def _status(self, content: Object, group: OwnedPods) -> tuple[Object, float | None]:
        """The status that follows from the pods, and the seconds after which it changes without a write."""
        spec = content["spec"]
        available, again = group.ready, None
        if spec.get("minReadySeconds"):
            available, again = self._available(group, spec["minReadySeconds"])
        wanted = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
        status = dict(content.get("status") or {})
        counts = {
            "replicas": group.active,
            "fullyLabeledReplicas": _num_with_labels(group, wanted),
            "readyReplicas": group.ready,
            "availableReplicas": available,
        }
        for name, number in counts.items():
            if number or name == "replicas":
                status[name] = number
            else:
                status.pop(name, None)
        if self.resource is REPLICA_SETS:
            status["terminatingReplicas"] = group.terminating
        status["observedGeneration"] = content["metadata"].get("generation", 0)
        return status, again

    def _available(self, group: OwnedPods, seconds: int) -> tuple[int, float | None]:
        available, again = 0, None
        now = self.now()
        for pod in group.pods.values():
            if not (pod.is_active and pod.is_ready):
                continue
            ready = condition((pod.content().get("status") or {}).get("conditions"), "Ready") or {}
            since = moment_of(ready.get("lastTransitionTime"))
            left = seconds - (now - since).total_seconds() if since is not None else 0.0
            if left <= 0:
                available += 1
            else:
                again = left if again is None else min(again, left)
        return available, again

    def _say(self, seen: Observed, content: Object, conditions: list[Object], status: Object) -> Steps:
        wanted = dict(status)
        if conditions:
            wanted["conditions"] = conditions
        else:
            wanted.pop("conditions", None)
        yield from changed_status(seen, content, wanted)


@final
class ReplicaSets(_Replicas):
    """Controls apps/v1 ReplicaSets."""

    name = "replicaset"
    resource = REPLICA_SETS


@final
class ReplicationControllers(_Replicas):
    """Controls v1 ReplicationControllers."""

    name = "replicationcontroller"
    resource = REPLICATION_CONTROLLERS


def _num_with_labels(group: OwnedPods, wanted: Mapping[str, str]) -> int:
    if all(wanted.items() <= labels.of.items() for labels in group.labels):
        return group.active
    return sum(1 for pod in group.pods.values() if pod.is_active and wanted.items() <= pod.labels.of.items())


def changed_owners(old: ObservedPod | None, new: ObservedPod | None, resource: Resource) -> Iterator[Key]:
    """Yields the controllers of this resource that have to look at a pod that changed."""
    if old is not None and new is not None and same_for_its_owner(old, new):
        return
    for pod in (old, new):
        owner = pod.controller if pod is not None else None
        if pod is None or owner is None:
            continue
        if owner.kind == resource.kind and owner.api_version == resource.api_version:
            yield pod.namespace, owner.name


def same_for_its_owner(old: ObservedPod, new: ObservedPod) -> bool:
    """Returns whether a pod has not changed in anything that its controller looks at."""
    return (
        old.uid == new.uid
        and old.is_ready == new.is_ready
        and old.phase == new.phase
        and bool(old.deleted) == bool(new.deleted)
        and old.labels is new.labels
        and old.controller == new.controller
    )


_NEVER: Final = -1


def pods_to_delete(
    pods: Iterable[ObservedPod], crowd: Mapping[str, int], count: int, now: datetime
) -> Sequence[ObservedPod]:
    """Returns the `count` active pods to delete first. Upstream: getPodsToDelete.

    `crowd` is the number of active pods of the controller and its siblings by node: those on crowded nodes go first.
    """
    candidates = list(pods)
    if count >= len(candidates):
        return candidates
    candidates.sort(key=lambda pod: _rank(pod, crowd.get(pod.node, 0), now))
    return candidates[:count]


def _rank(pod: ObservedPod, neighbours: int, now: datetime) -> tuple[Any, ...]:
    """The sort key of a pod; the smallest is deleted first."""
    content = pod.content()
    status = content.get("status") or {}
    ready = condition(status.get("conditions"), "Ready") if pod.is_ready else None
    restarts = max((each.get("restartCount") or 0 for each in status.get("containerStatuses") or ()), default=0)
    cost = (content["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return (
        *deletion_rank(node=pod.node, phase=pod.phase, is_ready=pod.is_ready, cost=cost, neighbours=neighbours),
        _age_class(None if ready is None else ready.get("lastTransitionTime"), now),
        -restarts,
        _age_class(pod.created, now),
        pod.uid,
    )


def _age_class(since: str | None, now: datetime) -> int:
    """The power of two of an age, so that not always the youngest go (logarithmicRankDiff)."""
    seconds = seconds_since(since, now)
    if seconds is None:
        return _NEVER
    return 0 if seconds < 1e-9 else max(0, int(math.log2(seconds * 1e9)))
