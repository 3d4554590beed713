"""What extenders are asked, under Go's field names: every member is there, null where Go has a nil.

Pods and nodes are written as far as our objects hold them, which is what scheduling looks at; empty members are left out, as in Go.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1, types.go (v1.36.2).
"""

from collections.abc import Sequence
from typing import Final, final

import msgspec
from msgspec import Raw

from extender.framework import NodeVictims
from extender.objects.node import Node
from extender.objects.pod import Pod

_ENCODE: Final = msgspec.json.Encoder(order="deterministic").encode


class _NodeList(msgspec.Struct, frozen=True):
    metadata: dict[str, str]
    items: list[Raw] | None


class _ExtenderArgs(msgspec.Struct, frozen=True, rename="pascal"):
    pod: Pod
    nodes: _NodeList | None
    node_names: Sequence[str] | None


class _Victims(msgspec.Struct, frozen=True):
    pods: Sequence[Pod] = msgspec.field(name="Pods")
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class _MetaPod(msgspec.Struct, frozen=True):
    uid: str = msgspec.field(name="UID")


class _MetaVictims(msgspec.Struct, frozen=True):
    pods: list[_MetaPod] = msgspec.field(name="Pods")
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class _ExtenderPreemptionArgs(msgspec.Struct, frozen=True, rename="pascal"):
    pod: Pod
    node_name_to_victims: dict[str, _Victims] | None
    node_name_to_meta_victims: dict[str, _MetaVictims] | None


class _ExtenderBindingArgs(msgspec.Struct, frozen=True):
    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


@final
class NodeBodies:
    """Nodes as JSON. State: what was written for the nodes of late, so that a node that has not changed is not written again."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[Node, Raw]] = {}

    def of(self, nodes: Sequence[Node]) -> list[Raw]:
        """One text a node."""
        if len(self._written) > 2 * len(nodes) + 1000:
            self._written.clear()
        return [self._of(node) for node in nodes]

    def _of(self, node: Node) -> Raw:
        known = self._written.get(node.name)
        if known is None or known[0] is not node:
            known = self._written[node.name] = node, Raw(_ENCODE(node))
        return known[1]


def extender_args(pod: Pod, nodes: Sequence[Node], bodies: NodeBodies | None) -> bytes:
    """ExtenderArgs, for filter and prioritize.

    Arguments:
        bodies: None to send the nodes by name.
    """
    if bodies is None:
        return _ENCODE(_ExtenderArgs(pod, None, [node.name for node in nodes]))
    return _ENCODE(_ExtenderArgs(pod, _NodeList({}, bodies.of(nodes) or None), None))


def preemption_args(pod: Pod, victims: Sequence[NodeVictims], *, by_uid: bool) -> bytes:
    """ExtenderPreemptionArgs."""
    if by_uid:
        meta = {each.node: _MetaVictims([_MetaPod(victim.uid) for victim in each.pods], each.num_pdb_violations) for each in victims}
        return _ENCODE(_ExtenderPreemptionArgs(pod, None, meta))
    in_full = {each.node: _Victims(each.pods, each.num_pdb_violations) for each in victims}
    return _ENCODE(_ExtenderPreemptionArgs(pod, in_full, None))


def binding_args(pod: Pod, node: str) -> bytes:
    """ExtenderBindingArgs."""
    return _ENCODE(_ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node))
