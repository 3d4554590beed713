"""Objects as they are stored, with the labels and fields for selectors; and as they are served, in either version.

Upstream: pkg/apis/events/v1/conversion.go.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import orjson

from extender.rules.api_resources import CORE_NAME_OF, NEW_EVENTS, NEW_NAME_OF, Object, Resource


@final
@dataclass(frozen=True, slots=True)
class Stored:
    """An object at one resourceVersion.

    Attributes:
        key: `default/web` or `node-1`; lists are in the order of keys.
        body: the JSON object without kind and apiVersion; never empty.
        fields: the values of the selectable fields, in the order of `field_paths`.
    """

    key: str
    resource_version: int
    body: bytes
    labels: dict[str, str]
    fields: tuple[str, ...]

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def decoded(self) -> Object:
        """Returns a new copy of the object, without kind and apiVersion."""
        obj: Object = orjson.loads(self.body)
        return obj


def at_version(stored: Stored, resource_version: int) -> Stored:
    obj = stored.decoded()
    obj["metadata"]["resourceVersion"] = str(resource_version)
    return Stored(stored.key, resource_version, encoded(obj), stored.labels, stored.fields)


def stored_object(key: str, resource_version: int, obj: Object, paths: Iterable[str]) -> Stored:
    """Returns an object as it is stored; `paths` are those of its selectable fields."""
    labels = obj["metadata"].get("labels") or {}
    shared = {_shared(name): _shared(value) for name, value in labels.items()}
    fields = tuple(_shared(field_value(obj, path)) for path in paths)
    return Stored(key, resource_version, encoded(obj), shared, fields)


@lru_cache(65_536)
def _shared(text: str) -> str:
    """Returns the first equal text, since those of labels recur in many objects. From Python 3.12 on `sys.intern` would
    keep them for ever.
    """
    return text


def encoded(obj: Object) -> bytes:
    """Returns an object as it is stored: its JSON without kind and apiVersion."""
    body = orjson.dumps({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})
    # orjson returns its whole buffer, several times as large as its content; a copy has the right size.
    return bytes(memoryview(body))


_DEFAULTS: Final = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"}
"""Go's zero values as texts, where these are not empty."""


def field_value(obj: Object, path: str) -> str:
    """Returns the value of a selectable field as a text; empty if the field is absent, a list or an object."""
    if path == "source":
        source = obj.get("source") or {}
        return str(source.get("component") or obj.get("reportingComponent") or "")
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else _DEFAULTS.get(path, "")


def prefix(resource: Resource) -> bytes:
    """Returns the beginning of a served object. The bytes of a stored one follow, without their opening brace."""
    return b'{"kind":"%s","apiVersion":"%s",' % (resource.kind.encode(), resource.api_version.encode())


def item(resource: Resource, stored: Stored) -> bytes:
    """Returns the JSON of an object in a list, without its kind."""
    return orjson.dumps(_renamed(stored.decoded(), NEW_NAME_OF)) if resource is NEW_EVENTS else stored.body


def body(resource: Resource, stored: Stored) -> bytes:
    """Returns the JSON of an object, with its kind."""
    return prefix(resource) + item(resource, stored)[1:]


def shown(resource: Resource, stored: Stored) -> Object:
    """Returns a new copy of an object, with its kind."""
    obj = stored.decoded()
    return typed(resource, _renamed(obj, NEW_NAME_OF) if resource is NEW_EVENTS else obj)


def typed(resource: Resource, obj: Object) -> Object:
    """Returns the object with its kind and apiVersion first."""
    return {"kind": resource.kind, "apiVersion": resource.api_version} | {
        name: value for name, value in obj.items() if name not in ("kind", "apiVersion")
    }


def stored_form(resource: Resource, obj: Object) -> Object:
    """Returns the object in the version in which it is stored. The metadata is shared."""
    return _renamed(obj, CORE_NAME_OF) if resource is NEW_EVENTS else obj


def differs(resource: Resource, stored: Stored, obj: Object) -> bool:
    """Returns whether an object that `shown` returned has been changed since."""
    return encoded(stored_form(resource, obj)) != stored.body


def _renamed(obj: Object, names: dict[str, str]) -> Object:
    return {names.get(name, name): value for name, value in obj.items()}
