"""From bytes to objects of one kind, one by one: what cannot be read is set aside and does not stop the others."""

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar, final

import msgspec

from extender.apiserver.informers.keeping import keeper_of
from extender.objects import decoding
from extender.objects.cluster import Key
from extender.objects.kinds import WatchedKind
from extender.objects.meta import ApiObject, HasMetadata, ObjectMeta

T = TypeVar("T", bound=HasMetadata)


class DoubtfulAnswerError(Exception):
    """A list or a watch that must not be taken at its word; the message says why."""


class UnreadableObjectError(Exception):
    """An object that is of the wrong kind, or in which a field has the wrong type."""

    def __init__(self, reason: str, meta: ObjectMeta | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.meta = meta
        """Which object it is; None if not even that can be read."""


@final
class ObjectReader(Generic[T]):
    """Reads objects of one kind, and keeps of them what the kind keeps."""

    def __init__(self, kind: WatchedKind[T], keep: Callable[[T], T] | None = None) -> None:
        """Prepare to read.

        Arguments:
            keep: takes from an object whatever scheduling does not look at; None for the kind's own.
        """
        self._kind = kind
        self._wire: Any = _with_kind(kind.type)
        self._fields = kind.type.__struct_fields__
        self._keep = keep or keeper_of(kind)

    def read(self, data: bytes | msgspec.Raw, *, kind_required: bool) -> T:
        """The object.

        Arguments:
            kind_required: items of a list need not say their kind.

        Raises:
            UnreadableObjectError: it is not one of this kind, or cannot be read.
        """
        try:
            wire = decoding.decode(self._wire, data)
        except decoding.DecodeError as exc:
            raise UnreadableObjectError(str(exc), self.identify(data)) from exc
        if wire.kind != self._kind.name and (wire.kind or kind_required):
            raise UnreadableObjectError(f"expected a {self._kind.name}, not a {wire.kind!r:.64}", None)
        if wire.api_version != self._kind.api_version and (wire.api_version or kind_required):
            raise UnreadableObjectError(f"expected {self._kind.api_version}, not {wire.api_version!r:.64}", None)
        if not wire.metadata.name:
            raise UnreadableObjectError("the object has no name", None)
        return self._keep(self._kind.type(*(getattr(wire, field) for field in self._fields)))

    def identify(self, data: bytes | msgspec.Raw) -> ObjectMeta | None:
        """Which object it is, even if it is broken elsewhere: name, namespace, UID, resource version; None if it does not say."""
        try:
            found = decoding.decode(_Identified, data)
        except decoding.DecodeError:
            return None
        meta = found.metadata
        if not meta.name or found.kind not in ("", self._kind.name):
            return None
        return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)


def key_of(meta: ObjectMeta) -> Key:
    """(namespace, name)."""
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
    """The same type with `kind` and `apiVersion`, so that one pass over the bytes reads everything."""
    fields: Any = [("kind", str, ""), ("api_version", str, "")]
    return msgspec.defstruct(f"{kind.__name__}OnTheWire", fields, bases=(kind,), frozen=True, gc=False, rename="camel")
