"""Rules for nodes, namespaces, services, and events in both versions.

Upstream: pkg/apis/core/validation/validation.go, ValidateNode, ValidateNodeUpdate, ValidateNamespace; events.go
(v1.36.2).
"""

from typing import Any, Final

from extender.cluster.api_resources import Object
from extender.cluster.store.versions import NEW_NAME_OF
from extender.cluster.validation.amount_rules import quantity_value
from extender.cluster.validation.metadata_rules import label_name, labels, object_meta, object_meta_update
from extender.cluster.validation.placement_rules import taints
from extender.values.golang.field_errors import FieldError, all_invalid, forbidden, immutable, invalid, required
from extender.values.objects.name_syntax import dns_1035_errors, dns_label_errors, label_key_errors, subdomain_errors

_LENGTH: Final = 128
_NOTE_LENGTH: Final = 1024
_OLD_CONTROLLER: Final = "reportingComponent"
_FROZEN: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action",
    "related", "reportingController", "reportingInstance",
)  # fmt: skip


def node(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new Node."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    # The path is upstream's.
    return errors + taints("metadata.taints", spec.get("taints") or ()) + _amounts(obj)


def node_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a Node that replaces another one, or its status."""
    spec, former = new["spec"], old["spec"]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _amounts(new)
    if former.get("podCIDRs") and spec.get("podCIDRs") != former["podCIDRs"]:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if former.get("providerID") and spec.get("providerID") != former["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    return errors + taints("metadata.taints", spec.get("taints") or ())


def whole_node_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a Node that replaces another one: the rules for new nodes hold, too, as in the
    strategy of nodes.
    """
    return node(new) + node_update(new, old)


def namespace(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new Namespace."""
    errors = object_meta(obj["metadata"], namespaced=False, rule=dns_label_errors)
    for finalizer in (obj.get("spec") or {}).get("finalizers") or ():
        errors += label_name("spec.finalizers", finalizer)
    return errors


def namespace_status_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with the status of a Namespace. Upstream: ValidateNamespaceStatusUpdate."""
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
    """Returns what is wrong with the name and the selector of a Service; pods are spread by the selector."""
    errors = object_meta(obj["metadata"], namespaced=True, rule=dns_1035_errors)
    return errors + labels("spec.selector", obj["spec"].get("selector"))


def service_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with a Service that replaces another one."""
    return object_meta_update(new["metadata"], old["metadata"]) + service(new)


def event(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new Event of core/v1."""
    return _basics(obj, is_new=False)


def event_update(new: Object, old: Object) -> list[FieldError]:
    """Returns what is wrong with an Event of core/v1 that replaces another one."""
    return _basics(new, is_new=False)


def new_event(obj: Object) -> list[FieldError]:
    """Returns what is wrong with a new Event of events.k8s.io/v1, which has stricter rules."""
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
    """Returns what is wrong with an Event of events.k8s.io/v1 that replaces another one: only its series may change."""
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
    """The rules for all events. Upstream: legacyValidateEvent."""
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
    controller = _member(obj, "reportingController", is_new) or ""
    errors = [] if controller else [required("reportingController")]
    errors += all_invalid("reportingController", controller, label_key_errors(controller))
    for name in ("reportingInstance", "action", "reason"):
        value = obj.get(name) or ""
        if not value:
            errors.append(required(name))
        if len(value) > _LENGTH:
            errors.append(invalid(name, "", f"can have at most {_LENGTH} characters"))
    return errors
