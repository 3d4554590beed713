"""Which events may help a pod that would have exceeded the skew.

Upstream: framework/plugins/podtopologyspread/plugin.go, isSchedulableAfterPodChange, isSchedulableAfterNodeChange
(v1.36.2).
"""

from collections.abc import Sequence

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread.constraints import CompiledConstraint


def after_pod_change(
    pod: fwk.Pod, constraints: Sequence[CompiledConstraint], old: fwk.Pod | None, new: fwk.Pod | None
) -> fwk.QueueingHint:
    """Queues the pod if a counted pod was added, deleted or relabelled, or if it tolerates more itself and taints
    count.
    """
    if old is None or new is None:
        moved = new if new is not None else old
        counted = moved is not None and any(constraint.selector.matches(moved.labels) for constraint in constraints)
        return fwk.queue_if(counted)
    if (
        new.uid == pod.uid
        and old.spec.tolerations != new.spec.tolerations
        and any(it.honors_taints for it in constraints)
    ):
        return fwk.QueueingHint.QUEUE
    return fwk.queue_if(any(it.selector.matches(old.labels) != it.selector.matches(new.labels) for it in constraints))


def is_involved(pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> bool:
    """True if the event may concern the pod: it is about itself, or about a pod in its namespace that is on a node or
    nominated to one.
    """
    return all(other is None or other.uid == pod.uid or _is_placed_beside(pod, other) for other in (old, new))


def _is_placed_beside(pod: fwk.Pod, other: fwk.Pod) -> bool:
    return bool(other.spec.node_name or other.status.nominated_node_name) and other.namespace == pod.namespace


def after_node_change(
    constraints: Sequence[CompiledConstraint], old: fwk.Node | None, new: fwk.Node | None
) -> fwk.QueueingHint:
    """Queues the pod if a node joined or left a domain, or its taints changed."""
    was_in, is_in = _is_in_domains(constraints, old), _is_in_domains(constraints, new)
    if was_in != is_in or old is None or new is None:
        return fwk.queue_if(was_in or is_in)
    moved = any(
        old.labels.get(constraint.topology_key) != new.labels.get(constraint.topology_key) for constraint in constraints
    )
    return fwk.queue_if(is_in and (moved or old.spec.taints != new.spec.taints))


def _is_in_domains(constraints: Sequence[CompiledConstraint], node: fwk.Node | None) -> bool:
    return node is not None and all(constraint.topology_key in node.labels for constraint in constraints)
