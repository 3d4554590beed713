"""NodeName: restricts a pod to the node that it names."""

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk

REASON: Final = "node(s) didn't match the requested node name"


@final
class NodeName(fwk.SignPlugin, fwk.FilterPlugin):
    """A pod with spec.nodeName may only run on that node.

    Upstream: framework/plugins/nodename/node_name.go.
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]

    def sign_pod(self, pod: fwk.Pod) -> str:
        return pod.spec.node_name

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods does not rename a node."""
        name = pod.spec.node_name
        if not name:
            return fwk.accept(len(rows))
        place = rows.snapshot.nodes.index.get(name)
        is_other_node = np.ones(len(rows), np.bool_) if place is None else rows.node != place
        return fwk.reject(is_other_node, REASON, unresolvable=True)
