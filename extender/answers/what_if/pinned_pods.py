"""Pods whose node is given before a scheduler sees them: those that name it, and those of DaemonSets on new nodes."""

from collections.abc import Container, Sequence

import msgspec
import numpy as np

from extender.answers.trial import Trial
from extender.engine.cache.cluster import Cluster
from extender.engine.snapshot import Rows
from extender.values import limits
from extender.values.objects.cluster import Key
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.node import Node
from extender.values.objects.pod import Affinity, Pod, PodStatus
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import PODS
from extender.values.objects.tolerations import tolerations_of
from extender.values.workloads.daemon_sets import may_run_on, pinned_to

# Pods that name their node.


def run_on_named_nodes(trial: Trial, pods: Sequence[Pod]) -> tuple[str, ...]:
    """Puts each pod on the node that it names, unless there is no such node or its kubelet refuses the pod, and returns
    sentences that say so. A pod whose status says that it runs is there in any case.

    Upstream: pkg/kubelet/lifecycle/predicate.go, Admit, as far as amounts go.
    """
    sentences = [_run(trial, pod) for pod in pods]
    first_sentences, more = sentences[: limits.PINNED_POD_SENTENCES], len(sentences) - limits.PINNED_POD_SENTENCES
    return (*first_sentences, f"{more} more pods name their nodes themselves") if more > 0 else tuple(first_sentences)


def _run(trial: Trial, pod: Pod) -> str:
    name = pod.spec.node_name
    what = f"{pod.key} is not scheduled, because it names node {name} itself"
    if name not in trial.cluster.nodes:
        return f"{what}; there is no such node, so it would not run and would be deleted"
    try:
        lacking = _lacking(trial.cluster, pod)
    except QuantityError as exc:
        return f"{what}; it cannot be read: {exc}"
    runs = pod.status.phase == "Running"
    if not lacking or runs:
        trial.changed(None, pod)
    if not lacking:
        return f"{what}, which accepts it"
    reasons = ", ".join(f"OutOf{resource}" for resource in lacking)
    return f"{what}, whose kubelet {'refuses' if runs else 'would refuse'} such a pod: {reasons}"


def _lacking(cluster: Cluster, pod: Pod) -> list[str]:
    snapshot = cluster.cache.update_snapshot()
    row = Rows.of(snapshot, np.array([snapshot.nodes.index[pod.spec.node_name]]))

    def free(resource: str) -> int:
        if resource == PODS:
            return int(row.allowed_pods[0] - row.pod_count[0])
        return int(row.allocatable_of(resource)[0] - row.requested_of(resource)[0])

    return [resource for resource, amount in requested_amounts(pod).items() if 0 < amount > free(resource)]


# Pods of DaemonSets.


def daemon_pods(cluster: Cluster, nodes: Sequence[Node], besides: Container[Key]) -> list[Pod]:
    """Returns the pods that DaemonSets put on the nodes, but those `besides` whose pods are made from their templates:
    each a copy of another pod of its DaemonSet, pinned to its node.

    The DaemonSets themselves are not in the cluster's cache. A node selector that they require is on their pods; node
    affinity that they require is not, since the DaemonSet controller replaces it by the node's name.
    """
    models: dict[Key, Pod] = {}
    for pod in (*cluster.cache.pods, *cluster.pending.values()) if nodes else ():
        for owner in pod.metadata.owner_references:
            key = pod.namespace, owner.name
            if owner.controller and owner.kind == "DaemonSet" and not pod.is_terminating and key not in besides:
                models.setdefault(key, pod)
    pods = []
    for (_, name), model in models.items():
        without_affinity, tolerations = replaced(model, spec=replaced(model.spec, affinity=None)), tolerations_of(model)
        allowed = (node.name for node in nodes if may_run_on(node, without_affinity, tolerations))
        pods += [_pinned(model, name, node) for node in allowed]
    return pods


def _pinned(model: Pod, daemon_set: str, node: str) -> Pod:
    name = f"{daemon_set}-{node}"
    affinity = convert(Affinity, pinned_to(msgspec.to_builtins(model.spec.affinity or Affinity()), node))
    return replaced(
        model,
        metadata=replaced(model.metadata, name=name, uid=f"{model.namespace}/{name}"),
        spec=replaced(model.spec, node_name="", affinity=affinity),
        status=PodStatus(phase="Pending"),
    )
