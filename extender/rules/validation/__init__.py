"""The rules by which the API refuses objects, in upstream's words.

Each returns the errors of an object, or of one that replaces another (new, old). Objects have been read and defaulted;
nothing is changed or looked up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from extender.rules.api_resources import Object, Resource
from extender.rules.validation import (
    core_rules,
    device_rules,
    placement_rules,
    pod_group_rules,
    pod_rules,
    storage_rules,
    workload_rules,
)
from extender.rules.validation.metadata_rules import NameRule, object_meta, object_meta_update, path_segment_errors
from extender.values.config.feature_gates import FeatureGates
from extender.values.golang.field_errors import FieldError, immutable
from extender.values.objects.name_syntax import dns_label_errors, subdomain_errors

_New = Callable[[Object], list[FieldError]]
_Change = Callable[[Object, Object], list[FieldError]]


def _metadata_update(new: Object, old: Object) -> list[FieldError]:
    return object_meta_update(new["metadata"], old["metadata"])


@final
class _Rules(NamedTuple):
    """The rules of a kind: for new objects, and for objects and statuses that replace others (new, old)."""

    create: _New
    update: _Change = _metadata_update
    status: _Change = _metadata_update


def _changed(names: Iterable[str], new: Object, old: Object) -> list[FieldError]:
    return [error for name in names for error in immutable(f"spec.{name}", new.get(name), old.get(name))]


def _frozen(name: str) -> _Change:
    """Returns the rules of updates that may not change a field."""
    return lambda new, old: _metadata_update(new, old) + immutable(name, new.get(name), old.get(name))


def _again(create: _New) -> _Change:
    """Returns the rules of updates that include those of new objects."""
    return lambda new, old: _metadata_update(new, old) + create(new)


def _by_spec(spec: _New, *frozen: str, rule: NameRule = subdomain_errors, status: _Change = _metadata_update) -> _Rules:
    """Returns the rules of a namespaced kind with one check of its spec for all writes; `frozen` never changes."""
    return _Rules(
        lambda obj: object_meta(obj["metadata"], namespaced=True, rule=rule) + spec(obj["spec"]),
        lambda new, old: _metadata_update(new, old) + spec(new["spec"]) + _changed(frozen, new["spec"], old["spec"]),
        status,
    )


def validate_create(resource: Resource, obj: Object) -> list[FieldError]:
    """Checks a new object or Binding; of a kind without rules of its own, only the metadata."""
    return _rules_of(resource).create(obj)


def validate_update(resource: Resource, new: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """Checks an object or subresource as `strategies.prepare_for_update` left it, with the version of the old one."""
    if subresource == "resize":
        return pod_rules.pod_resize(new, old)
    rules = _rules_of(resource)
    return (rules.status if subresource else rules.update)(new, old)


def _rules_of(resource: Resource) -> _Rules:
    rules = _RULES.get((resource.group, resource.kind))
    if rules is not None:
        return rules
    rule = path_segment_errors if resource.group == "rbac.authorization.k8s.io" else subdomain_errors
    return _Rules(lambda obj: object_meta(obj["metadata"], namespaced=resource.namespaced, rule=rule))


def behind_gates(new: Object, old: Object | None, features: FeatureGates) -> list[FieldError]:
    """Refuses values of features that are off, unless the old object already has them.

    Upstream: pkg/api/pod, GetValidationOptionsFromPodSpecAndMeta.
    """
    if features.enabled("TaintTolerationComparisonOperators"):
        return []
    path, values = _tolerations(new)
    errors = placement_rules.comparing_tolerations(path, values)
    return [] if errors and old is not None and placement_rules.comparing_tolerations(*_tolerations(old)) else errors


def _tolerations(obj: Object) -> tuple[str, Sequence[Object]]:
    path, spec = "spec", obj.get("spec") or {}
    if isinstance(spec, dict) and isinstance(spec.get("template"), dict):
        path, spec = "spec.template.spec", spec["template"].get("spec") or {}
    values = spec.get("tolerations") if isinstance(spec, dict) else None
    return f"{path}.tolerations", values if isinstance(values, list) else ()


_RULES: Final[Mapping[tuple[str, str], _Rules]] = {
    ("", "Binding"): _Rules(pod_rules.binding),
    ("", "Event"): _Rules(core_rules.event, core_rules.event_update),
    ("", "Namespace"): _Rules(core_rules.namespace, status=core_rules.namespace_status_update),
    ("", "Node"): _Rules(core_rules.node, core_rules.whole_node_update, core_rules.node_update),
    ("", "PersistentVolume"): _Rules(storage_rules.persistent_volume, storage_rules.persistent_volume_update),
    ("", "PersistentVolumeClaim"): _Rules(
        storage_rules.persistent_volume_claim, storage_rules.persistent_volume_claim_update
    ),
    ("", "Pod"): _Rules(pod_rules.pod, pod_rules.pod_update, pod_rules.pod_status_update),
    ("", "ReplicationController"): _Rules(
        workload_rules.replication_controller,
        _again(workload_rules.replication_controller),
        workload_rules.status_update,
    ),
    ("", "Service"): _Rules(core_rules.service, _again(core_rules.service)),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _Rules(
        core_rules.custom_resource_definition, _again(core_rules.custom_resource_definition)
    ),
    ("apps", "DaemonSet"): _by_spec(workload_rules.daemon_set_spec, "selector", status=workload_rules.numbers_update),
    ("apps", "Deployment"): _by_spec(workload_rules.deployment_spec, "selector", status=workload_rules.status_update),
    ("apps", "ReplicaSet"): _by_spec(workload_rules.replica_set_spec, "selector", status=workload_rules.status_update),
    ("apps", "StatefulSet"): _Rules(
        workload_rules.stateful_set, workload_rules.stateful_set_update, workload_rules.status_update
    ),
    ("batch", "Job"): _by_spec(
        workload_rules.job_spec,
        "completions",
        "selector",
        "template",
        "completionMode",
        rule=dns_label_errors,
        status=workload_rules.numbers_update,
    ),
    ("coordination.k8s.io", "Lease"): _by_spec(core_rules.lease_spec),
    ("events.k8s.io", "Event"): _Rules(core_rules.new_event, core_rules.new_event_update),
    ("node.k8s.io", "RuntimeClass"): _Rules(core_rules.runtime_class, _frozen("handler")),
    ("policy", "PodDisruptionBudget"): _Rules(
        core_rules.budget, core_rules.budget_update, core_rules.budget_status_update
    ),
    ("resource.k8s.io", "DeviceClass"): _Rules(device_rules.device_class, _again(device_rules.device_class)),
    ("resource.k8s.io", "DeviceTaintRule"): _Rules(
        device_rules.device_taint_rule, _again(device_rules.device_taint_rule)
    ),
    ("resource.k8s.io", "ResourceClaim"): _Rules(
        device_rules.claim, device_rules.claim_update, device_rules.claim_status_update
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): _Rules(device_rules.claim_template, _frozen("spec")),
    ("resource.k8s.io", "ResourceSlice"): _Rules(device_rules.resource_slice, device_rules.resource_slice_update),
    ("scheduling.k8s.io", "PodGroup"): _Rules(pod_group_rules.pod_group, _frozen("spec")),
    ("scheduling.k8s.io", "PriorityClass"): _Rules(core_rules.priority_class, core_rules.priority_class_update),
    ("scheduling.k8s.io", "Workload"): _Rules(pod_group_rules.workload, pod_group_rules.workload_update),
    ("storage.k8s.io", "CSIDriver"): _Rules(storage_rules.csi_driver, storage_rules.csi_driver_update),
    ("storage.k8s.io", "CSINode"): _Rules(storage_rules.csi_node, storage_rules.csi_node_update),
    ("storage.k8s.io", "CSIStorageCapacity"): _Rules(
        storage_rules.storage_capacity, storage_rules.storage_capacity_update
    ),
    ("storage.k8s.io", "StorageClass"): _Rules(storage_rules.storage_class, storage_rules.storage_class_update),
    ("storage.k8s.io", "VolumeAttachment"): _Rules(storage_rules.attachment, storage_rules.attachment_update),
}
"""By group and kind."""
