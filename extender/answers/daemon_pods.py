"""Pods that DaemonSets of the cluster put on nodes which are added to it."""

from collections.abc import Container, Sequence

import msgspec

from extender.cache.cluster import Cluster
from extender.objects.decoding import convert, replaced
from extender.objects.node import Node
from extender.objects.pod import Affinity, Pod, PodStatus
from extender.workloads.daemon_sets import may_run_on, pinned_to

Key = tuple[str, str]
"""(namespace, name)."""


def daemon_pods(cluster: Cluster, nodes: Sequence[Node], besides: Container[Key]) -> list[Pod]:
    """A pod for each of the nodes, of each DaemonSet that has pods and may run there: one like those it has, pinned to the node.

    The DaemonSets themselves are not known here. Node affinity that is required by one cannot be seen on its pods, which carry their
    node's name instead; its node selector can.

    Arguments:
        besides: DaemonSets that make their pods by themselves.
    """
    likeness: dict[Key, Pod] = {}
    for pod in (*cluster.cache.pods, *cluster.pending.values()) if nodes else ():
        for owner in pod.metadata.owner_references:
            key = pod.namespace, owner.name
            if owner.controller and owner.kind == "DaemonSet" and not pod.is_terminating and key not in besides:
                likeness.setdefault(key, pod)
    made = []
    for (_, name), like in likeness.items():
        for node in nodes:
            pod = _pinned(like, name, node.name)
            if may_run_on(node, _anywhere(pod), pod.spec.tolerations):
                made.append(pod)
    return made


def _pinned(like: Pod, daemon_set: str, node: str) -> Pod:
    name = f"{daemon_set}-{node}"
    affinity = convert(Affinity, pinned_to(msgspec.to_builtins(like.spec.affinity or Affinity()), node))
    return replaced(
        like,
        metadata=replaced(like.metadata, name=name, uid=f"{like.namespace}/{name}"),
        spec=replaced(like.spec, node_name="", affinity=affinity),
        status=PodStatus(phase="Pending"),
    )


def _anywhere(pod: Pod) -> Pod:
    """The pod as far as its node selector says where it may run."""
    return replaced(pod, spec=replaced(pod.spec, affinity=None))
