"""DaemonSets: the nodes that their pods run on, and how a pod is pinned to one.

Upstream: pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod;
pkg/controller/daemon/util/daemonset_util.go (v1.36.2).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from extender.values.objects import decoding
from extender.values.objects.meta import Object
from extender.values.objects.node import Node
from extender.values.objects.node_selectors import NAME_FIELD, parsed_node_affinity
from extender.values.objects.pod import Pod, Toleration
from extender.values.objects.tolerations import Tolerations, find_untolerated_taint
from extender.values.workloads.templates import pod_from_template

_ALWAYS_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def daemon_pods(daemon_set: Object, nodes: Sequence[Node]) -> Iterator[tuple[Node, Object]]:
    """Yields each node that a pod of the DaemonSet may run on with that pod, which is named after the node and pinned
    to it.
    """
    template = pod_from_template((daemon_set.get("spec") or {}).get("template") or {}, daemon_set)
    pod, spec = decoding.convert(Pod, template), template["spec"]
    always = [*_ALWAYS_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if pod.spec.host_network else [])]
    tolerations = Tolerations(
        (*pod.spec.tolerations, *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in always))
    )
    written = [
        *(spec.get("tolerations") or ()),
        *({"key": key, "operator": "Exists", "effect": effect} for key, effect in always),
    ]
    for node in nodes:
        if may_run_on(node, pod, tolerations):
            name = f"{daemon_set['metadata']['name']}-{node.name}"
            pinned = {**spec, "tolerations": written, "affinity": pinned_to(spec.get("affinity") or {}, node.name)}
            yield node, {**template, "metadata": {**template["metadata"], "name": name}, "spec": pinned}


def may_run_on(node: Node, pod: Pod, tolerations: Tolerations) -> bool:
    """Returns whether a DaemonSet puts a pod like this one, with these tolerations, on the node."""
    return (
        parsed_node_affinity(pod).matches(node)
        and find_untolerated_taint(node.spec.taints, tolerations, compares=True) is None
    )


def pinned_to(affinity: Mapping[str, Any], node: str) -> Object:
    """Returns the affinity of a pod that may run on this node only. Upstream:
    ReplaceDaemonSetPodNodeNameNodeAffinity.
    """
    on_node = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
