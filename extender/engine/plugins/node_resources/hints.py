"""FitHints: which events may help a pod that did not fit.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go, isSchedulableAfterPodEvent,
isSchedulableAfterNodeChange, isSchedulableAfterDeviceClassEvent; extendedresources.go, shouldDelegateResourceToDRA
(v1.36.2).
"""

from collections.abc import Callable, Iterator
from typing import final

from extender.engine import framework as fwk
from extender.values.objects.devices import DeviceClass
from extender.values.objects.extended_resources import DEVICE_CLASS_PREFIX, DeviceClasses, device_class_of
from extender.values.objects.resource_amounts import (
    Resources,
    allocatable,
    assigned_requests,
    filter_requests,
    pod_requests,
)
from extender.values.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY


@final
class FitHints:
    """The queueing hints of NodeResourcesFit.

    State: the parsed objects of the last event, since an event is checked against every unschedulable pod.
    """

    def __init__(self, device_classes: Callable[[], DeviceClasses]) -> None:
        """Makes the hints.

        Arguments:
            device_classes: returns the device classes; it is only called for resources that a node lacks.
        """
        self._device_classes = device_classes
        self._node: fwk.Node | None = None
        self._room: tuple[Resources, int] = (Resources(), 0)
        self._old_node: fwk.Node | None = None
        self._old_room: tuple[Resources, int] = (Resources(), 0)
        self._pods: tuple[fwk.Pod, fwk.Pod] | None = None
        self._shrunk: frozenset[str] = frozenset()

    def after_pod_event(self, pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod | None) -> fwk.QueueingHint:
        """Queues the pod if a pod with a node or a nomination was deleted, if it requests less itself, or if a pod on a
        node requests less of a resource that it requests.
        """
        if new is None:
            return fwk.queue_if(bool(old.spec.node_name or old.status.nominated_node_name))
        if new.uid == pod.uid:
            return fwk.QueueingHint.QUEUE
        if not new.spec.node_name:
            return fwk.QueueingHint.QUEUE_SKIP
        if self._pods is None or self._pods[0] is not old or self._pods[1] is not new:
            before, after = dict(_amounts(assigned_requests(old)[0])), dict(_amounts(assigned_requests(new)[0]))
            self._pods = old, new
            self._shrunk = frozenset(name for name, amount in before.items() if amount > after.get(name, 0))
        return fwk.queue_if(
            any(amount and name in self._shrunk for name, amount in _amounts(assigned_requests(pod)[0]))
        )

    def after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
        """Queues the pod if it fits the node when empty, and the node is new or offers more of a resource that it
        requests.
        """
        room, allowed_pods = self._room_on(new)
        wanted = filter_requests(pod)
        if allowed_pods < 1 or not self._fits(wanted, room):
            return fwk.QueueingHint.QUEUE_SKIP
        if old is None:
            return fwk.QueueingHint.QUEUE
        old_room, old_allowed_pods = self._old_room_on(old)
        if allowed_pods > old_allowed_pods:
            return fwk.QueueingHint.QUEUE
        has, had = dict(_amounts(room)), dict(_amounts(old_room))
        grown = any(amount and has.get(name, 0) > had.get(name, 0) for name, amount in _amounts(wanted))
        return fwk.queue_if(
            grown or any(amount and self._is_backed_by_devices(name, room) for name, amount in wanted.scalar.items())
        )

    def after_device_class_event(self, pod: fwk.Pod, old: DeviceClass | None, new: DeviceClass) -> fwk.QueueingHint:
        """Queues the pod if it requests the extended resource that the class backs, unless the class backed it
        before.
        """
        name = new.spec.extended_resource_name
        if old is not None and (old.spec.extended_resource_name or "") == (name or ""):
            return fwk.QueueingHint.QUEUE_SKIP
        wanted = pod_requests(pod, use_status=False)
        return fwk.queue_if((old is None and DEVICE_CLASS_PREFIX + new.metadata.name in wanted) or name in wanted)

    def _fits(self, wanted: Resources, room: Resources) -> bool:
        if (
            wanted.milli_cpu > room.milli_cpu
            or wanted.memory > room.memory
            or wanted.ephemeral_storage > room.ephemeral_storage
        ):
            return False
        return all(
            amount <= room.scalar.get(name, 0) or self._is_backed_by_devices(name, room)
            for name, amount in wanted.scalar.items()
            if amount
        )

    def _is_backed_by_devices(self, name: str, room: Resources) -> bool:
        """True if a device class backs the extended resource and the node has none of its own."""
        return not room.scalar.get(name) and device_class_of(name, self._device_classes()) is not None

    def _room_on(self, node: fwk.Node) -> tuple[Resources, int]:
        if self._node is not node:
            self._node, self._room = node, allocatable(node)
        return self._room

    def _old_room_on(self, node: fwk.Node) -> tuple[Resources, int]:
        if self._old_node is not node:
            self._old_node, self._old_room = node, allocatable(node)
        return self._old_room


def _amounts(resources: Resources) -> Iterator[tuple[str, int]]:
    yield CPU, resources.milli_cpu
    yield MEMORY, resources.memory
    yield EPHEMERAL_STORAGE, resources.ephemeral_storage
    yield from resources.scalar.items()
