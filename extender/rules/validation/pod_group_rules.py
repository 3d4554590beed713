"""Rules for PodGroup and Workload, and for their fields that depend on features.

Upstream: pkg/apis/scheduling/validation and the declarative rules of scheduling/v1alpha2; pkg/registry/scheduling,
strategy.go of podgroup and workload.
"""

from collections.abc import Iterator
from typing import Final

from extender.rules.api_resources import POD_GROUPS, PODS, WORKLOADS, Object, Resource
from extender.rules.validation.metadata_rules import dns_label, label_name, object_meta, object_meta_update, subdomain
from extender.values.config.feature_gates import FeatureGates
from extender.values.golang.field_errors import (
    FieldError,
    duplicate,
    immutable,
    index,
    invalid,
    not_supported,
    required,
    too_many,
)

WORKLOAD_MAX_POD_GROUP_TEMPLATES: Final = 8
_POLICIES: Final = ("basic", "gang")
_DISRUPTION_MODES: Final = ("Pod", "PodGroup")
_GATES: Final = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": "WorkloadAwarePreemption",
    "priorityClassName": "WorkloadAwarePreemption",
    "priority": "WorkloadAwarePreemption",
}
"""The fields of groups and of their templates that exist only while a feature is on."""


def drop_group_fields(resource: Resource, new: Object, old: Object | None, features: FeatureGates) -> None:
    """Drops the fields of features that are off, unless the object had them before (dropDisabledFields)."""
    if resource is PODS:
        if not features.enabled("GenericWorkload") and (old is None or "schedulingGroup" not in old["spec"]):
            new["spec"].pop("schedulingGroup", None)
        return
    for spec, former in zip(_specs(resource, new), _former_specs(resource, new, old), strict=False):
        for name, gate in _GATES.items():
            if not features.enabled(gate) and name not in former:
                spec.pop(name, None)


def _specs(resource: Resource, obj: Object) -> Iterator[Object]:
    if resource is POD_GROUPS:
        yield obj["spec"]
    elif resource is WORKLOADS:
        yield from obj["spec"].get("podGroupTemplates") or ()


def _former_specs(resource: Resource, new: Object, old: Object | None) -> Iterator[Object]:
    yield from () if old is None else _specs(resource, old)
    for _ in _specs(resource, new):
        yield {}


def pod_group(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True)
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        errors += _template_reference("spec.podGroupTemplateRef", reference)
    return errors + _template("spec", spec)


def workload(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True)
    controller = spec.get("controllerRef")
    if controller is not None:
        errors += _controller("spec.controllerRef", controller)
    path, templates = "spec.podGroupTemplates", spec.get("podGroupTemplates") or []
    if not templates:
        errors.append(required(path, "must have at least one item"))
    if len(templates) > WORKLOAD_MAX_POD_GROUP_TEMPLATES:
        return [*errors, too_many(path, len(templates), WORKLOAD_MAX_POD_GROUP_TEMPLATES)]
    names: set[str] = set()
    for place, template in enumerate(templates):
        template_path, name = index(path, place), template.get("name", "")
        errors += dns_label(f"{template_path}.name", name) if name else [required(f"{template_path}.name")]
        if name in names:
            errors.append(duplicate(template_path, {"name": name}))
        names.add(name)
        errors += _template(template_path, template)
    return errors


def workload_update(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of an updated Workload, which may only gain a controller."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    former = old["spec"].get("controllerRef")
    if former is not None:
        errors += immutable("spec.controllerRef", new["spec"].get("controllerRef"), former)
    elif new["spec"].get("controllerRef") is not None:
        errors += _controller("spec.controllerRef", new["spec"]["controllerRef"])
    return errors + immutable(
        "spec.podGroupTemplates", new["spec"].get("podGroupTemplates"), old["spec"].get("podGroupTemplates")
    )


def _template(path: str, spec: Object) -> list[FieldError]:
    policy = spec.get("schedulingPolicy") or {}
    errors = _policy(f"{path}.schedulingPolicy", policy)
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    where = f"{path}.schedulingConstraints.topology"
    if len(topology) > 1:
        errors.append(too_many(where, len(topology), 1))
    for place, constraint in enumerate(topology):
        key = constraint.get("key", "")
        key_path = f"{index(where, place)}.key"
        errors += label_name(key_path, key) if key else [required(key_path)]
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _DISRUPTION_MODES:
        errors.append(not_supported(f"{path}.disruptionMode", mode, _DISRUPTION_MODES))
    if spec.get("priorityClassName"):
        errors += subdomain(f"{path}.priorityClassName", spec["priorityClassName"])
    return errors


def _policy(path: str, policy: Object) -> list[FieldError]:
    policies = [name for name in _POLICIES if policy.get(name) is not None]
    if not policies:
        return [invalid(path, "", "must specify one of: `basic`, `gang`")]
    if len(policies) > 1:
        names = f"{{{', '.join(f'{name}' for name in policies)}}}"
        return [invalid(path, names, "exactly one of `basic`, `gang` is required, but multiple fields are set")]
    if policies == ["basic"]:
        return []
    where, count = f"{path}.gang.minCount", policy["gang"].get("minCount") or 0
    if not count:
        return [required(where)]
    return [invalid(where, count, "must be greater than or equal to 1")] if count < 0 else []


def _template_reference(path: str, reference: Object) -> list[FieldError]:
    of_workload = reference.get("workload")
    if of_workload is None:
        return [invalid(path, "", "must specify one of: `workload`")]
    errors: list[FieldError] = []
    for name, rule in (("workloadName", subdomain), ("podGroupTemplateName", dns_label)):
        where, value = f"{path}.workload.{name}", of_workload.get(name, "")
        errors += rule(where, value) if value else [required(where)]
    return errors


def _controller(path: str, reference: Object) -> list[FieldError]:
    group = reference.get("apiGroup")
    errors = subdomain(f"{path}.apiGroup", group) if group else []
    return errors + [required(f"{path}.{name}") for name in ("kind", "name") if not reference.get(name)]
