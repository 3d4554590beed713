"""NodeUnschedulable: keeps pods off cordoned nodes."""

from collections.abc import Iterable, Sequence
from typing import Final, final

from extender.engine import framework as fwk
from extender.values.objects.node import Taint
from extender.values.objects.tolerations import NO_SCHEDULE, tolerating, tolerations_of

REASON: Final = "node(s) were unschedulable"

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The node controller's taint on a cordoned node. Pods that tolerate it may run there."""


@final
class NodeUnschedulable(fwk.SignPlugin, fwk.FilterPlugin, fwk.AdvicePlugin):
    """Refuses nodes with spec.unschedulable, unless the pod tolerates the matching taint.

    Upstream: framework/plugins/nodeunschedulable/node_unschedulable.go (v1.36.2).
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT, _after_node_change),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]

    def sign_pod(self, pod: fwk.Pod) -> bool:
        return _tolerates_cordons(pod)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods does not uncordon a node."""
        if _tolerates_cordons(pod):
            return fwk.accept(len(rows))
        return fwk.reject(rows.unschedulable, REASON, unresolvable=True)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Once uncordoned, a node takes the pod as it would a pod that tolerates the cordon and its taint."""
        return [fwk.Suggestion("node", "uncordon nodes", tolerating(pod, [UNSCHEDULABLE_TAINT]))]


def _tolerates_cordons(pod: fwk.Pod) -> bool:
    return tolerations_of(pod).cover(UNSCHEDULABLE_TAINT)


def _after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    return fwk.queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))


def _after_toleration_change(pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
    # The old tolerations need no check: with them the plugin would not have refused the pod.
    return fwk.queue_if(new.uid == pod.uid and _tolerates_cordons(new))
