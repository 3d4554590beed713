"""Reads objects and watch events of one kind from bytes, setting aside objects that cannot be read.

Upstream: apimachinery/pkg/watch/streamwatcher.go.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from extender.client.errors import ApiError, from_status
from extender.client.informers.keeping import keeper_of
from extender.values.objects import decoding
from extender.values.objects.cluster import Key
from extender.values.objects.kinds import WatchedKind
from extender.values.objects.meta import ApiObject, HasMetadata, ObjectMeta
from extender.values.objects.whole import whole

T = TypeVar("T", bound=HasMetadata)


class DoubtfulAnswerError(Exception):
    """A list or a watch that must not be believed; the message contains the reason."""


class UnreadableObjectError(Exception):
    """An object of the wrong kind, or with a field of the wrong type."""

    def __init__(self, reason: str, meta: ObjectMeta | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.meta = meta
        """The identity of the object; None if not even that can be read."""


def never(obj: HasMetadata) -> bool:
    """Lets no object remember its JSON."""
    return False


@final
class ObjectReader(Generic[T]):
    """Reads objects of one kind, and keeps of them what scheduling reads.

    `is_whole` returns whether an object, which is a pod or a node, has to remember its JSON, see `whole`.
    """

    def __init__(self, kind: WatchedKind[T], is_whole: Callable[[HasMetadata], bool] = never) -> None:
        self._kind, self._name = kind, kind.name
        self._wire: Any = _with_kind(kind.type)
        event: Any = msgspec.defstruct("Event", [("type", str), ("object", self._wire)], frozen=True, gc=False)
        self._decode_put = msgspec.json.Decoder(event).decode
        self._keep: Callable[[T], T] = keeper_of(kind)
        self._is_whole = is_whole

    def read(self, data: bytes | msgspec.Raw, *, kind_required: bool) -> T:
        """Returns the object, of a list even without its kind. Raises UnreadableObjectError."""
        try:
            wire = decoding.decode(self._wire, data)
        except decoding.DecodeError as exc:
            raise UnreadableObjectError(str(exc), self.identify(data)) from exc
        obj = self._kept(wire, kind_required=kind_required)
        return whole(obj, data) if self._is_whole(obj) else obj

    def read_put(self, line: bytes) -> T | None:
        """Returns the object of an event in one pass, if it was added or modified, and can be read so.

        Raises UnreadableObjectError for an object of another kind.
        """
        try:
            event = self._decode_put(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if event.type not in _PUT:
            return None
        obj = self._kept(event.object, kind_required=True)
        return whole(obj, _ENVELOPE.decode(line).object) if self._is_whole(obj) else obj

    def _kept(self, wire: Any, *, kind_required: bool) -> T:
        if wire.kind != self._name and (wire.kind or kind_required):
            raise UnreadableObjectError(f"expected a {self._kind.name}, not a {wire.kind!r:.64}", None)
        if wire.api_version != self._kind.api_version and (wire.api_version or kind_required):
            raise UnreadableObjectError(f"expected {self._kind.api_version}, not {wire.api_version!r:.64}", None)
        if not wire.metadata.name:
            raise UnreadableObjectError("the object has no name", None)
        *members, _, _ = msgspec.structs.astuple(wire)
        return self._keep(self._kind.type(*members))

    def identify(self, data: bytes | msgspec.Raw) -> ObjectMeta | None:
        """Returns name, namespace, UID and resource version, if they can be read, of a broken object."""
        try:
            identified = decoding.decode(_Identified, data)
        except decoding.DecodeError:
            return None
        meta = identified.metadata
        if not meta.name or identified.kind not in ("", self._kind.name):
            return None
        return ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        )


def key_of(meta: ObjectMeta) -> Key:
    """Returns the namespace and name under which informers keep the object."""
    return (meta.namespace, meta.name)


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, frozen=True):
    metadata: _Identity
    kind: str = ""


@cache
def _with_kind(kind: type[ApiObject]) -> type[msgspec.Struct]:
    """Returns the type with `kind` and `apiVersion` added, so that one pass over the bytes reads everything."""
    fields: Any = [("kind", str, ""), ("api_version", str, "")]
    return msgspec.defstruct(f"{kind.__name__}OnTheWire", fields, bases=(kind,), frozen=True, gc=False, rename="camel")


_PUT: Final = ("ADDED", "MODIFIED")
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@final
class Removed(msgspec.Struct, frozen=True):
    """An object was deleted, or no longer matches the selector."""

    metadata: ObjectMeta


@final
class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this resource version was sent."""

    resource_version: str
    ends_initial_events: bool


def read_event(line: bytes, reader: ObjectReader[T]) -> T | Removed | Bookmark:
    """Returns the event in a line; of an object that was added or modified, the object.

    Raises:
        UnreadableObjectError: an object was added or modified, but cannot be read.
        DoubtfulAnswerError: the line is no watch event, so that some change is unknown.
        ApiError: the line is an error of the watch.
    """
    obj = reader.read_put(line)
    if obj is not None:
        return obj
    try:
        event = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DoubtfulAnswerError(f"expected an event: {exc}") from exc
    if event.type in _PUT:
        return reader.read(event.object, kind_required=True)
    if event.type == "DELETED":
        identity = reader.identify(event.object)
        if identity is None:
            raise DoubtfulAnswerError("something was deleted, and it does not say what")
        return Removed(identity)
    if event.type == "BOOKMARK":
        return _bookmark(event.object)
    if event.type == "ERROR":
        raise _error(event.object)
    raise DoubtfulAnswerError(f"there are no events of type {event.type!r:.64}")


def _bookmark(data: msgspec.Raw) -> Bookmark:
    try:
        meta = decoding.decode(_Bookmark, data).metadata
    except decoding.DecodeError as exc:
        raise DoubtfulAnswerError(f"expected a bookmark: {exc}") from exc
    if not meta.resource_version:
        raise DoubtfulAnswerError("a bookmark without a resource version")
    return Bookmark(meta.resource_version, meta.annotations.get(INITIAL_EVENTS_END) == "true")


def _error(data: msgspec.Raw) -> ApiError:
    try:
        return from_status(decoding.decode(dict[str, Any], data))
    except (decoding.DecodeError, msgspec.ValidationError) as exc:
        raise DoubtfulAnswerError(f"expected a Status: {exc}") from exc


class _BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMeta


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
