"""Rules for PodDisruptionBudget, PriorityClass and Lease.

Upstream: pkg/apis/policy/validation, scheduling/validation, coordination/validation: validation.go (v1.36.2).
"""

from typing import Final

from extender.cluster.api_resources import Object
from extender.cluster.validation.metadata_rules import label_selector, object_meta, object_meta_update
from extender.cluster.validation.workload_rules import positive_int_or_percent
from extender.values.golang.field_errors import (
    FieldError,
    forbidden,
    immutable,
    in_go,
    invalid,
    non_negative,
    not_supported,
    one_of,
)
from extender.values.objects.priority_classes import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES

SYSTEM_PREFIX: Final = "system-"
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_EVICTION: Final = ("IfHealthyBudget", "AlwaysAllow")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_SPEC: Final = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")


def budget(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new PodDisruptionBudget."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(invalid("spec", in_go(spec, *_SPEC), "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            errors += positive_int_or_percent(f"spec.{name}", spec[name])
    errors += label_selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION))
    return errors


def budget_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a PodDisruptionBudget that replaces another one."""
    return budget(new) + object_meta_update(new["metadata"], old["metadata"])


def budget_status_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with the status of a PodDisruptionBudget."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in _COUNTS:
        errors += non_negative(f"status.{name}", (new.get("status") or {}).get(name))
    return errors


def priority_class(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new PriorityClass."""
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    errors = object_meta(obj["metadata"], namespaced=False)
    if name.startswith(SYSTEM_PREFIX):
        why = _no_system_class(name, value, bool(obj.get("globalDefault")))
        if why:
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
            )
            errors.append(forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        errors.append(
            forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
        )
    if obj.get("preemptionPolicy") is not None:
        errors += one_of("preemptionPolicy", obj["preemptionPolicy"], _PREEMPTION)
    return errors


def priority_class_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a PriorityClass that replaces another one: pods have copied its value."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    if new.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    return errors + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def lease(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new Lease."""
    return object_meta(obj["metadata"], namespaced=True) + _lease_spec(obj["spec"])


def lease_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a Lease that replaces another one."""
    return object_meta_update(new["metadata"], old["metadata"]) + _lease_spec(new["spec"])


def _no_system_class(name: str, value: int, is_default: bool) -> str:
    """Returns why this is none of the system's classes; empty if it is one. Upstream: IsKnownSystemPriorityClass."""
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _lease_spec(spec: Object) -> list[FieldError]:
    errors = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return errors
