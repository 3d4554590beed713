"""What field selectors compare: the values of a few fields, as texts.

Upstream: pkg/registry, the GetAttrs and SelectableFields of each kind (v1.36.2).
"""

from typing import Any, Final

from extender.embedded.resources import Object

_DEFAULTS: Final = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"}
"""What Go's zero values look like, where that is not an empty text."""


def field_value(obj: Object, path: str) -> str:
    """The value at a path; empty if the field is absent, a list or an object."""
    if path == "source":
        source = obj.get("source") or {}
        return str(source.get("component") or obj.get("reportingComponent") or "")
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else _DEFAULTS.get(path, "")
