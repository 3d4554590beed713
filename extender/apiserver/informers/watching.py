"""What the lines of a watch say."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from extender.apiserver.errors import ApiError, from_status
from extender.apiserver.informers.reading import DoubtfulAnswerError, ObjectReader
from extender.objects import decoding
from extender.objects.meta import HasMetadata, ObjectMeta

T = TypeVar("T", bound=HasMetadata)

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@final
@dataclass(frozen=True, slots=True)
class Put(Generic[T]):
    """An object is there: it was added or modified."""

    object: T


@final
@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone, or out of sight of the selector."""

    metadata: ObjectMeta


@final
@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this resource version has been said."""

    resource_version: str
    ends_initial_events: bool


Event = Put[T] | Removed | Bookmark


def read_event(line: bytes, reader: ObjectReader[T]) -> Event[T]:
    """What a line says.

    Raises:
        UnreadableObjectError: an object was added or modified, but cannot be read.
        DoubtfulAnswerError: the line is no event of a watch, so that nobody knows what was to be said.
        ApiError: the line says that the watch has failed.
    """
    try:
        event = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise DoubtfulAnswerError(f"expected an event: {exc}") from exc
    if event.type in ("ADDED", "MODIFIED"):
        return Put(reader.read(event.object, kind_required=True))
    if event.type == "DELETED":
        gone = reader.identify(event.object)
        if gone is None:
            raise DoubtfulAnswerError("something was deleted, and it does not say what")
        return Removed(gone)
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
