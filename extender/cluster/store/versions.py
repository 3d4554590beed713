"""Stored objects in the version in which they are served: with their kind, and events with the field names of either of
their two versions.

Upstream: pkg/apis/events/v1/conversion.go (v1.36.2).
"""

from typing import Final

import orjson

from extender.cluster.api_resources import NEW_EVENTS, Object, Resource
from extender.cluster.store.stored_object import Stored, encoded

NEW_NAME_OF: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""The names that fields of a core/v1 Event have in events.k8s.io/v1, where they differ."""
CORE_NAME_OF: Final = {new: core for core, new in NEW_NAME_OF.items()}


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
