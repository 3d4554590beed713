"""Cluster events and the objects that go with them, as the corpora write them."""

from typing import Any

from extender.engine.framework import ActionType, ClusterEvent, EventResource
from extender.values.objects.decoding import convert
from extender.values.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

KINDS: dict[EventResource, type[HasMetadata]] = {
    EventResource.POD: Pod,
    EventResource.ASSIGNED_POD: Pod,
    EventResource.UNSCHEDULABLE_POD: Pod,
    EventResource.NODE: Node,
    EventResource.PERSISTENT_VOLUME: PersistentVolume,
    EventResource.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    EventResource.CSI_NODE: CSINode,
    EventResource.CSI_DRIVER: CSIDriver,
    EventResource.CSI_STORAGE_CAPACITY: CSIStorageCapacity,
    EventResource.STORAGE_CLASS: StorageClass,
    EventResource.VOLUME_ATTACHMENT: VolumeAttachment,
    EventResource.RESOURCE_CLAIM: ResourceClaim,
    EventResource.RESOURCE_SLICE: ResourceSlice,
    EventResource.DEVICE_CLASS: DeviceClass,
    EventResource.WILDCARD: Pod,
}


def event_of(record: dict[str, Any]) -> ClusterEvent:
    """The event; a label that does not follow from what happened to what is one of its own."""
    action = ActionType(0)
    for name in record["actions"]:
        action |= next(bit for bit in ActionType.__members__.values() if str(bit) == name)
    event = ClusterEvent(EventResource(record["resource"]), action)
    return event if event.label == record["label"] else ClusterEvent(event.resource, event.action, record["label"])


def as_recorded(event: ClusterEvent) -> dict[str, Any]:
    """The event in the form of the corpora."""
    return {"resource": event.resource.value, "actions": sorted(map(str, _parts(event.action))), "label": event.label}


def _parts(action: ActionType) -> list[ActionType]:
    if str(action):
        return [action]
    if ActionType.UPDATE in action:
        return [ActionType.UPDATE, *_parts(action & ~ActionType.UPDATE)]
    return [*action]


def object_of(event: ClusterEvent, recorded_object: object) -> HasMetadata | None:
    """The object that changed, None where there is none."""
    return None if recorded_object is None else convert(KINDS[event.resource], recorded_object)
