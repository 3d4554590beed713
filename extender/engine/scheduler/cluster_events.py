"""The cluster events that the update of a pod or a node amounts to.

Upstream: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange (v1.36.2).
"""

from collections.abc import Callable
from typing import Final

from extender.engine.framework.events import ActionType, ClusterEvent, EventResource
from extender.values.objects.meta import Condition
from extender.values.objects.node import Node, ResourceList
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError, quantity_of
from extender.values.objects.resource_amounts import milli_requests


def pod_scheduling_properties_change(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Returns the events of an update of a pod; a plain Update if no specific one applies."""
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    actions = [action for action, has_changed in _POD_CHANGES if has_changed(old, new)]
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE]]


def node_scheduling_properties_change(old: Node, new: Node) -> list[ClusterEvent]:
    """Returns the events of an update of a node; often none, because a heartbeat makes no pod fit."""
    return [ClusterEvent(EventResource.NODE, action) for action, has_changed in _NODE_CHANGES if has_changed(old, new)]


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Returns whether the pod requests less of something, as what cannot be read does: to try is harmless."""
    if _counted(old) == _counted(new):
        return False
    try:
        before, after = milli_requests(old), milli_requests(new)
    except QuantityError:
        return True
    return any(name not in after or amount > after[name] for name, amount in before.items())


def _counted(pod: Pod) -> tuple[object, ...]:
    """Returns what `pod_requests` looks at; most updates change another part of the pod."""
    spec, status = pod.spec, pod.status
    resizes = [condition.reason for condition in status.conditions if condition.type == "PodResizePending"]
    reported = [
        each for each in (*status.container_statuses, *status.init_container_statuses) if each.resources is not None
    ]
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        reported,
        status.resources,
        status.allocated_resources,
        resizes,
    )


def _has_other_claims(old: Pod, new: Pod) -> bool:
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        return True
    return old.status.extended_resource_claim_status != new.status.extended_resource_claim_status


_POD_CHANGES: Final[tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...]] = (
    (ActionType.UPDATE_POD_LABEL, lambda old, new: old.labels != new.labels),
    (ActionType.UPDATE_POD_SCALE_DOWN, _is_scaled_down),
    (
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        lambda old, new: bool(old.spec.scheduling_gates) > bool(new.spec.scheduling_gates),
    ),
    # The API server refuses to change or remove a toleration, so that there can only be more of them.
    (ActionType.UPDATE_POD_TOLERATION, lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations)),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _has_other_claims),
)
"""In the order in which the events are returned."""


def _amounts_differ(old: ResourceList, new: ResourceList) -> bool:
    if old == new:
        return False
    try:
        return {name: quantity_of(raw) for name, raw in old.items()} != {
            name: quantity_of(raw) for name, raw in new.items()
        }
    except QuantityError:
        return True


def _statuses(conditions: list[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


_NODE_CHANGES: Final[tuple[tuple[ActionType, Callable[[Node, Node], bool]], ...]] = (
    # Uncordoning a node removes a taint, too, but the node controller does that some time later.
    (ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.unschedulable and not new.spec.unschedulable),
    (
        ActionType.UPDATE_NODE_ALLOCATABLE,
        lambda old, new: _amounts_differ(old.status.allocatable, new.status.allocatable),
    ),
    (ActionType.UPDATE_NODE_LABEL, lambda old, new: old.labels != new.labels),
    (ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.taints != new.spec.taints),
    (
        ActionType.UPDATE_NODE_CONDITION,
        lambda old, new: _statuses(old.status.conditions) != _statuses(new.status.conditions),
    ),
    (ActionType.UPDATE_NODE_ANNOTATION, lambda old, new: old.metadata.annotations != new.metadata.annotations),
    (
        ActionType.UPDATE_NODE_DECLARED_FEATURE,
        lambda old, new: old.status.declared_features != new.status.declared_features,
    ),
)
"""In the order in which the events are returned."""
