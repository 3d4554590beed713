"""EventHandlers: pass changes of the cluster to the cache and the queue, and requeue the pods that they may help.

Upstream: pkg/scheduler/eventhandlers.go; framework/events.go, PodSchedulingPropertiesChange,
NodeSchedulingPropertiesChange.
"""

from collections.abc import Callable, Container, Mapping
from time import perf_counter
from typing import Any, Final, final

from extender.engine.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
)
from extender.engine.scheduler.world import World
from extender.values.klog.logger import Logger
from extender.values.objects.devices import DeviceTaintRule, with_taints_of
from extender.values.objects.kinds import DEVICE_TAINT_RULES, KINDS, NODES, PODS, WatchedKind, kind_of
from extender.values.objects.meta import Condition, HasMetadata
from extender.values.objects.node import Node, ResourceList
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError, quantity_of
from extender.values.objects.resource_amounts import milli_requests

_RESOURCE_OF: Final[Mapping[WatchedKind[Any], EventResource]] = {
    kind: EventResource(kind.event_resource)
    for kind in KINDS
    if kind is not PODS and kind.event_resource in EventResource.__members__.values()
}
"""The kinds of objects whose changes may help a pod. A pod with a node is another resource in events."""


def _labels(resource: EventResource) -> tuple[str, str, str]:
    """Returns the metrics' names of an addition, an update and a deletion."""
    add, update, delete = (
        ClusterEvent(resource, action).label for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
    )
    return add, update, delete


_LABELS: Final = {kind: _labels(resource) for kind, resource in _RESOURCE_OF.items()}
_ASSIGNED, _UNSCHEDULABLE = _labels(EventResource.ASSIGNED_POD), _labels(EventResource.UNSCHEDULABLE_POD)

_LOG: Final = Logger(__name__)


def _action(old: HasMetadata | None, new: HasMetadata | None) -> ActionType:
    return ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE


def _label(old: HasMetadata | None, new: HasMetadata | None) -> str:
    """Returns the metrics' name of a change; empty for one that helps no pod."""
    item = old if new is None else new
    if item is None:
        return ""
    if isinstance(item, Pod):
        labels = _ASSIGNED if item.spec.node_name else _UNSCHEDULABLE
    else:
        labels = _LABELS.get(kind_of(item), ("", "", ""))
    return labels[0 if old is None else 2 if new is None else 1]


@final
class EventHandlers:
    """Handles every change of the cluster, one at a time. State: the world, and the pods by name."""

    def __init__(self, world: World, profiles: Container[str], pods: dict[str, Pod]) -> None:
        """Takes the scheduler names of profiles, and fills `pods` by namespace/name as the API server has them."""
        self._world = world
        self._profiles = profiles
        self._pods = pods

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Handles an object that was added (`old` is None), updated, or deleted (`new` is None)."""
        began = perf_counter()
        item = old if new is None else new
        if isinstance(item, Pod):
            self._pod_changed(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)
        elif item is not None:
            self._object_changed(kind_of(item), old, new)
        label = _label(old, new)
        if label:
            self._world.metrics.event_handling.observe(perf_counter() - began, label)

    def _object_changed(self, kind: WatchedKind[Any], old: HasMetadata | None, new: HasMetadata | None) -> None:
        if kind is NODES:
            if old is None or new is None:
                _LOG.info(3, "Add event for node" if old is None else "Delete event for node", node=new or old)
            else:
                _LOG.info(4, "Update event for node", node=new)
        self._world.cluster.changed(old, new)
        if isinstance(old, Node) and isinstance(new, Node):
            for event in node_scheduling_properties_change(old, new):
                self._move(event, old, new)
            return
        if kind is DEVICE_TAINT_RULES:
            self._taint_rule_changed(old, new)
            return
        resource = _RESOURCE_OF.get(kind)
        if resource is not None:
            self._move(ClusterEvent(resource, _action(old, new)), old, new)

    def _taint_rule_changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Handles a rule as an update of the slices whose devices have other taints now (syncSlice)."""
        for resource_slice in self._world.cluster.cache.objects.resource_slices.values():
            before, after = (
                with_taints_of([rule] if isinstance(rule, DeviceTaintRule) else [], resource_slice)
                for rule in (old, new)
            )
            if before != after:
                self._move(ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE), before, after)

    # Pods.

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.is_terminal:
            # Finished pods count as deleted, as they do in upstream's watch by field selector.
            new = None
        if old is not None and old.is_terminal:
            old = None
        if old is not None and new is not None and old.uid != new.uid:
            self._pod_changed(old, None)
            old = None
        if old is None and new is None:
            return
        if new is not None:
            self._pods[new.key] = new
        elif old is not None:
            self._pods.pop(old.key, None)
        had_node, has_node = bool(old and old.spec.node_name), bool(new and new.spec.node_name)
        if had_node and new is not None and not has_node:
            # A server that was restored from a backup has forgotten the binding. Pods that wait for room are requeued,
            # this one included.
            self._world.cluster.changed(old, None)
            self._assigned_pod_changed(old, None)
            old = None
        if new is None or has_node:
            if old is not None and not had_node:
                self._delete_from_queue(old, is_bound=has_node)
            self._world.cluster.changed(old, new)
            self._assigned_pod_changed(old if had_node else None, new)
        else:
            self._waiting_pod_changed(old, new)

    def _assigned_pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None:
            _LOG.info(3, "Add event for scheduled pod", pod=new)
            self._move(EVENT_ASSIGNED_POD_ADD, None, new)
        elif old is not None and new is None:
            _LOG.info(3, "Delete event for scheduled pod", pod=old)
            self._move(EVENT_ASSIGNED_POD_DELETE, old, None)
        elif old is not None and new is not None:
            _LOG.info(4, "Update event for scheduled pod", pod=old)
            for event in pod_scheduling_properties_change(old, new):
                self._move(event, old, new)

    def _waiting_pod_changed(self, old: Pod | None, new: Pod) -> None:
        cluster, queue = self._world.cluster, self._world.queue
        was_assumed = cluster.cache.is_assumed(new)
        cluster.changed(old, new)
        if new.scheduler_name not in self._profiles:
            return
        if was_assumed:
            if new.is_terminating and (old is None or not old.is_terminating):
                self._handle_assumed_pod_deletion(new)
            return
        if old is None:
            _LOG.info(3, "Add event for unscheduled pod", pod=new)
            if self._world.has_groups:
                self._move(EVENT_UNSCHEDULED_POD_ADD, None, new)
            queue.add(new)
            return
        if old.metadata.resource_version and old.metadata.resource_version == new.metadata.resource_version:
            return
        _LOG.info(4, "Update event for unscheduled pod", pod=new)
        queue.update(old, new, pod_scheduling_properties_change(old, new))
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._nomination_cleared(old)

    def _delete_from_queue(self, pod: Pod, *, is_bound: bool) -> None:
        """Handles a pod without a node that was deleted or bound (deletePodFromSchedulingQueue)."""
        if pod.scheduler_name not in self._profiles:
            return
        _LOG.info(3, "Delete event for unscheduled pod", pod=pod)
        self._world.queue.delete(pod)
        if is_bound:
            return
        if self._world.cluster.cache.is_assumed(pod):
            self._handle_assumed_pod_deletion(pod)
        elif pod.status.nominated_node_name:
            self._nomination_cleared(pod)

    def _handle_assumed_pod_deletion(self, pod: Pod) -> None:
        assumed = self._world.cluster.cache.pod(pod.uid) or pod
        if not self._world.waiting_pods.reject(pod.uid):
            self._world.cluster.forget(pod.uid)
        self._move(EVENT_ASSIGNED_POD_DELETE, assumed, None)

    def _nomination_cleared(self, pod: Pod) -> None:
        """Requeues the pods of lower or equal priority, for which the nomination counted."""
        self._world.queue.move_all_to_active_or_backoff_queue(
            EVENT_ASSIGNED_POD_DELETE, pod, None, lambda info: info.pod.priority <= pod.priority
        )

    def _move(self, event: ClusterEvent, old: object, new: object) -> None:
        self._world.queue.move_all_to_active_or_backoff_queue(event, old, new)


def pod_scheduling_properties_change(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Returns the events of an update of a pod; a plain Update if no specific one applies."""
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    actions = [action for action, has_changed in _POD_CHANGES if has_changed(old, new)]
    return [ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE]]


def node_scheduling_properties_change(old: Node, new: Node) -> list[ClusterEvent]:
    """Returns the events of an update of a node; often none, because a heartbeat makes no pod fit."""
    return [ClusterEvent(EventResource.NODE, action) for action, has_changed in _NODE_CHANGES if has_changed(old, new)]


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Returns whether the pod requests less of something. An unreadable pod counts, too: to try is harmless."""
    if _counted(old) == _counted(new):
        return False
    try:
        before, after = milli_requests(old), milli_requests(new)
    except QuantityError:
        return True
    return any(name not in after or amount > after[name] for name, amount in before.items())


def _counted(pod: Pod) -> tuple[object, ...]:
    """Returns the fields that `pod_requests` looks at; most updates change other fields of the pod."""
    spec, status = pod.spec, pod.status
    resizes = [condition.reason for condition in status.conditions if condition.type == "PodResizePending"]
    reported = [
        container_status
        for container_status in (*status.container_statuses, *status.init_container_statuses)
        if container_status.resources is not None
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


_POD_CHANGES: Final[tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...]] = (
    (ActionType.UPDATE_POD_LABEL, lambda old, new: old.labels != new.labels),
    (ActionType.UPDATE_POD_SCALE_DOWN, _is_scaled_down),
    (
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        lambda old, new: bool(old.spec.scheduling_gates) > bool(new.spec.scheduling_gates),
    ),
    # The API server refuses to change or remove a toleration, so that there can only be more of them.
    (ActionType.UPDATE_POD_TOLERATION, lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations)),
    (
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        lambda old, new: (
            old.status.resource_claim_statuses != new.status.resource_claim_statuses
            or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
        ),
    ),
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
