"""What the API refuses, in upstream's words. Objects have been read and defaulted; nothing is changed and nothing is looked up.

No admission here: whether a namespace or a priority class exists is another question.
"""

from collections.abc import Callable, Mapping
from typing import Final

from extender.embedded.resources import Object, Resource
from extender.embedded.validation import devices, events, nodes, persistent_volumes, pods, policy, services, storage, workloads
from extender.embedded.validation.metadata import object_meta_update
from extender.embedded.validation.workloads import scale as validate_scale
from extender.golang.field_errors import FieldError

__all__ = ["FieldError", "validate_create", "validate_scale", "validate_update"]

_New = Callable[[Object], list[FieldError]]
_Change = Callable[[Object, Object], list[FieldError]]


def validate_create(resource: Resource, obj: Object) -> list[FieldError]:
    """What is wrong with a new object; a Binding is one, too. Reviews and Evictions are not judged."""
    rule = _CREATE.get((resource.group, resource.kind))
    return rule(obj) if rule is not None else []


def validate_update(resource: Resource, new: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """What is wrong with an object that would replace another one.

    Arguments:
        new: after `strategies.prepare_for_update`, with the resourceVersion that it would replace.
        subresource: `status`, `finalize` or empty.
    """
    key = (resource.group, resource.kind)
    if subresource:
        return _STATUS.get(key, _metadata_update)(new, old)
    return _UPDATE.get(key, _metadata_update)(new, old)


def _metadata_update(new: Object, old: Object) -> list[FieldError]:
    return object_meta_update(new["metadata"], old["metadata"])


_CREATE: Final[Mapping[tuple[str, str], _New]] = {
    ("", "Binding"): pods.binding,
    ("", "Event"): events.event,
    ("", "Namespace"): nodes.namespace,
    ("", "Node"): nodes.node,
    ("", "PersistentVolume"): persistent_volumes.volume,
    ("", "PersistentVolumeClaim"): persistent_volumes.claim,
    ("", "Pod"): pods.pod,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "Service"): services.service,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("coordination.k8s.io", "Lease"): policy.lease,
    ("events.k8s.io", "Event"): events.new_event,
    ("policy", "PodDisruptionBudget"): policy.budget,
    ("resource.k8s.io", "DeviceClass"): devices.device_class,
    ("resource.k8s.io", "ResourceClaim"): devices.claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.claim_template,
    ("resource.k8s.io", "ResourceSlice"): devices.resource_slice,
    ("scheduling.k8s.io", "PriorityClass"): policy.priority_class,
    ("storage.k8s.io", "CSIDriver"): storage.csi_driver,
    ("storage.k8s.io", "CSINode"): storage.csi_node,
    ("storage.k8s.io", "CSIStorageCapacity"): storage.storage_capacity,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
    ("storage.k8s.io", "VolumeAttachment"): storage.attachment,
}
_UPDATE: Final[Mapping[tuple[str, str], _Change]] = {
    ("", "Event"): events.event_update,
    ("", "Namespace"): nodes.namespace_update,
    ("", "Node"): nodes.whole_node_update,
    ("", "PersistentVolume"): persistent_volumes.volume_update,
    ("", "PersistentVolumeClaim"): persistent_volumes.claim_update,
    ("", "Pod"): pods.pod_update,
    ("", "ReplicationController"): workloads.replication_controller_update,
    ("", "Service"): services.service_update,
    ("apps", "Deployment"): workloads.deployment_update,
    ("apps", "ReplicaSet"): workloads.replica_set_update,
    ("apps", "StatefulSet"): workloads.stateful_set_update,
    ("coordination.k8s.io", "Lease"): policy.lease_update,
    ("events.k8s.io", "Event"): events.new_event_update,
    ("policy", "PodDisruptionBudget"): policy.budget_update,
    ("resource.k8s.io", "DeviceClass"): devices.device_class_update,
    ("resource.k8s.io", "ResourceClaim"): devices.claim_update,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.claim_template_update,
    ("resource.k8s.io", "ResourceSlice"): devices.resource_slice_update,
    ("scheduling.k8s.io", "PriorityClass"): policy.priority_class_update,
    ("storage.k8s.io", "CSIDriver"): storage.csi_driver_update,
    ("storage.k8s.io", "CSINode"): storage.csi_node_update,
    ("storage.k8s.io", "CSIStorageCapacity"): storage.storage_capacity_update,
    ("storage.k8s.io", "StorageClass"): storage.storage_class_update,
    ("storage.k8s.io", "VolumeAttachment"): storage.attachment_update,
}
_STATUS: Final[Mapping[tuple[str, str], _Change]] = {
    ("", "Namespace"): nodes.namespace_status_update,
    ("", "Node"): nodes.node_update,
    ("", "Pod"): pods.pod_status_update,
    ("", "ReplicationController"): workloads.status_update,
    ("apps", "Deployment"): workloads.status_update,
    ("apps", "ReplicaSet"): workloads.status_update,
    ("apps", "StatefulSet"): workloads.status_update,
    ("policy", "PodDisruptionBudget"): policy.budget_status_update,
    ("resource.k8s.io", "ResourceClaim"): devices.claim_status_update,
}
