"""StatefulSets: pods with ordinals, created and deleted one after the other, each with its own claims.

There are no ControllerRevisions: a pod that is recreated always gets the current template.

Upstream: pkg/controller/statefulset/stateful_set_control.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from typing import Final, final

from extender.embedded.api_resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object
from extender.embedded.controllers.controller_loop import SETTLING, Controller, ControllerContext, Steps
from extender.embedded.controllers.controller_writes import Create, Delete, LookAgain, Update, adopted, released
from extender.embedded.controllers.seen_objects import Key, Seen, SeenPod
from extender.embedded.controllers.selector_index import SelectorIndex
from extender.workloads.stateful_sets import REVISION_LABEL, claims_of, ordinal_of, pod_of, revision_name

Ordinals = Mapping[int, SeenPod]


@final
class StatefulSets(Controller):
    """Controls apps/v1 StatefulSets. Keys are those of StatefulSets."""

    name = "statefulset"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selecting = SelectorIndex()

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        if new is not None and new.resource is STATEFUL_SETS:
            self._selecting.put(new.key, new.content())
            self.queue.add(new.key)
        elif new is None and old is not None and old.resource is STATEFUL_SETS:
            self._selecting.remove(old.key)

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            owner = pod.controller
            if owner is not None:
                if owner.kind == STATEFUL_SETS.kind and owner.api_version == STATEFUL_SETS.api_version:
                    self.queue.add_after((pod.namespace, owner.name), SETTLING)
            elif pod is new:
                for key in self._selecting.selecting(pod.namespace, pod.labels):
                    if ordinal_of(pod.name, key[1]) is not None:
                        self.queue.add(key)

    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(STATEFUL_SETS, *key)
        if seen is None:
            return
        moves = list(self._moves(seen))
        if moves:
            yield from moves
            yield LookAgain(0)
            return
        content = seen.content()
        pods = {
            ordinal: pod for pod in self.cluster.pods_of(seen.uid).pods.values() if (ordinal := ordinal_of(pod.name, seen.name)) is not None
        }
        revision = revision_name(content)
        status = stateful_status(content, pods, revision)
        if status != (content.get("status") or {}):
            yield Update(seen, content | {"status": status}, "status")
        if not seen.deleted:
            yield from self._advance(seen, content, pods, revision)

    def _moves(self, seen: Seen) -> Sequence[Update]:
        selector = self._selecting.selector(seen.key)
        group = self.cluster.pods_of(seen.uid)
        moves = [released(pod, seen.uid) for pod in group.pods.values() if not selector.matches(pod.labels.of)]
        if seen.deleted:
            return moves
        for labels, pods in self.cluster.loose_pods(seen.namespace).items():
            if selector.matches(labels.of):
                moves += [adopted(pod, seen) for pod in pods.values() if ordinal_of(pod.name, seen.name) is not None]
        return moves

    def _advance(self, seen: Seen, content: Object, pods: Ordinals, revision: str) -> Steps:
        spec = content["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + spec.get("replicas", 1))
        in_turn = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is not None and pod.is_finished and not pod.deleted:
                yield Delete(pod)
            elif pod is None:
                yield from self._claims(seen, content, ordinal)
                yield Create(PODS, seen.namespace, pod_of(content, ordinal))
            elif pod.is_ready and pod.is_active:
                continue
            if in_turn:
                return
        for ordinal in sorted((each for each in pods if each not in wanted), reverse=True):
            if not pods[ordinal].deleted:
                yield Delete(pods[ordinal])
            if in_turn:
                return
        yield from _renewed(content, pods, wanted, revision)

    def _claims(self, seen: Seen, content: Object, ordinal: int) -> Steps:
        for claim in claims_of(content, ordinal):
            if self.cluster.get(PERSISTENT_VOLUME_CLAIMS, seen.namespace, claim["metadata"]["name"]) is None:
                yield Create(PERSISTENT_VOLUME_CLAIMS, seen.namespace, claim)


def _renewed(content: Object, pods: Ordinals, wanted: Sequence[int], revision: str) -> Steps:
    """Deletes the last pod of an old template, if all pods after it are ready. Upstream: the end of updateStatefulSet."""
    strategy = content["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    first = max((strategy.get("rollingUpdate") or {}).get("partition", 0), 0)
    for ordinal in sorted(wanted, reverse=True):
        if ordinal < first:
            return
        pod = pods.get(ordinal)
        if pod is None or pod.deleted:
            return
        if pod.labels.of.get(REVISION_LABEL) != revision:
            yield Delete(pod)
            return
        if not pod.is_ready:
            return


def stateful_status(content: Object, pods: Ordinals, revision: str) -> Object:
    """Returns the status that follows from the pods."""
    old: Final = content.get("status") or {}
    replicas = content["spec"].get("replicas", 1)
    current = old.get("currentRevision") or revision
    living = [pod for pod in pods.values() if not pod.is_finished]
    ready = sum(1 for pod in living if pod.is_ready and not pod.deleted)
    updated = sum(1 for pod in living if pod.labels.of.get(REVISION_LABEL) == revision and not pod.deleted)
    if updated == replicas == ready == len(living):
        current = revision
    counts = {
        "readyReplicas": ready,
        "currentReplicas": sum(1 for pod in living if pod.labels.of.get(REVISION_LABEL) == current and not pod.deleted),
        "updatedReplicas": updated,
    }
    return {
        **{name: value for name, value in old.items() if name not in counts},
        "observedGeneration": content["metadata"].get("generation", 0),
        "replicas": len(living),
        "availableReplicas": ready,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": old.get("collisionCount", 0),
        **{name: number for name, number in counts.items() if number},
    }
