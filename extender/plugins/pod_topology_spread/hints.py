"""Which changes may let in a pod that would have been one too many in its domain.

Upstream: framework/plugins/podtopologyspread/plugin.go, isSchedulableAfterPodChange, isSchedulableAfterNodeChange (v1.36.2).
"""

from collections.abc import Sequence

from extender import framework as fwk
from extender.plugins.pod_topology_spread.constraints import CompiledConstraint


def after_pod_change(pod: fwk.Pod, constraints: Sequence[CompiledConstraint], old: fwk.Pod | None, new: fwk.Pod | None) -> fwk.QueueingHint:
    """A pod that is counted came, went, or is counted otherwise; or the pod itself tolerates more nodes whose taints count."""
    if old is None or new is None:
        moved = new if new is not None else old
        counted = moved is not None and any(constraint.selector.matches(moved.labels) for constraint in constraints)
        return fwk.queue_if(counted)
    if new.uid == pod.uid and old.spec.tolerations != new.spec.tolerations and any(it.honors_taints for it in constraints):
        return fwk.QueueingHint.QUEUE
    return fwk.queue_if(any(it.selector.matches(old.labels) != it.selector.matches(new.labels) for it in constraints))


def is_involved(pod: fwk.Pod, old: fwk.Pod | None, new: fwk.Pod | None) -> bool:
    """Whether the pod may count what changed: a pod on a node in its namespace, or the pod itself."""
    return all(
        other is None or other.uid == pod.uid or (bool(other.spec.node_name) and other.namespace == pod.namespace) for other in (old, new)
    )


def after_node_change(constraints: Sequence[CompiledConstraint], old: fwk.Node | None, new: fwk.Node | None) -> fwk.QueueingHint:
    """A node in a domain came or went, moved to another domain, or has other taints."""
    was_in, is_in = _is_in_domains(constraints, old), _is_in_domains(constraints, new)
    if was_in != is_in or old is None or new is None:
        return fwk.queue_if(was_in or is_in)
    moved = any(old.labels.get(constraint.topology_key) != new.labels.get(constraint.topology_key) for constraint in constraints)
    return fwk.queue_if(is_in and (moved or old.spec.taints != new.spec.taints))


def _is_in_domains(constraints: Sequence[CompiledConstraint], node: fwk.Node | None) -> bool:
    return node is not None and all(constraint.topology_key in node.labels for constraint in constraints)
