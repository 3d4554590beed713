"""NodeUnschedulable: cordoned nodes."""

from typing import Final, final

from extender import framework as fwk
from extender.objects.node import Taint
from extender.objects.tolerations import NO_SCHEDULE, tolerates

REASON: Final = "node(s) were unschedulable"

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What the node controller puts on a cordoned node; who tolerates it may run there."""


@final
class NodeUnschedulable(fwk.FilterPlugin):
    """No pod runs on a node with spec.unschedulable, unless it tolerates the taint that goes with it.

    Upstream: framework/plugins/nodeunschedulable/node_unschedulable.go (v1.36.2).
    """

    looks_at_pods = False
    looks_only_at_node = True

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Cordoned nodes are refused for good."""
        if any(tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in pod.spec.tolerations):
            return fwk.accept(len(rows))
        return fwk.reject(rows.unschedulable, REASON, unresolvable=True)
