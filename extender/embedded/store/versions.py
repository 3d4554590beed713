"""What a stored object looks like to those who ask: with its kind, and for events in the words of either of their two APIs.

Upstream: pkg/apis/events/v1/conversion.go (v1.36.2).
"""

from typing import Final

import orjson

from extender.embedded.api_resources import NEW_EVENTS, Object, Resource
from extender.embedded.store.object_store import Stored

NEW_NAME_OF: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""A field of an event in core/v1 -> the same in events.k8s.io/v1, where they differ."""
_TO_CORE: Final = {new: core for core, new in NEW_NAME_OF.items()}


def prefix(resource: Resource) -> bytes:
    """What stands before the bytes of a stored object without its opening brace."""
    return b'{"kind":"%s","apiVersion":"%s",' % (resource.kind.encode(), resource.api_version.encode())


def item(resource: Resource, stored: Stored) -> bytes:
    """The object as an item of a list: without its kind."""
    return orjson.dumps(_renamed(stored.decoded(), NEW_NAME_OF)) if resource is NEW_EVENTS else stored.body


def body(resource: Resource, stored: Stored) -> bytes:
    """The object with its kind, as JSON."""
    return prefix(resource) + item(resource, stored)[1:]


def shown(resource: Resource, stored: Stored) -> Object:
    """The object with its kind, as values."""
    obj = stored.decoded()
    return typed(resource, _renamed(obj, NEW_NAME_OF) if resource is NEW_EVENTS else obj)


def typed(resource: Resource, obj: Object) -> Object:
    """The same object, its kind first."""
    return {"kind": resource.kind, "apiVersion": resource.api_version} | {
        name: value for name, value in obj.items() if name not in ("kind", "apiVersion")
    }


def stored_form(resource: Resource, obj: Object) -> Object:
    """The object as the store keeps it. The metadata is shared."""
    return _renamed(obj, _TO_CORE) if resource is NEW_EVENTS else obj


def _renamed(obj: Object, names: dict[str, str]) -> Object:
    return {names.get(name, name): value for name, value in obj.items()}
