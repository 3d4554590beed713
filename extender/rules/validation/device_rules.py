"""Rules for the kinds of resource.k8s.io. CEL selectors are not compiled.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Collection, Sequence
from typing import Final

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
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from extender.values.objects.name_syntax import LABEL_MAX_LENGTH, label_key_errors, label_value_errors, subdomain_errors
from extender.values.objects.resource_names import NATIVE_DOMAIN, QUOTA_PREFIX

_LIST_MAX_SIZE: Final = 32
_RESOURCE_SLICE_MAX_DEVICES: Final = 128
_CEL_SELECTOR_EXPRESSION_MAX_LENGTH: Final = 10 * 1024
_RESERVED_FOR_MAX_SIZE: Final = 256
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_MODES: Final = ("All", "ExactCount")
_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_ONE_WAY: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def claim(obj: Object) -> list[FieldError]:
    return object_meta(obj["metadata"], namespaced=True) + _devices("spec.devices", obj["spec"].get("devices") or {})


def claim_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta(new["metadata"], namespaced=True) + object_meta_update(new["metadata"], old["metadata"])
    return errors + _unchanged("spec", new, old)


def claim_status_update(new: Object, old: Object) -> list[FieldError]:
    status, former = new.get("status") or {}, old.get("status") or {}
    errors = object_meta_update(new["metadata"], old["metadata"])
    reserved = status.get("reservedFor") or []
    if len(reserved) > _RESERVED_FOR_MAX_SIZE:
        errors.append(too_many("status.reservedFor", len(reserved), _RESERVED_FOR_MAX_SIZE))
    uids = [consumer.get("uid", "") for consumer in reserved]
    for place, consumer in enumerate(reserved):
        consumer_path = f"status.reservedFor[{place}]"
        errors += [
            required(f"{consumer_path}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)
        ]
        if uids[place] in uids[:place]:
            errors.append(duplicate(f"{consumer_path}.uid", uids[place]))
    if reserved and status.get("allocation") is None:
        errors.append(invalid("status.reservedFor", reserved, "may not be specified when `allocated` is not set"))
    if former.get("allocation") is not None and status.get("allocation") is not None:
        errors += immutable("status.allocation", status["allocation"], former["allocation"])
    elif status.get("allocation") is not None:
        errors += _allocation(
            "status.allocation", status["allocation"], _request_names(new["spec"].get("devices") or {})
        )
    return errors


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
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    places = [name for name in _PLACES if spec.get(name)]
    if not places:
        errors.append(required("spec", _ONE_PLACE))
    elif len(places) > 1:
        fields = f"{{{', '.join(f'`{name}`' for name in places)}}}"
        errors.append(invalid("spec", fields, f"{_ONE_PLACE}, but multiple fields are set"))
    if spec.get("nodeName"):
        errors += all_invalid("spec.nodeName", spec["nodeName"], subdomain_errors(spec["nodeName"]))
    if spec.get("nodeSelector") is not None:
        errors += node_selector("spec.nodeSelector", spec["nodeSelector"])
    errors += _driver("spec.driver", spec.get("driver", "")) + _pool(spec.get("pool") or {})
    return errors + _slice_devices(spec.get("devices") or ())


def resource_slice_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"]) + resource_slice(new)
    spec, former = new["spec"], old["spec"]
    for name in ("nodeName", "driver"):
        errors += immutable(f"spec.{name}", spec.get(name), former.get(name))
    return errors + immutable(
        "spec.pool.name", (spec.get("pool") or {}).get("name"), (former.get("pool") or {}).get("name")
    )


def _unchanged(name: str, new: Object, old: Object) -> list[FieldError]:
    return [] if new.get(name) == old.get(name) else [invalid(name, new.get(name), IMMUTABLE)]


def _devices(path: str, devices: Object) -> list[FieldError]:
    """Upstream: validateDeviceClaim."""
    requests = devices.get("requests") or []
    request_names = _request_names(devices)
    errors = _at_most(f"{path}.requests", requests)
    names = [request.get("name", "") for request in requests]
    for place, request in enumerate(requests):
        request_path = f"{path}.requests[{place}]"
        errors += _request(request_path, request)
        if names[place] in names[:place]:
            errors.append(duplicate(f"{request_path}.name", names[place]))
    constraints = devices.get("constraints") or ()
    errors += _at_most(f"{path}.constraints", constraints)
    for place, constraint in enumerate(constraints):
        errors += _constraint(f"{path}.constraints[{place}]", constraint, request_names)
    return errors


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
    name = request.get("name", "")
    errors = dns_label(f"{path}.name", name) if name else [required(f"{path}.name")]
    exactly, several = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not several:
        errors.append(required(path, _ONE_WAY))
    elif exactly is not None and several:
        errors.append(invalid(path, None, f"{_ONE_WAY}, but multiple fields are set"))
    elif exactly is not None:
        errors += _device_request(f"{path}.exactly", exactly)
    names = [subrequest.get("name", "") for subrequest in several]
    for place, subrequest in enumerate(several if exactly is None else ()):
        subrequest_path = f"{path}.firstAvailable[{place}]"
        errors += dns_label(f"{subrequest_path}.name", names[place]) + _device_request(subrequest_path, subrequest)
        if names[place] in names[:place]:
            errors.append(duplicate(f"{subrequest_path}.name", names[place]))
    return errors


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
    return errors


def _selectors(path: str, selectors: Sequence[Object]) -> list[FieldError]:
    errors = _at_most(path, selectors)
    for place, selector in enumerate(selectors):
        cel_path = f"{path}[{place}].cel"
        expression = (selector.get("cel") or {}).get("expression", "")
        if selector.get("cel") is None:
            errors.append(required(cel_path))
        elif not expression:
            errors.append(required(f"{cel_path}.expression"))
        elif len(expression.encode()) > _CEL_SELECTOR_EXPRESSION_MAX_LENGTH:
            errors.append(too_long(f"{cel_path}.expression", _CEL_SELECTOR_EXPRESSION_MAX_LENGTH))
    return errors


def _extended_resource_name(path: str, name: str | None) -> list[FieldError]:
    """Returns the errors of the name of an extended resource. Upstream: validate.ExtendedResourceName."""
    if name is None:
        return []
    errors = []
    if "/" not in name:
        errors.append(invalid(path, name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"))
    elif NATIVE_DOMAIN in name:
        errors.append(invalid(path, name, f'must not have "{NATIVE_DOMAIN}" domain'))
    if name.startswith(QUOTA_PREFIX):
        errors.append(invalid(path, name, f'must not have "{QUOTA_PREFIX}" prefix'))
    return errors + all_invalid(path, name, label_key_errors(QUOTA_PREFIX + name))


def _constraint(path: str, constraint: Object, request_names: Collection[str]) -> list[FieldError]:
    errors = _request_references(f"{path}.requests", constraint.get("requests") or (), request_names)
    attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute")
    if attribute is None:
        return [*errors, required(f"{path}.matchAttribute")]
    if "/" not in attribute:
        errors.append(
            invalid(
                f"{path}.matchAttribute",
                attribute,
                "a fully qualified name must be a domain and a name separated by a slash",
            )
        )
    return errors


def _request_references(path: str, names: Sequence[str], request_names: Collection[str]) -> list[FieldError]:
    errors = _at_most(path, names)
    for place, name in enumerate(names):
        if name not in request_names:
            errors.append(invalid(f"{path}[{place}]", name, _NO_REQUEST))
        if name in names[:place]:
            errors.append(duplicate(f"{path}[{place}]", name))
    return errors


def _allocation(path: str, allocation: Object, request_names: Collection[str]) -> list[FieldError]:
    errors = []
    for place, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
        result_path, name = f"{path}.devices.results[{place}]", result.get("request", "")
        if name not in request_names:
            errors.append(invalid(f"{result_path}.request", name, _NO_REQUEST))
        errors += _driver(f"{result_path}.driver", result.get("driver", ""))
        if not result.get("pool"):
            errors.append(required(f"{result_path}.pool"))
        errors += dns_label(f"{result_path}.device", result.get("device", ""))
    if allocation.get("nodeSelector") is not None:
        errors += node_selector(f"{path}.nodeSelector", allocation["nodeSelector"])
    return errors


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
    return [error for part in name.split("/") for error in subdomain(path, part)] if name else [required(path)]


def _slice_devices(devices: Sequence[Object]) -> list[FieldError]:
    errors = _at_most("spec.devices", devices, _RESOURCE_SLICE_MAX_DEVICES)
    names = [device.get("name", "") for device in devices]
    for place, device in enumerate(devices):
        device_path = f"spec.devices[{place}]"
        errors += dns_label(f"{device_path}.name", names[place])
        if names[place] in names[:place]:
            errors.append(duplicate(f"{device_path}.name", names[place]))
        for part in ("attributes", "capacity"):
            for name in device.get(part) or {}:
                errors += _qualified(f"{device_path}.{part}[{name}]", name)
        for name, attribute in (device.get("attributes") or {}).items():
            where, detail = f"{device_path}.attributes[{name}]", "exactly one value must be specified"
            if not attribute:
                errors.append(required(where, detail))
            elif len(attribute) > 1:
                errors.append(invalid(where, attribute, detail))
        for number, taint in enumerate(device.get("taints") or ()):
            errors += _taint(f"{device_path}.taints[{number}]", taint)
    return errors


def _qualified(path: str, name: str) -> list[FieldError]:
    """Upstream: validateQualifiedName."""
    domain, slash, identifier = name.rpartition("/")
    errors = subdomain(path, domain) if slash else []
    return errors + all_invalid(path, identifier, c_identifier_errors(identifier))


def _taint(path: str, taint: Object) -> list[FieldError]:
    errors = label_name(f"{path}.key", taint.get("key", ""))
    value, effect = taint.get("value", ""), taint.get("effect", "")
    errors += all_invalid(f"{path}.value", value, label_value_errors(value)) if value else []
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def _at_most(path: str, values: Sequence[object], largest: int = _LIST_MAX_SIZE) -> list[FieldError]:
    return [too_many(path, len(values), largest)] if len(values) > largest else []
