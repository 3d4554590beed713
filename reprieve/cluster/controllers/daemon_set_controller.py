"""DaemonSets: one pod for each node that it may run on, pinned to the node and scheduled like any other.

There are no ControllerRevisions, no surge and no adoption: a pod with an older template generation is replaced as
`maxUnavailable` allows it.

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
        obj = new or old
        if obj is not None and obj.resource is DAEMON_SETS:
            if new is None:
                self._known.discard(obj.key)
            else:
                self._known.add(obj.key)
                self.queue.add(obj.key)
        elif obj is not None and obj.resource is NODES and _place(old) != _place(new):
            for key in self._known:
                self.queue.add_after(key, SETTLING)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for key in changed_owners(old, new, DAEMON_SETS):
            self.queue.add_after(key, SETTLING)

    def reconcile(self, key: Key) -> Steps:
        daemon_set = self.cluster.get(DAEMON_SETS, *key)
        if daemon_set is None or daemon_set.deleted:
            return
        content = daemon_set.content()
        generation, pods = template_generation(content), DaemonPods(content)
        on_nodes: dict[str, list[ObservedPod]] = {}
        for pod in self.cluster.pods_of(daemon_set.uid).pods.values():
            on_nodes.setdefault(pod.node or node_of(pod.content()), []).append(pod)
        nodes = {
            name: Node(
                metadata=ObjectMeta(name=name, labels=dict(node.labels.by_name)), spec=NodeSpec(taints=[*node.taints])
            )
            for (_, name), node in self.cluster.all(NODES).items()
            if isinstance(node, ObservedNode)
        }
        eligible = [name for name, node in nodes.items() if pods.may_run_on(node)]
        yield from changed_status(daemon_set, content, _status(content, eligible, on_nodes, generation))
        uncovered = (name for name in eligible if name not in on_nodes)
        labels = {
            **((content["spec"]["template"].get("metadata") or {}).get("labels") or {}),
            GENERATION_LABEL: generation,
        }
        for name in islice(uncovered, BURST):
            yield Create(PODS, daemon_set.namespace, pods.on(name, generateName=f"{daemon_set.name}-", labels=labels))
        stays = {name for name in on_nodes if name in nodes and pods.may_stay_on(nodes[name])}
        surplus = [pod for name, on_node in on_nodes.items() for pod in _surplus(on_node, stays=name in stays)]
        for pod in islice((pod for pod in surplus if pod.node in nodes or not pod.node), BURST):
            yield Delete(pod)
        if not surplus:
            yield from _renewed(content, eligible, on_nodes, generation)


def _place(node: Observed | None) -> object:
    """Returns the properties by which pods are put on a node; None if there is no node."""
    return (node.labels, node.taints) if isinstance(node, ObservedNode) else None


def _surplus(pods: Sequence[ObservedPod], *, stays: bool) -> list[ObservedPod]:
    """Returns the pods on one node that have to be deleted: all but the oldest that is not finished."""
    living = sorted((pod for pod in pods if pod.is_active), key=lambda pod: (pod.created, not pod.node, pod.name))
    survivors = living[:1] if stays else []
    return [pod for pod in pods if not pod.deleted and pod not in survivors]


def _renewed(content: Object, eligible: Sequence[str], on_nodes: _OnNodes, generation: str) -> Steps:
    """Deletes the unready pods of an old template, and as many ready ones as `maxUnavailable` allows."""
    strategy = content["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    value = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    unavailable = sum(not any(pod.is_ready and pod.is_active for pod in on_nodes.get(name, ())) for name in eligible)
    budget = max(scaled_value(value, len(eligible), round_up=True), 1) - unavailable
    for name in eligible:
        for pod in on_nodes.get(name, ()):
            if (
                pod.is_active
                and pod.labels.by_name.get(GENERATION_LABEL) != generation
                and (budget > 0 or not pod.is_ready)
            ):
                budget -= pod.is_ready
                yield Delete(pod)


def _status(content: Object, eligible: Sequence[str], on_nodes: _OnNodes, generation: str) -> Object:
    placed = [on_nodes[name] for name in eligible if name in on_nodes]
    ready = sum(any(pod.is_ready and pod.is_active for pod in pods) for pods in placed)
    updated = sum(any(pod.labels.by_name.get(GENERATION_LABEL) == generation for pod in pods) for pods in placed)
    counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": len(eligible) - ready}
    return {
        **{name: value for name, value in (content.get("status") or {}).items() if name not in counts},
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": len(on_nodes) - len(placed),
        "desiredNumberScheduled": len(eligible),
        "numberReady": ready,
        "observedGeneration": content["metadata"].get("generation", 0),
        **{name: number for name, number in counts.items() if number},
    }
