"""Taints that say what a node's spec and conditions say, so that a scheduler need only look at taints.

A node without a Ready condition is left alone: nobody has said anything about it yet.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass, processTaintBaseEviction (v1.36.2).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, final

from extender.embedded.controllers.conditions import timestamp
from extender.embedded.controllers.controller import Controller, Steps
from extender.embedded.controllers.seen import Key, NodeTaint, Seen, SeenNode, SeenPod
from extender.embedded.controllers.writes import Update
from extender.embedded.resources import Object
from extender.objects.tolerations import NO_EXECUTE, NO_SCHEDULE

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_BY_CONDITION: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_OURS: Final = frozenset({UNSCHEDULABLE, *(key for statuses in _BY_CONDITION.values() for key in statuses.values())})
_EVICTING: Final = frozenset({NOT_READY, UNREACHABLE})


@final
class NodeTaints(Controller):
    """Keys are those of nodes."""

    name = "node lifecycle"

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Nodes whose taints are not what they should be."""
        if isinstance(new, SeenNode) and wanted_taints(new) != present_taints(new):
            self.queue.add(new.key)

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Pods do not matter."""

    def reconcile(self, key: Key) -> Steps:
        """Put the taints right; those of others stay."""
        node = self.cluster.node(key[1])
        if node is None or node.deleted:
            return
        if wanted_taints(node) != present_taints(node):
            content = node.content()
            content["spec"] = with_taints(content.get("spec") or {}, node, self.now())
            yield Update(node, content)


def wanted_taints(node: SeenNode) -> set[tuple[str, str]]:
    """(key, effect) of the taints that follow from the node's spec and conditions."""
    return set(_wanted(node))


def _wanted(node: SeenNode) -> Iterator[tuple[str, str]]:
    if node.unschedulable:
        yield UNSCHEDULABLE, NO_SCHEDULE
    for condition, statuses in _BY_CONDITION.items():
        taint = statuses.get(node.conditions.get(condition, ""))
        if taint is not None:
            yield taint, NO_SCHEDULE
            if taint in _EVICTING:
                yield taint, NO_EXECUTE


def present_taints(node: SeenNode) -> set[tuple[str, str]]:
    """(key, effect) of the taints of these kinds that the node has; those of a node that says nothing of itself count as wanted."""
    silent = _EVICTING if "Ready" not in node.conditions else frozenset()
    return {(taint.key, taint.effect) for taint in node.taints if _is_ours(taint) and taint.key not in silent}


def with_taints(spec: Object, node: SeenNode, now: datetime) -> Object:
    """The node's spec with the taints that are wanted."""
    wanted, present = wanted_taints(node), present_taints(node)
    surplus = present - wanted
    kept = [taint for taint in spec.get("taints") or () if (taint.get("key"), taint.get("effect")) not in surplus]
    added = [{"key": key, "effect": effect, "timeAdded": timestamp(now)} for key, effect in _wanted(node) if (key, effect) not in present]
    result = {name: value for name, value in spec.items() if name != "taints"}
    return result | {"taints": [*kept, *added]} if kept or added else result


def _is_ours(taint: NodeTaint) -> bool:
    return taint.key in _OURS and (taint.effect == NO_SCHEDULE or (taint.effect == NO_EXECUTE and taint.key in _EVICTING))
