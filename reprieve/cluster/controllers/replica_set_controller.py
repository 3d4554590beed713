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
    """Controls the objects of one resource, which find their pods by selectors. Keys are those of the objects."""

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
        """Returns whether an object of this name adopts a selected pod without a controller."""
        del pod, name
        return True

    def moves(self, workload: Observed) -> Steps:
        """Releases pods that are no longer selected, adopts others, and has the object looked at again."""
        moves = list(islice(self._moves(workload), BURST))
        if moves:
            yield from moves
            yield RequeueAfter(0)

    def _moves(self, workload: Observed) -> Iterator[Update]:
        selector, group = self._selecting.selector(workload.key), self.cluster.pods_of(workload.uid)
        strangers = {labels for labels in group.labels if not selector.matches(labels.by_name)}
        if strangers:
            yield from (released(pod, workload.uid) for pod in group.pods.values() if pod.labels in strangers)
        if not workload.deleted:
            for labels, pods in self.cluster.loose_pods(workload.namespace).items():
                if workload.key in self._selecting.selecting(workload.namespace, labels):
                    yield from (adopted(pod, workload) for pod in pods.values() if self.adopts(pod, workload.name))


class _Replicas(SelectingController):
    def reconcile(self, key: Key) -> Steps:
        workload = self.cluster.get(self.resource, *key)
        if workload is None:
            return
        if moves := list(self.moves(workload)):
            yield from moves
            return
        content, group = workload.content(), self.cluster.pods_of(workload.uid)
        status, delay = self._status(content, group)
        surplus = group.active - content["spec"].get("replicas", 1)
        if workload.deleted or not surplus:
            yield from self._write_status(
                workload, content, without_condition(status.get("conditions"), "ReplicaFailure"), status
            )
        elif surplus > 0:
            related = [
                pod for sibling in self._siblings(workload) for pod in self.cluster.pods_of(sibling.uid).pods.values()
            ]
            crowd = Counter(pod.node for pod in related if pod.is_active and pod.node)
            active = [pod for pod in group.pods.values() if pod.is_active]
            yield from self._write_status(workload, content, status.get("conditions") or [], status)
            for pod in pods_to_delete(active, crowd, min(surplus, BURST), self.now()):
                yield Delete(pod)
        else:
            yield from self._grow(workload, content, status, min(-surplus, BURST))
        if delay is not None:
            yield RequeueAfter(delay)

    def _grow(self, workload: Observed, content: Object, status: Object, count: int) -> Steps:
        template = content["spec"].get("template") or {}
        try:
            for _ in range(count):
                pod = pod_from_template(template, content)
                pod["metadata"]["generateName"] = f"{workload.name}-"
                yield Create(PODS, workload.namespace, pod)
        except ApiStatus as refused:
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused.message}
            conditions = status.get("conditions") or []
            if (condition(conditions, "ReplicaFailure") or {}).get("message") != refused.message:
                conditions = with_condition(conditions, failure, self.now())
            yield from self._write_status(workload, content, conditions, status)
            raise
        yield from self._write_status(
            workload, content, without_condition(status.get("conditions"), "ReplicaFailure"), status
        )

    def _siblings(self, workload: Observed) -> Sequence[Observed]:
        owner = workload.controller
        return [workload] if owner is None else list(self.cluster.controlled(self.resource, owner.uid))

    def _status(self, content: Object, group: OwnedPods) -> tuple[Object, float | None]:
        """Returns the status that the pods imply, and the seconds after which it changes without a write."""
        spec = content["spec"]
        available, delay = group.ready, None
        if spec.get("minReadySeconds"):
            available, delay = self._available(group, spec["minReadySeconds"])
        template_labels = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
        status = dict(content.get("status") or {})
        counts = {
            "replicas": group.active,
            "fullyLabeledReplicas": _num_with_labels(group, template_labels),
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
        return status, delay

    def _available(self, group: OwnedPods, seconds: int) -> tuple[int, float | None]:
        available, delay = 0, None
        now = self.now()
        for pod in group.pods.values():
            if not (pod.is_active and pod.is_ready):
                continue
            ready = condition((pod.content().get("status") or {}).get("conditions"), "Ready") or {}
            since = moment_of(ready.get("lastTransitionTime"))
            remaining = seconds - (now - since).total_seconds() if since is not None else 0.0
            if remaining <= 0:
                available += 1
            else:
                delay = remaining if delay is None else min(delay, remaining)
        return available, delay

    def _write_status(self, workload: Observed, content: Object, conditions: list[Object], status: Object) -> Steps:
        new = dict(status)
        if conditions:
            new["conditions"] = conditions
        else:
            new.pop("conditions", None)
        yield from changed_status(workload, content, new)


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


def _num_with_labels(group: OwnedPods, template_labels: Mapping[str, str]) -> int:
    if all(template_labels.items() <= labels.by_name.items() for labels in group.labels):
        return group.active
    return sum(
        1 for pod in group.pods.values() if pod.is_active and template_labels.items() <= pod.labels.by_name.items()
    )


def changed_owners(old: ObservedPod | None, new: ObservedPod | None, resource: Resource) -> Iterator[Key]:
    """Yields the keys of the pod's controllers of this resource, if they have to look at its change."""
    if old is not None and new is not None and same_for_its_owner(old, new):
        return
    for pod in (old, new):
        owner = pod.controller if pod is not None else None
        if pod is None or owner is None:
            continue
        if owner.kind == resource.kind and owner.api_version == resource.api_version:
            yield pod.namespace, owner.name


def same_for_its_owner(old: ObservedPod, new: ObservedPod) -> bool:
    """Returns whether a pod's controller has nothing to do about a change of the pod."""
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
    """Returns the sort key of a pod; the smallest is deleted first."""
    content = pod.content()
    status = content.get("status") or {}
    ready = condition(status.get("conditions"), "Ready") if pod.is_ready else None
    restarts = max(
        (container.get("restartCount") or 0 for container in status.get("containerStatuses") or ()), default=0
    )
    cost = (content["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return (
        *deletion_rank(node=pod.node, phase=pod.phase, is_ready=pod.is_ready, cost=cost, neighbours=neighbours),
        _age_class(None if ready is None else ready.get("lastTransitionTime"), now),
        -restarts,
        _age_class(pod.created, now),
        pod.uid,
    )


def _age_class(since: str | None, now: datetime) -> int:
    """Returns the logarithm of an age, so that the youngest are not always deleted first (logarithmicRankDiff)."""
    seconds = seconds_since(since, now)
    if seconds is None:
        return _NEVER
    return 0 if seconds < 1e-9 else max(0, int(math.log2(seconds * 1e9)))
