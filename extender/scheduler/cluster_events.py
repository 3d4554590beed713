"""What a change of an object means to pods that wait: (old, new) -> cluster events.

Upstream: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange (v1.36.2).
"""

from collections.abc import Callable
from typing import Final

from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.objects.meta import Condition
from extender.objects.node import Node, ResourceList
from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError, quantity_of
from extender.objects.resource_amounts import pod_requests


def pod_scheduling_properties_change(old: Pod, new: Pod) -> list[ClusterEvent]:
    """What changed of the pod, on a node or not; at least that something did."""
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    actions = [action for action, has_changed in _POD_CHANGES if has_changed(old, new)]
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE]]


def node_scheduling_properties_change(old: Node, new: Node) -> list[ClusterEvent]:
    """What changed of the node; nothing, as often as not: a heartbeat makes no pod fit."""
    return [ClusterEvent(EventResource.NODE, action) for action, has_changed in _NODE_CHANGES if has_changed(old, new)]


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether the pod asks for less of something. Requests that cannot be read may be anything: better look once more than never."""
    if old.spec == new.spec and old.status == new.status:
        return False
    try:
        before, after = pod_requests(old, use_status=True), pod_requests(new, use_status=True)
    except QuantityError:
        return True
    return any(name not in after or amount.milli_value() > after[name].milli_value() for name, amount in before.items())


def _has_other_claims(old: Pod, new: Pod) -> bool:
    """Whether other claims have been made for the pod."""
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        return True
    return old.status.extended_resource_claim_status != new.status.extended_resource_claim_status


_POD_CHANGES: Final[tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...]] = (
    (ActionType.UPDATE_POD_LABEL, lambda old, new: old.labels != new.labels),
    (ActionType.UPDATE_POD_SCALE_DOWN, _is_scaled_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, lambda old, new: bool(old.spec.scheduling_gates) > bool(new.spec.scheduling_gates)),
    # The API server lets nobody change or remove a toleration: there can only be more of them.
    (ActionType.UPDATE_POD_TOLERATION, lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations)),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _has_other_claims),
)
"""In the order in which the events are told."""


def _offers_differ(old: ResourceList, new: ResourceList) -> bool:
    """Whether the amounts differ, however they are spelled."""
    if old == new:
        return False
    try:
        return {name: quantity_of(raw) for name, raw in old.items()} != {name: quantity_of(raw) for name, raw in new.items()}
    except QuantityError:
        return True


def _statuses(conditions: list[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


_NODE_CHANGES: Final[tuple[tuple[ActionType, Callable[[Node, Node], bool]], ...]] = (
    # Lifting a cordon takes a taint away; the node controller takes its time over that.
    (ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.unschedulable and not new.spec.unschedulable),
    (ActionType.UPDATE_NODE_ALLOCATABLE, lambda old, new: _offers_differ(old.status.allocatable, new.status.allocatable)),
    (ActionType.UPDATE_NODE_LABEL, lambda old, new: old.labels != new.labels),
    (ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.taints != new.spec.taints),
    (ActionType.UPDATE_NODE_CONDITION, lambda old, new: _statuses(old.status.conditions) != _statuses(new.status.conditions)),
    (ActionType.UPDATE_NODE_ANNOTATION, lambda old, new: old.metadata.annotations != new.metadata.annotations),
    (ActionType.UPDATE_NODE_DECLARED_FEATURE, lambda old, new: old.status.declared_features != new.status.declared_features),
)
"""In the order in which the events are told."""
