"""Rules for the kinds of resource.k8s.io. CEL selectors are not compiled.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.rules.validation.metadata_rules import (
    c_identifier_errors,
    dns_label,
    label_name,
    object_meta,
    object_meta_update,
    subdomain,
)
from extender.rules.validation.placement_rules import node_selector
from extender.values.golang.field_errors import (
    IMMUTABLE,
    NOT_POSITIVE,
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
    too_many,
)
from extender.values.objects.name_syntax import LABEL_MAX_LENGTH, label_key_errors, label_value_errors, subdomain_errors
from extender.values.objects.resource_names import NATIVE_DOMAIN, QUOTA_PREFIX

_LIST_MAX_SIZE: Final = 32
_FIRST_AVAILABLE_MAX_SIZE: Final = 8
_TAINTS_MAX_SIZE: Final = 16
_RESOURCE_SLICE_MAX_DEVICES: Final = 128
_RESOURCE_SLICE_MAX_DEVICES_WITH_TAINTS_OR_COUNTERS: Final = 64
_POOL_NAME_MAX_LENGTH: Final = 253
_ID_MAX_LENGTH: Final = 32
_CEL_SELECTOR_EXPRESSION_MAX_LENGTH: Final = 10 * 1024
_RESERVED_FOR_MAX_SIZE: Final = 256
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_MODES: Final = ("All", "ExactCount")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_NO_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_ONE_WAY: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def claim(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=True) + _devices("spec.devices", obj["spec"].get("devices") or {})


def claim_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta(new["metadata"], namespaced=True) + object_meta_update(new["metadata"], old["metadata"])
    return errors + _unchanged("spec", new, old)


def claim_status_update(new: Object, old: Object) -> list[FieldError]:
    status, former = new.get("status") or {}, old.get("status") or {}
    errors = object_meta_update(new["metadata"], old["metadata"])
    reserved = status.get("reservedFor") or []
    errors += _list("status.reservedFor", reserved, _consumer, "uid", largest=_RESERVED_FOR_MAX_SIZE)
    if reserved and status.get("allocation") is None:
        errors.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif "deletionTimestamp" in new["metadata"] and any(
        consumer not in (former.get("reservedFor") or ()) for consumer in reserved
    ):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden("status.reservedFor", detail))
    if former.get("allocation") is not None and status.get("allocation") is not None:
        errors += immutable("status.allocation", status["allocation"], former["allocation"])
    elif status.get("allocation") is not None:
        errors += _allocation(
            "status.allocation", status["allocation"], _request_names(new["spec"].get("devices") or {})
        )
    return errors


def _consumer(path: str, consumer: Object) -> list[FieldError]:
    return [required(f"{path}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)]


def claim_template(obj: Object) -> list[FieldError]:
    inner = (obj["spec"].get("spec") or {}).get("devices") or {}
    return object_meta(obj["metadata"], namespaced=True) + _devices("spec.spec.devices", inner)


def device_class(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False) + _selectors("spec.selectors", spec.get("selectors") or ())
    return errors + _extended_resource_name("spec.extendedResourceName", spec.get("extendedResourceName"))


def device_taint_rule(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    selector = spec.get("deviceSelector") or {}
    errors = object_meta(obj["metadata"], namespaced=False)
    errors += _driver("spec.deviceSelector.driver", selector["driver"]) if "driver" in selector else []
    errors += _pool_name("spec.deviceSelector.pool", selector["pool"]) if "pool" in selector else []
    errors += dns_label("spec.deviceSelector.device", selector["device"]) if "device" in selector else []
    return errors + _taint("spec.taint", spec.get("taint") or {})


def resource_slice(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=False) + _slice(obj["spec"], None)


def resource_slice_update(new: Object, old: Object) -> list[FieldError]:
    return object_meta_update(new["metadata"], old["metadata"]) + _slice(new["spec"], old["spec"])


def _slice(spec: Object, former: Object | None) -> list[FieldError]:
    """Checks the spec of a slice, beside its former one in an update. Upstream: validateResourceSliceSpec."""
    pool = spec.get("pool") or {}
    errors = _driver("spec.driver", spec.get("driver", "")) + _pool(pool)
    if former is not None:
        errors += immutable("spec.pool.name", pool.get("name"), (former.get("pool") or {}).get("name"))
        errors += immutable("spec.driver", spec.get("driver"), former.get("driver"))
        errors += immutable("spec.nodeName", spec.get("nodeName"), former.get("nodeName"))
    places, wrong = _places("spec", spec, _PLACES, "must be either unset or set to a non-empty string")
    errors += wrong
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms")
    if spec.get("nodeSelector") is not None and len(terms or ()) != 1:
        path = "spec.nodeSelector.nodeSelectorTerms"
        errors.append(invalid(path, terms, "must have exactly one node selector term"))
    if not places:
        errors.append(required("spec", _ONE_PLACE))
    elif len(places) > 1:
        errors.append(invalid("spec", f"{{{', '.join(places)}}}", f"{_ONE_PLACE}, but multiple fields are set"))
    devices = spec.get("devices") or []
    if devices and spec.get("sharedCounters"):
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    is_long = not any(device.get("taints") or device.get("consumesCounters") for device in devices)
    largest = _RESOURCE_SLICE_MAX_DEVICES if is_long else _RESOURCE_SLICE_MAX_DEVICES_WITH_TAINTS_OR_COUNTERS
    check = partial(_device, is_placed=bool(spec.get("perDeviceNodeSelection")))
    return errors + _list("spec.devices", devices, check, "name", largest=largest)


def _places(path: str, spec: Object, names: Sequence[str], empty_name: str) -> tuple[list[str], list[FieldError]]:
    """Returns the fields that say on which nodes devices are, as errors print them, and their errors."""
    places, errors = [], []
    for name in names:
        value = spec.get(name)
        if value is None:
            continue
        if value == "":
            errors.append(invalid(f"{path}.{name}", value, empty_name))
        elif value is False:
            errors.append(invalid(f"{path}.{name}", value, "must be either unset or set to true"))
        else:
            places.append(f"`{name}`")
        if name == "nodeName" and value:
            errors += subdomain(f"{path}.nodeName", value)
        elif name == "nodeSelector":
            errors += node_selector(f"{path}.nodeSelector", value)
    return places, errors


def _unchanged(name: str, new: Object, old: Object) -> list[FieldError]:
    return [] if new.get(name) == old.get(name) else [invalid(name, new.get(name), IMMUTABLE)]


def _devices(path: str, devices: Object) -> list[FieldError]:
    """Upstream: validateDeviceClaim."""
    errors = _list(f"{path}.requests", devices.get("requests") or [], _request, "name")
    check = partial(_constraint, request_names=_request_names(devices))
    return errors + _list(f"{path}.constraints", devices.get("constraints") or [], check)


def _request_names(devices: Object) -> set[str]:
    names = set()
    for request in devices.get("requests") or ():
        names.add(request.get("name", ""))
        names.update(
            f"{request.get('name', '')}/{subrequest.get('name', '')}"
            for subrequest in request.get("firstAvailable") or ()
        )
    return names


def _request(path: str, request: Object) -> list[FieldError]:
    errors = dns_label(f"{path}.name", request.get("name", ""))
    exactly, several = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not several:
        errors.append(required(path, _ONE_WAY))
    elif exactly is not None and several:
        errors.append(invalid(path, None, f"{_ONE_WAY}, but multiple fields are set"))
    elif exactly is not None:
        errors += _device_request(f"{path}.exactly", exactly)
    else:
        errors += _list(f"{path}.firstAvailable", several, _subrequest, "name", largest=_FIRST_AVAILABLE_MAX_SIZE)
    return errors


def _subrequest(path: str, request: Object) -> list[FieldError]:
    return dns_label(f"{path}.name", request.get("name", "")) + _device_request(path, request)


def _device_request(path: str, request: Object) -> list[FieldError]:
    name, mode, count = request.get("deviceClassName", ""), request.get("allocationMode", ""), request.get("count", 0)
    errors = subdomain(f"{path}.deviceClassName", name) if name else [required(f"{path}.deviceClassName")]
    errors += _selectors(f"{path}.selectors", request.get("selectors") or ())
    if mode == "All":
        errors += (
            [invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")] if count else []
        )
    elif mode == "ExactCount":
        errors += [invalid(f"{path}.count", count, NOT_POSITIVE)] if count <= 0 else []
    else:
        errors.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    return errors + _list(
        f"{path}.tolerations", request.get("tolerations") or [], _toleration, largest=_TAINTS_MAX_SIZE
    )


def _toleration(path: str, toleration: Object) -> list[FieldError]:
    """Checks a toleration of device taints. Upstream: validateDeviceToleration."""
    key, operator, value = (toleration.get(name, "") for name in ("key", "operator", "value"))
    errors = label_name(f"{path}.key", key) if key else []
    if operator == "Exists":
        errors += [invalid(f"{path}.value", value, "must be empty for operator `Exists`")] if value else []
    elif operator == "Equal":
        errors += all_invalid(f"{path}.value", value, label_value_errors(value))
    else:
        errors += one_of(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    effect = toleration.get("effect")
    return errors + (one_of(f"{path}.effect", effect, _EFFECTS) if effect else [])


def _selectors(path: str, selectors: Sequence[Object]) -> list[FieldError]:
    return _list(path, selectors, _selector)


def _selector(path: str, selector: Object) -> list[FieldError]:
    if selector.get("cel") is None:
        return [required(f"{path}.cel")]
    expression = selector["cel"].get("expression", "")
    if not expression:
        return [required(f"{path}.cel.expression")]
    is_long = len(expression.encode()) > _CEL_SELECTOR_EXPRESSION_MAX_LENGTH
    return [too_long(f"{path}.cel.expression", _CEL_SELECTOR_EXPRESSION_MAX_LENGTH)] if is_long else []


def _extended_resource_name(path: str, name: str | None) -> list[FieldError]:
    """Returns the errors of the name of an extended resource. Upstream: validate.ExtendedResourceName."""
    if name is None:
        return []
    is_native = "/" not in name or NATIVE_DOMAIN in name
    if is_native or name.startswith(QUOTA_PREFIX) or label_key_errors(QUOTA_PREFIX + name):
        return [invalid(path, name, "must be a valid extended resource name")]
    return []


def _constraint(path: str, constraint: Object, request_names: Collection[str]) -> list[FieldError]:
    check = partial(_request_reference, request_names=request_names)
    errors = _list(f"{path}.requests", constraint.get("requests") or [], check, "")
    name = next((name for name in ("matchAttribute", "distinctAttribute") if constraint.get(name) is not None), None)
    if name is None:
        return [*errors, required(path, _NO_ATTRIBUTE)]
    attribute = constraint[name]
    errors += _qualified(f"{path}.{name}", attribute)
    if "/" not in attribute:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(f"{path}.{name}", attribute, detail))
    return errors


def _request_reference(path: str, name: str, request_names: Collection[str]) -> list[FieldError]:
    """Checks a reference to a request, or to one of its alternatives. Upstream: validateRequestNameRef."""
    parts = name.split("/")
    errors = [error for part in parts for error in dns_label(path, part)] if len(parts) <= 2 else []
    return errors if name in request_names else [*errors, invalid(path, name, _NO_REQUEST)]


def _allocation(path: str, allocation: Object, request_names: Collection[str]) -> list[FieldError]:
    results = (allocation.get("devices") or {}).get("results") or []
    errors = _list(f"{path}.devices.results", results, partial(_allocated_device, request_names=request_names))
    if allocation.get("nodeSelector") is not None:
        errors += node_selector(f"{path}.nodeSelector", allocation["nodeSelector"])
    return errors


def _allocated_device(path: str, result: Object, request_names: Collection[str]) -> list[FieldError]:
    errors = _request_reference(f"{path}.request", result.get("request", ""), request_names)
    errors += _driver(f"{path}.driver", result.get("driver", ""))
    errors += _pool_name(f"{path}.pool", result.get("pool", ""))
    return errors + dns_label(f"{path}.device", result.get("device", ""))


def _driver(path: str, name: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, LABEL_MAX_LENGTH)] if len(name) > LABEL_MAX_LENGTH else []
    return errors + all_invalid(path, name, subdomain_errors(name.lower()))


def _pool(pool: Object) -> list[FieldError]:
    errors = _pool_name("spec.pool.name", pool.get("name", ""))
    if pool.get("resourceSliceCount", 0) <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), NOT_POSITIVE))
    if pool.get("generation", 0) < 0:
        errors.append(invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero"))
    return errors


def _pool_name(path: str, name: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, _POOL_NAME_MAX_LENGTH)] if len(name) > _POOL_NAME_MAX_LENGTH else []
    return errors + [error for part in name.split("/") for error in subdomain(path, part)]


def _device(path: str, device: Object, *, is_placed: bool) -> list[FieldError]:
    """Checks a device of a slice. Upstream: validateDevice."""
    errors = dns_label(f"{path}.name", device.get("name", ""))
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _LIST_MAX_SIZE:
        detail = f"the total number of attributes and capacities must not exceed {_LIST_MAX_SIZE}"
        errors.append(invalid(path, len(attributes) + len(capacity), detail))
    for name, attribute in attributes.items():
        attribute_path, detail = f"{path}.attributes[{name}]", "exactly one value must be specified"
        errors += _qualified(f"{path}.attributes", name)
        if len(attribute) != 1:
            errors.append(invalid(attribute_path, attribute or "", detail))
    for name in capacity:
        errors += _qualified(f"{path}.capacity", name)
    errors += _list(f"{path}.taints", device.get("taints") or [], _taint, largest=_TAINTS_MAX_SIZE)
    if not is_placed:
        is_free = all(device.get(name) is None for name in _PLACES)
        return errors if is_free else [*errors, invalid(path, None, _NO_DEVICE_PLACE)]
    places, wrong = _places(path, device, _PLACES[:3], "must not be empty")
    errors += wrong
    if not places:
        errors.append(required(path, _ONE_DEVICE_PLACE))
    elif len(places) > 1:
        errors.append(invalid(path, f"{{{', '.join(places)}}}", _ONE_DEVICE_PLACE))
    return errors


def _qualified(path: str, name: str) -> list[FieldError]:
    """Upstream: validateQualifiedName, which accepts names with several slashes."""
    parts = name.split("/")
    if len(parts) > 2:
        return []
    errors: list[FieldError] = []
    if len(parts) == 2:
        errors += _driver(path, parts[0]) if parts[0] else [invalid(path, "", "the domain must not be empty")]
        if not parts[1]:
            return [*errors, invalid(path, "", "the name must not be empty")]
    errors += [too_long(path, _ID_MAX_LENGTH)] if len(parts[-1]) > _ID_MAX_LENGTH else []
    return errors + all_invalid(path, parts[-1], c_identifier_errors(parts[-1]))


def _taint(path: str, taint: Object) -> list[FieldError]:
    errors = label_name(f"{path}.key", taint.get("key", ""))
    value, effect = taint.get("value", ""), taint.get("effect", "")
    errors += all_invalid(f"{path}.value", value, label_value_errors(value)) if value else []
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def _list(
    path: str,
    items: Sequence[Any],
    check: Callable[[str, Any], list[FieldError]],
    key: str | None = None,
    *,
    largest: int = _LIST_MAX_SIZE,
) -> list[FieldError]:
    """Checks a list: its size, its items, and that these differ in `key`, or as texts if that is empty.

    Upstream: validateSlice, validateSet.
    """
    if len(items) > largest:
        return [too_many(path, len(items), largest)]
    errors = [error for place, item in enumerate(items) for error in check(f"{path}[{place}]", item)]
    if key is not None:
        keys = [item.get(key, "") if key else item for item in items]
        errors += [duplicate(f"{path}[{place}]", name) for place, name in enumerate(keys) if name in keys[:place]]
    return errors
