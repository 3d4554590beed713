"""The rules by which the API refuses objects, in upstream's words. Objects have been read and defaulted; nothing is changed or looked up.

Whether a namespace or a priority class exists is a question for admission.
"""

from collections.abc import Callable, Mapping
from typing import Final

from extender.embedded.api_resources import Object, Resource
from extender.embedded.validation import core_rules, device_rules, pod_rules, policy_rules, storage_rules, workload_rules
from extender.embedded.validation.metadata_rules import object_meta_update
from extender.golang.field_errors import FieldError

_New = Callable[[Object], list[FieldError]]
_Change = Callable[[Object, Object], list[FieldError]]


def validate_create(resource: Resource, obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new object or Binding. Reviews and Evictions have no rules."""
    rule = _CREATE.get((resource.group, resource.kind))
    return rule(obj) if rule is not None else []


def validate_update(resource: Resource, new: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """Returns what is wrong with an object that replaces another one.

    Arguments:
        new: after `strategies.prepare_for_update`, with the resourceVersion of the object that it replaces.
        subresource: `status`, `finalize` or empty.
    """
    key = (resource.group, resource.kind)
    if subresource:
        return _STATUS.get(key, _metadata_update)(new, old)
    return _UPDATE.get(key, _metadata_update)(new, old)


def _metadata_update(new: Object, old: Object) -> list[FieldError]:
    return object_meta_update(new["metadata"], old["metadata"])


_CREATE: Final[Mapping[tuple[str, str], _New]] = {
    ("", "Binding"): pod_rules.binding,
    ("", "Event"): core_rules.event,
    ("", "Namespace"): core_rules.namespace,
    ("", "Node"): core_rules.node,
    ("", "PersistentVolume"): storage_rules.persistent_volume,
    ("", "PersistentVolumeClaim"): storage_rules.persistent_volume_claim,
    ("", "Pod"): pod_rules.pod,
    ("", "ReplicationController"): workload_rules.replication_controller,
    ("", "Service"): core_rules.service,
    ("apps", "Deployment"): workload_rules.deployment,
    ("apps", "ReplicaSet"): workload_rules.replica_set,
    ("apps", "StatefulSet"): workload_rules.stateful_set,
    ("coordination.k8s.io", "Lease"): policy_rules.lease,
    ("events.k8s.io", "Event"): core_rules.new_event,
    ("policy", "PodDisruptionBudget"): policy_rules.budget,
    ("resource.k8s.io", "DeviceClass"): device_rules.device_class,
    ("resource.k8s.io", "ResourceClaim"): device_rules.claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): device_rules.claim_template,
    ("resource.k8s.io", "ResourceSlice"): device_rules.resource_slice,
    ("scheduling.k8s.io", "PriorityClass"): policy_rules.priority_class,
    ("storage.k8s.io", "CSIDriver"): storage_rules.csi_driver,
    ("storage.k8s.io", "CSINode"): storage_rules.csi_node,
    ("storage.k8s.io", "CSIStorageCapacity"): storage_rules.storage_capacity,
    ("storage.k8s.io", "StorageClass"): storage_rules.storage_class,
    ("storage.k8s.io", "VolumeAttachment"): storage_rules.attachment,
}
_UPDATE: Final[Mapping[tuple[str, str], _Change]] = {
    ("", "Event"): core_rules.event_update,
    ("", "Node"): core_rules.whole_node_update,
    ("", "PersistentVolume"): storage_rules.persistent_volume_update,
    ("", "PersistentVolumeClaim"): storage_rules.persistent_volume_claim_update,
    ("", "Pod"): pod_rules.pod_update,
    ("", "ReplicationController"): workload_rules.replication_controller_update,
    ("", "Service"): core_rules.service_update,
    ("apps", "Deployment"): workload_rules.deployment_update,
    ("apps", "ReplicaSet"): workload_rules.replica_set_update,
    ("apps", "StatefulSet"): workload_rules.stateful_set_update,
    ("coordination.k8s.io", "Lease"): policy_rules.lease_update,
    ("events.k8s.io", "Event"): core_rules.new_event_update,
    ("policy", "PodDisruptionBudget"): policy_rules.budget_update,
    ("resource.k8s.io", "DeviceClass"): device_rules.device_class_update,
    ("resource.k8s.io", "ResourceClaim"): device_rules.claim_update,
    ("resource.k8s.io", "ResourceClaimTemplate"): device_rules.claim_template_update,
    ("resource.k8s.io", "ResourceSlice"): device_rules.resource_slice_update,
    ("scheduling.k8s.io", "PriorityClass"): policy_rules.priority_class_update,
    ("storage.k8s.io", "CSINode"): storage_rules.csi_node_update,
    ("storage.k8s.io", "CSIStorageCapacity"): storage_rules.storage_capacity_update,
    ("storage.k8s.io", "StorageClass"): storage_rules.storage_class_update,
    ("storage.k8s.io", "VolumeAttachment"): storage_rules.attachment_update,
}
_STATUS: Final[Mapping[tuple[str, str], _Change]] = {
    ("", "Namespace"): core_rules.namespace_status_update,
    ("", "Node"): core_rules.node_update,
    ("", "Pod"): pod_rules.pod_status_update,
    ("", "ReplicationController"): workload_rules.status_update,
    ("apps", "Deployment"): workload_rules.status_update,
    ("apps", "ReplicaSet"): workload_rules.status_update,
    ("apps", "StatefulSet"): workload_rules.status_update,
    ("policy", "PodDisruptionBudget"): policy_rules.budget_status_update,
    ("resource.k8s.io", "ResourceClaim"): device_rules.claim_status_update,
}
