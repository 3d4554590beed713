"""Probes and hooks of a container's life.

Upstream: pkg/apis/core/validation/validation.go, validateProbe, validateHandler, validateLifecycle (v1.36.2).
"""

from collections.abc import Callable, Mapping
from typing import Final

from extender.embedded.resources import Object
from extender.embedded.validation.names import header_name_errors, port_or_name
from extender.golang.field_errors import FieldError, all_invalid, forbidden, invalid, non_negative, not_supported, required

_SCHEMES: Final = ("HTTP", "HTTPS")
_NUMBERS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe(path: str, value: Object, grace: int | None, name: str) -> list[FieldError]:
    """A probe; `name` is the field it stands in."""
    errors = _one_way(path, value, grace)
    for number in _NUMBERS:
        errors += non_negative(f"{path}.{number}", value.get(number))
    own_grace = value.get("terminationGracePeriodSeconds")
    if own_grace is not None and own_grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", own_grace, "must be greater than 0"))
    if name == "readinessProbe":
        if own_grace is not None:
            errors.append(invalid(f"{path}.terminationGracePeriodSeconds", own_grace, "must not be set for readinessProbes"))
    elif value.get("successThreshold", 0) != 1:
        errors.append(invalid(f"{path}.successThreshold", value.get("successThreshold", 0), "must be 1"))
    return errors


def lifecycle(path: str, value: Object, grace: int | None) -> list[FieldError]:
    """What is done after the start and before the end."""
    hooks = ((name, value[name]) for name in ("postStart", "preStop") if value.get(name) is not None)
    return [error for name, hook in hooks for error in _one_way(f"{path}.{name}", hook, grace)]


def _one_way(path: str, value: Object, grace: int | None) -> list[FieldError]:
    """Exactly one way of asking or doing. Upstream: validateHandler."""
    errors: list[FieldError] = []
    ways = [name for name in _WAYS if value.get(name) is not None]
    if not ways:
        errors.append(required(path, "must specify a handler type"))
    for place, name in enumerate(ways):
        here = f"{path}.{name}"
        if place:
            errors.append(forbidden(here, "may not specify more than 1 handler type"))
        else:
            errors += _WAYS[name](here, value[name], grace)
    return errors


def _exec(path: str, action: Object, _: int | None) -> list[FieldError]:
    return [] if action.get("command") else [required(f"{path}.command")]


def _http_get(path: str, action: Object, _: int | None) -> list[FieldError]:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += port_or_name(f"{path}.port", action.get("port", 0))
    if action.get("scheme") not in _SCHEMES:
        errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), _SCHEMES))
    for header in action.get("httpHeaders") or ():
        errors += all_invalid(f"{path}.httpHeaders", header.get("name", ""), header_name_errors(header.get("name", "")))
    return errors


def _port(path: str, action: Object, _: int | None) -> list[FieldError]:
    return port_or_name(f"{path}.port", action.get("port", 0))


def _sleep(path: str, action: Object, grace: int | None) -> list[FieldError]:
    seconds = action.get("seconds", 0)
    if grace is None or 0 <= seconds <= grace:
        return []
    return [invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")]


_WAYS: Final[Mapping[str, Callable[[str, Object, int | None], list[FieldError]]]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _port,
    "grpc": _port,
    "sleep": _sleep,
}
