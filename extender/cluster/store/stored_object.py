"""An object as it is stored: its JSON, and what selectors ask of it."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec
import orjson

from extender.cluster.api_resources import Object

_MANY_LABELS: Final = 1000


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

    def sparse(self, *decoded: str) -> Object:
        """Returns a new copy of the object in which only the metadata and these members are decoded.

        The others, and what may be long in the metadata, are `orjson.Fragment`s, which are written as they are: that
        takes a tenth of the time for a long object.
        """
        members = _members(self.body)
        obj = {name: orjson.loads(raw) if name in decoded else orjson.Fragment(raw) for name, raw in members.items()}
        obj["metadata"] = {
            name: orjson.Fragment(raw) if name in _LONG_METADATA else orjson.loads(raw)
            for name, raw in _members(members["metadata"]).items()
        }
        return obj

    def member(self, *path: str) -> Any:
        """Returns the value at a path, without decoding the rest; None if there is none."""
        raw: bytes | None = self.body
        for name in path:
            raw = None if raw is None else _members(raw).get(name)
        return None if raw is None else orjson.loads(raw)


_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LONG_METADATA: Final = ("annotations", "managedFields", "ownerReferences")


def _members(raw: bytes) -> dict[str, bytes]:
    """Returns the members of an object as their JSON, which is passed over but not decoded."""
    return {name: bytes(member) for name, member in _MEMBERS.decode(raw).items()}


def at_version(stored: Stored, resource_version: int) -> Stored:
    """Returns the same object with another resourceVersion."""
    obj = stored.sparse()
    obj["metadata"]["resourceVersion"] = str(resource_version)
    return Stored(stored.key, resource_version, _dumped(obj), stored.labels, stored.fields)


def stored_object(key: str, resource_version: int, obj: Object, paths: Iterable[str], old: Stored | None) -> Stored:
    """Returns an object as it is stored.

    Arguments:
        paths: the paths of the selectable fields.
        old: the object before, of which `obj` may be a sparse copy.
    """
    labels = obj["metadata"].get("labels") or {}
    # Labels recur in many objects, but not those of an object that has very many.
    shared = (
        {sys.intern(name): sys.intern(value) for name, value in labels.items()}
        if len(labels) <= _MANY_LABELS
        else dict(labels)
    )
    return Stored(key, resource_version, encoded(obj), shared, tuple(_values(obj, paths, old)))


def encoded(obj: Object) -> bytes:
    """Returns an object as it is stored: its JSON without kind and apiVersion."""
    return _dumped({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})


def _dumped(obj: Object) -> bytes:
    # orjson returns its whole buffer, several times as large as its content; a copy has the right size.
    return bytes(memoryview(orjson.dumps(obj)))


def _values(obj: Object, paths: Iterable[str], old: Stored | None) -> Iterator[str]:
    for place, path in enumerate(paths):
        # What is not decoded is as it was.
        is_sparse = old is not None and isinstance(obj.get(path.partition(".")[0]), orjson.Fragment)
        yield old.fields[place] if old is not None and is_sparse else sys.intern(field_value(obj, path))


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
