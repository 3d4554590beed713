"""Rules for nodes, namespaces, services, events, budgets, priority and runtime classes, definitions and leases.

Upstream: pkg/apis/core/validation, events.go; validation.go of core, policy, scheduling and coordination.
"""

from typing import Any, Final

from extender.rules.api_resources import NEW_NAME_OF, Object
from extender.rules.custom_resource_definitions import Definition
from extender.rules.validation.amount_rules import container_resources, quantity_value
from extender.rules.validation.metadata_rules import (
    label_name,
    label_selector,
    labels,
    object_meta,
    object_meta_update,
    path_segment_errors,
)
from extender.rules.validation.placement_rules import taints
from extender.rules.validation.workload_rules import positive_int_or_percent
from extender.values.golang.field_errors import (
    FieldError,
    all_invalid,
    forbidden,
    immutable,
    in_go,
    invalid,
    non_negative,
    not_supported,
    one_of,
    required,
)
from extender.values.objects import decoding
from extender.values.objects.grouping import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES
from extender.values.objects.name_syntax import dns_1035_errors, dns_label_errors, label_key_errors, subdomain_errors

_LENGTH: Final = 128
_NOTE_LENGTH: Final = 1024
_OLD_CONTROLLER: Final = "reportingComponent"
_FROZEN: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action", "related", "reportingController", "reportingInstance",
)  # fmt: skip


def node(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    # The path is upstream's.
    return errors + taints("metadata.taints", spec.get("taints") or ()) + _amounts(obj)


def node_update(new: Object, old: Object) -> list[FieldError]:
    spec, former = new["spec"], old["spec"]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _amounts(new)
    if former.get("podCIDRs") and spec.get("podCIDRs") != former["podCIDRs"]:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if former.get("providerID") and spec.get("providerID") != former["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    return errors + taints("metadata.taints", spec.get("taints") or ())


def whole_node_update(new: Object, old: Object) -> list[FieldError]:
    """Checks a replaced node as a new one, too, as the strategy of nodes does."""
    return node(new) + node_update(new, old)


def namespace(obj: Object) -> list[FieldError]:
    errors = object_meta(obj["metadata"], namespaced=False, rule=dns_label_errors)
    for finalizer in (obj.get("spec") or {}).get("finalizers") or ():
        errors += label_name("spec.finalizers", finalizer)
    return errors


def namespace_status_update(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of the status of a Namespace. Upstream: ValidateNamespaceStatusUpdate."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    phase = (new.get("status") or {}).get("phase", "")
    if not new["metadata"].get("deletionTimestamp") and phase != "Active":
        errors.append(invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    elif new["metadata"].get("deletionTimestamp") and phase != "Terminating":
        errors.append(invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
    return errors


def _amounts(obj: Object) -> list[FieldError]:
    """Upstream: ValidateNodeResources."""
    status = obj.get("status") or {}
    return [
        error
        for part in ("capacity", "allocatable")
        for name, amount in (status.get(part) or {}).items()
        for error in quantity_value(f"status.{part}.{name}", name, amount)
    ]


def service(obj: Object) -> list[FieldError]:
    """Returns the errors of the name of a Service, and of its selector, by which pods are spread."""
    errors = object_meta(obj["metadata"], namespaced=True, rule=dns_label_errors)
    return errors + labels("spec.selector", obj["spec"].get("selector"))


def event(obj: Object) -> list[FieldError]:
    return _basics(obj, is_new=False)


def event_update(new: Object, old: Object) -> list[FieldError]:
    return _basics(new, is_new=False)


def new_event(obj: Object) -> list[FieldError]:
    errors = _basics(obj, is_new=True) + object_meta(obj["metadata"], namespaced=True) + _series(obj.get("series"))
    if obj.get("eventTime") is None:
        errors.append(required("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    errors += [
        invalid(name, "", "needs to be unset")
        for name in ("firstTimestamp", "lastTimestamp", "count")
        if _member(obj, name, True)
    ]
    source = obj.get("deprecatedSource") or {}
    if source.get("component") or source.get("host"):
        errors.append(invalid("source", "", "needs to be unset"))
    return errors


def new_event_update(new: Object, old: Object) -> list[FieldError]:
    """Returns the errors of an updated Event of events.k8s.io/v1, of which only the series may change."""
    errors = _basics(new, is_new=True) + object_meta_update(new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        errors += _series(new.get("series"))
    for name in _FROZEN:
        errors += immutable(name, _member(new, name, True), _member(old, name, True))
    return errors


def _member(obj: Object, name: str, is_new: bool) -> Any:
    if name == "reportingController" and not is_new:
        return obj.get(_OLD_CONTROLLER)
    return obj.get(NEW_NAME_OF.get(name, name) if is_new else name)


def _series(series: Object | None) -> list[FieldError]:
    if series is None:
        return []
    errors = [invalid("series.count", "", "should be at least 2")] if series.get("count", 0) < 2 else []
    return errors if series.get("lastObservedTime") is not None else [*errors, required("series.lastObservedTime")]


def _basics(obj: Object, *, is_new: bool) -> list[FieldError]:
    """Checks the rules of all events. Upstream: legacyValidateEvent."""
    errors: list[FieldError] = []
    namespace = obj["metadata"].get("namespace", "")
    about = (_member(obj, "involvedObject", is_new) or {}).get("namespace", "")
    if obj.get("eventTime") is None:
        agrees = namespace == about or (not about and namespace == "default")
    else:
        agrees = bool(about) or namespace in ("default", "kube-system")
    if not agrees:
        errors.append(invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if obj.get("eventTime") is not None:
        errors += _reporter(obj, is_new)
        if len(_member(obj, "message", is_new) or "") > _NOTE_LENGTH:
            errors.append(invalid("message", "", f"can have at most {_NOTE_LENGTH} characters"))
    return errors + all_invalid("namespace", namespace, subdomain_errors(namespace))


def _reporter(obj: Object, is_new: bool) -> list[FieldError]:
    field = "reportingController" if is_new else _OLD_CONTROLLER
    controller = obj.get(field) or ""
    errors = [] if controller else [required(field)]
    errors += all_invalid(field, controller, label_key_errors(controller))
    for name in ("reportingInstance", "action", "reason"):
        value = obj.get(name) or ""
        if not value:
            errors.append(required(name))
        if len(value) > _LENGTH:
            errors.append(invalid(name, "", f"can have at most {_LENGTH} characters"))
    return errors


SYSTEM_PREFIX: Final = "system-"
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_EVICTION: Final = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_SPEC: Final = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")


def budget(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True, rule=path_segment_errors)
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
    return budget(new) + object_meta_update(new["metadata"], old["metadata"])


def budget_status_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name in _COUNTS:
        errors += non_negative(f"status.{name}", (new.get("status") or {}).get(name))
    return errors


def priority_class(obj: Object) -> list[FieldError]:
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
    """Returns the errors of an updated PriorityClass, whose value pods have copied."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    if new.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    return errors + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def runtime_class(obj: Object) -> list[FieldError]:
    errors = object_meta(obj["metadata"], namespaced=False)
    handler = obj.get("handler", "")
    errors += all_invalid("handler", handler, dns_label_errors(handler))
    fixed = (obj.get("overhead") or {}).get("podFixed")
    return errors + container_resources("overhead", {"limits": fixed or {}}, ())


def custom_resource_definition(obj: Object) -> list[FieldError]:
    """Returns the errors of a CustomResourceDefinition, whose schemas are not checked."""
    errors = object_meta(obj["metadata"], namespaced=False)
    try:
        spec = decoding.convert(Definition, obj).spec
    except decoding.DecodeError as error:
        return [*errors, invalid("spec", None, str(error))]
    name, kind = obj["metadata"].get("name", ""), spec.names.kind
    if name != f"{spec.names.plural}.{spec.group}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if spec.scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec.scope, ("Cluster", "Namespaced")))
    errors += all_invalid("spec.names.kind", kind, dns_1035_errors(kind.lower()))
    for place, version in enumerate(spec.versions):
        errors += all_invalid(f"spec.versions[{place}].name", version.name, dns_1035_errors(version.name))
    return errors


def _no_system_class(name: str, value: int, is_default: bool) -> str:
    """Returns the reason why this is no system class; empty if it is one. Upstream: IsKnownSystemPriorityClass."""
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def lease_spec(spec: Object) -> list[FieldError]:
    errors = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return errors
