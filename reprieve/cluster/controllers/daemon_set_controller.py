"""DaemonSets: a pod on each node that it may run on, which is pinned there and scheduled like any other.

There are no ControllerRevisions, no surge and no adoption: the generation of the template tells old pods, which are
replaced as `maxUnavailable` allows it.

Upstream: pkg/controller/daemon, daemon_controller.go, podsShouldBeOnNode; update.go, rollingUpdate.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import final

from extender.rules.api_resources import DAEMON_SETS, NODES, PODS, Object
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.node import Node, NodeSpec
from extender.values.workloads.daemon_sets import GENERATION_LABEL, DaemonPods, node_of, template_generation
from extender.values.workloads.deployments import scaled_value
from reprieve.cluster.controllers.controller_loop import BURST, SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedNode, ObservedPod
from reprieve.cluster.controllers.replica_set_controller import changed_owners

_OnNodes = Mapping[str, Sequence[ObservedPod]]


@final
class DaemonSets(Controller):
    """Controls apps/v1 DaemonSets. Keys are those of DaemonSets."""

    name = "daemonset"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._known: set[Key] = set()

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        seen = new or old
        if seen is not None and seen.resource is DAEMON_SETS:
            if new is None:
                self._known.discard(seen.key)
            else:
                self._known.add(seen.key)
                self.queue.add(seen.key)
        elif seen is not None and seen.resource is NODES and _place(old) != _place(new):
            for key in self._known:
                self.queue.add_after(key, SETTLING)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for key in changed_owners(old, new, DAEMON_SETS):
            self.queue.add_after(key, SETTLING)

    def reconcile(self, key: Key) -> Steps:
        seen = self.cluster.get(DAEMON_SETS, *key)
        if seen is None or seen.deleted:
            return
        content = seen.content()
        generation, pods = template_generation(content), DaemonPods(content)
        on_nodes: dict[str, list[ObservedPod]] = {}
        for pod in self.cluster.pods_of(seen.uid).pods.values():
            on_nodes.setdefault(pod.node or node_of(pod.content()), []).append(pod)
        nodes = {
            name: Node(
                metadata=ObjectMeta(name=name, labels=dict(node.labels.of)), spec=NodeSpec(taints=[*node.taints])
            )
            for (_, name), node in self.cluster.all(NODES).items()
            if isinstance(node, ObservedNode)
        }
        wanted = [name for name, node in nodes.items() if pods.may_run_on(node)]
        yield from changed_status(seen, content, _status(content, wanted, on_nodes, generation))
        missing = (name for name in wanted if name not in on_nodes)
        labels = {
            **((content["spec"]["template"].get("metadata") or {}).get("labels") or {}),
            GENERATION_LABEL: generation,
        }
        for name in islice(missing, BURST):
            yield Create(PODS, seen.namespace, pods.on(name, generateName=f"{seen.name}-", labels=labels))
        stays = {name for name in on_nodes if name in nodes and pods.may_stay_on(nodes[name])}
        gone = [pod for name, there in on_nodes.items() for pod in _surplus(there, stays=name in stays)]
        for pod in islice((each for each in gone if each.node in nodes or not each.node), BURST):
            yield Delete(pod)
        if not gone:
            yield from _renewed(content, wanted, on_nodes, generation)


def _place(node: Observed | None) -> object:
    """What decides whether pods are put on a node."""
    return (node.labels, node.taints) if isinstance(node, ObservedNode) else None


def _surplus(pods: Sequence[ObservedPod], *, stays: bool) -> list[ObservedPod]:
    """The pods on one node that have to go: all but the oldest that is not finished."""
    living = sorted((pod for pod in pods if pod.is_active), key=lambda pod: (pod.created, not pod.node, pod.name))
    kept = living[:1] if stays else []
    return [pod for pod in pods if not pod.deleted and pod not in kept]


def _renewed(content: Object, wanted: Sequence[str], on_nodes: _OnNodes, generation: str) -> Steps:
    """Deletes pods of an old template: those that are not ready, and of the others as many as may be missing."""
    strategy = content["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    value = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    missing = sum(not any(pod.is_ready and pod.is_active for pod in on_nodes.get(name, ())) for name in wanted)
    left = max(scaled_value(value, len(wanted), round_up=True), 1) - missing
    for name in wanted:
        for pod in on_nodes.get(name, ()):
            if pod.is_active and pod.labels.of.get(GENERATION_LABEL) != generation and (left > 0 or not pod.is_ready):
                left -= pod.is_ready
                yield Delete(pod)


def _status(content: Object, wanted: Sequence[str], on_nodes: _OnNodes, generation: str) -> Object:
    placed = [on_nodes[name] for name in wanted if name in on_nodes]
    ready = sum(any(pod.is_ready and pod.is_active for pod in pods) for pods in placed)
    updated = sum(any(pod.labels.of.get(GENERATION_LABEL) == generation for pod in pods) for pods in placed)
    counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": len(wanted) - ready}
    return {
        **{name: value for name, value in (content.get("status") or {}).items() if name not in counts},
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": len(on_nodes) - len(placed),
        "desiredNumberScheduled": len(wanted),
        "numberReady": ready,
        "observedGeneration": content["metadata"].get("generation", 0),
        **{name: number for name, number in counts.items() if number},
    }
