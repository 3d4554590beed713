"""DaemonSets: the nodes that their pods run on, and how a pod is pinned to one.

Upstream: pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod;
pkg/controller/daemon/util/daemonset_util.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

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
GENERATION_LABEL: Final = "pod-template-generation"
"""The label of pods with the generation of the template that they were made from."""
GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet with the generation of its template."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


@final
class DaemonPods:
    """The pods of a DaemonSet: where they run, and what they are there."""

    def __init__(self, daemon_set: Object) -> None:
        self._template = pod_from_template((daemon_set.get("spec") or {}).get("template") or {}, daemon_set)
        self._pod = decoding.convert(Pod, self._template)
        spec = self._pod.spec
        always = [*_ALWAYS_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.host_network else [])]
        self._tolerations = Tolerations(
            (*spec.tolerations, *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in always))
        )
        self._written = [
            *(self._template["spec"].get("tolerations") or ()),
            *({"key": key, "operator": "Exists", "effect": effect} for key, effect in always),
        ]

    def may_run_on(self, node: Node) -> bool:
        """Returns whether the node gets a pod."""
        return self._pod.spec.node_name in ("", node.name) and may_run_on(node, self._pod, self._tolerations)

    def may_stay_on(self, node: Node) -> bool:
        """Returns whether a pod that is on the node is left there."""
        taint = find_untolerated_taint(node.spec.taints, self._tolerations, ("NoExecute",), compares=True)
        return taint is None and parsed_node_affinity(self._pod).matches(node)

    def on(self, node: str, **metadata: Any) -> Object:
        """Returns the pod for a node, to which it is pinned, with this metadata besides the template's."""
        template, spec = self._template, self._template["spec"]
        pinned = {**spec, "tolerations": self._written, "affinity": pinned_to(spec.get("affinity") or {}, node)}
        return {**template, "metadata": {**template["metadata"], **metadata}, "spec": pinned}


def daemon_pods(daemon_set: Object, nodes: Sequence[Node]) -> Iterator[tuple[Node, Object]]:
    """Yields each node that a pod of the DaemonSet may run on with that pod, named after it and pinned to it."""
    pods = DaemonPods(daemon_set)
    for node in nodes:
        if pods.may_run_on(node):
            yield node, pods.on(node.name, name=f"{daemon_set['metadata']['name']}-{node.name}")


def template_generation(daemon_set: Object) -> str:
    """Returns how often the template has been written, the first time included."""
    return str((daemon_set["metadata"].get("annotations") or {}).get(GENERATION, "1"))


def node_of(pod: Object) -> str:
    """Returns the node of a DaemonSet's pod, even if it is not bound yet. Upstream: GetTargetNodeName."""
    spec = pod["spec"]
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    fields = (field for term in required.get("nodeSelectorTerms") or () for field in term.get("matchFields") or ())
    names = (name for field in fields if field.get("key") == NAME_FIELD for name in field.get("values") or ())
    return spec.get("nodeName") or next(names, "")


def may_run_on(node: Node, pod: Pod, tolerations: Tolerations) -> bool:
    """Returns whether a DaemonSet puts a pod like this one, with these tolerations, on the node."""
    return (
        parsed_node_affinity(pod).matches(node)
        and find_untolerated_taint(node.spec.taints, tolerations, compares=True) is None
    )


def pinned_to(affinity: Mapping[str, Any], node: str) -> Object:
    """Returns the affinity of a pod that may run on this node only (ReplaceDaemonSetPodNodeNameNodeAffinity)."""
    on_node = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
    required = {_REQUIRED: {"nodeSelectorTerms": [on_node]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
