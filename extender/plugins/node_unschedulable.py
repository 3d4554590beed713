"""NodeUnschedulable: cordoned nodes."""

from collections.abc import Iterable, Sequence
from typing import Final, final

from extender import framework as fwk
from extender.objects.node import Taint
from extender.objects.tolerations import NO_SCHEDULE, tolerates, tolerating

REASON: Final = "node(s) were unschedulable"

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What the node controller puts on a cordoned node; who tolerates it may run there."""


@final
class NodeUnschedulable(fwk.FilterPlugin, fwk.AdvicePlugin):
    """No pod runs on a node with spec.unschedulable, unless it tolerates the taint that goes with it.

    Upstream: framework/plugins/nodeunschedulable/node_unschedulable.go (v1.36.2).
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """A node is open to pods now, or the pod tolerates closed ones."""
        return [
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT, _after_node_change),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Cordoned nodes are refused for good."""
        if _tolerates_cordons(pod):
            return fwk.accept(len(rows))
        return fwk.reject(rows.unschedulable, REASON, unresolvable=True)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """An uncordoned node takes the pod as the cordoned one would if the pod tolerated the cordon and the taint that goes with it."""
        return [fwk.Suggestion("node", "uncordon nodes", tolerating(pod, [UNSCHEDULABLE_TAINT]))]


def _tolerates_cordons(pod: fwk.Pod) -> bool:
    return any(tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in pod.spec.tolerations)


def _after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    return fwk.queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))


def _after_toleration_change(pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
    # What it tolerated before need not be asked: then this plugin would not have refused it.
    return fwk.queue_if(new.uid == pod.uid and _tolerates_cordons(new))
