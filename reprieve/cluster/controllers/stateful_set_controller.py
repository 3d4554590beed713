"""StatefulSets: pods with ordinals, created and deleted one after the other, each with its own claims.

There are no ControllerRevisions: a pod that is recreated always gets the current template.

Upstream: pkg/controller/statefulset/stateful_set_control.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import final

from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object
from extender.values.workloads.stateful_sets import REVISION_LABEL, claims_of, ordinal_of, pod_of, revision_name
from reprieve.cluster.controllers.controller_loop import BURST, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod
from reprieve.cluster.controllers.replica_set_controller import SelectingController

Ordinals = Mapping[int, ObservedPod]


@final
class StatefulSets(SelectingController):
    """Keeps the pods of each StatefulSet, which have ordinals."""

    name = "statefulset"
    resource = STATEFUL_SETS

    def adopts(self, pod: ObservedPod, name: str) -> bool:
        return ordinal_of(pod.name, name) is not None

    def reconcile(self, key: Key) -> Steps:
        stateful_set = self.cluster.get(STATEFUL_SETS, *key)
        if stateful_set is None:
            return
        if moves := list(self.moves(stateful_set)):
            yield from moves
            return
        content = stateful_set.content()
        owned = self.cluster.pods_of(stateful_set.uid).pods.values()
        pods = {ordinal: pod for pod in owned if (ordinal := ordinal_of(pod.name, stateful_set.name)) is not None}
        revision = revision_name(content)
        yield from changed_status(stateful_set, content, stateful_status(content, pods.values(), revision))
        if not stateful_set.deleted:
            # The changed pods have the set looked at again.
            yield from islice(self._advance(stateful_set, content, pods, revision), BURST)

    def _advance(self, stateful_set: Observed, content: Object, pods: Ordinals, revision: str) -> Steps:
        spec = content["spec"]
        first = (spec.get("ordinals") or {}).get("start", 0)
        ordinals = range(first, first + spec.get("replicas", 1))
        in_turn = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        for ordinal in ordinals:
            pod = pods.get(ordinal)
            if pod is not None and pod.is_finished and not pod.deleted:
                yield Delete(pod)
            elif pod is None:
                yield from self._claims(stateful_set, content, ordinal)
                yield Create(PODS, stateful_set.namespace, pod_of(content, ordinal))
            elif pod.is_ready and pod.is_active:
                continue
            if in_turn:
                return
        for ordinal in sorted((ordinal for ordinal in pods if ordinal not in ordinals), reverse=True):
            if not pods[ordinal].deleted:
                yield Delete(pods[ordinal])
            if in_turn:
                return
        yield from _renewed(content, pods, ordinals, revision)

    def _claims(self, stateful_set: Observed, content: Object, ordinal: int) -> Steps:
        for claim in claims_of(content, ordinal):
            if self.cluster.get(PERSISTENT_VOLUME_CLAIMS, stateful_set.namespace, claim["metadata"]["name"]) is None:
                yield Create(PERSISTENT_VOLUME_CLAIMS, stateful_set.namespace, claim)


def _renewed(content: Object, pods: Ordinals, ordinals: Sequence[int], revision: str) -> Steps:
    """Deletes the last pod of an old template if all later pods are ready (the end of updateStatefulSet)."""
    strategy = content["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    first = max((strategy.get("rollingUpdate") or {}).get("partition", 0), 0)
    for ordinal in reversed(ordinals):
        if ordinal < first:
            return
        pod = pods.get(ordinal)
        if pod is None or pod.deleted:
            return
        if pod.labels.by_name.get(REVISION_LABEL) != revision:
            yield Delete(pod)
            return
        if not pod.is_ready:
            return


def stateful_status(content: Object, pods: Iterable[ObservedPod], revision: str) -> Object:
    living = [pod for pod in pods if not pod.is_finished]
    staying = [pod for pod in living if not pod.deleted]
    ready = sum(pod.is_ready for pod in staying)
    revisions = Counter(pod.labels.by_name.get(REVISION_LABEL) for pod in staying)
    old = content.get("status") or {}
    current = old.get("currentRevision") or revision
    if revisions[revision] == content["spec"].get("replicas", 1) == ready == len(living):
        current = revision
    counts = {
        "readyReplicas": ready,
        "currentReplicas": revisions[current],
        "updatedReplicas": revisions[revision],
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
