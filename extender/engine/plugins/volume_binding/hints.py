"""Which events may help a pod whose volumes could not be bound.

Upstream: framework/plugins/volumebinding/volume_binding.go, isSchedulableAfter...Change (v1.36.2).
"""

from extender.engine import framework as fwk
from extender.values.objects.claims import uses_claim
from extender.values.objects.quantity import RawQuantity, value_of
from extender.values.objects.storage import (
    MIGRATED_PLUGINS_ANNOTATION,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)


def events() -> list[fwk.ClusterEventWithHint]:
    """Returns the events that VolumeBinding registers for."""
    add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
    return [
        fwk.on(fwk.EventResource.STORAGE_CLASS, add | update, _after_class_change),
        fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add | update, _after_claim_change),
        fwk.on(fwk.EventResource.PERSISTENT_VOLUME, add | update),
        fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL),
        fwk.on(fwk.EventResource.CSI_NODE, add | update, _after_csi_node_change),
        fwk.on(fwk.EventResource.CSI_DRIVER, update, _after_csi_driver_update),
        fwk.on(fwk.EventResource.CSI_STORAGE_CAPACITY, add | update, _after_capacity_change),
    ]


def _after_class_change(pod: fwk.Pod, old: StorageClass | None, new: StorageClass) -> fwk.QueueingHint:
    # The binding mode of a class never changes.
    return fwk.queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def _after_claim_change(
    pod: fwk.Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> fwk.QueueingHint:
    return fwk.queue_if(uses_claim(pod, new))


def _after_csi_node_change(pod: fwk.Pod, old: CSINode | None, new: CSINode) -> fwk.QueueingHint:
    return fwk.queue_if(old is None or _migrated_plugins(old) != _migrated_plugins(new))


def _migrated_plugins(node: CSINode) -> str:
    return node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "")


def _after_csi_driver_update(pod: fwk.Pod, old: CSIDriver, new: CSIDriver) -> fwk.QueueingHint:
    """Queues the pod if a driver of its in-line volumes stops publishing capacity, so that capacity is no longer
    checked.
    """
    is_used = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.spec.volumes)
    return fwk.queue_if(is_used and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _after_capacity_change(pod: fwk.Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> fwk.QueueingHint:
    """Queues the pod if the capacity grew. Raises QuantityError for an invalid amount."""
    if old is None:
        return fwk.QueueingHint.QUEUE
    limit, old_limit = _volume_limit(new), _volume_limit(old)
    return fwk.queue_if(limit is not None and (old_limit is None or value_of(limit) > value_of(old_limit)))


def _volume_limit(capacity: CSIStorageCapacity) -> RawQuantity | None:
    """Returns the largest size of a volume; None if it is unknown. Upstream: binder.go, volumeLimit."""
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
