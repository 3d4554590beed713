"""Decoding of objects from bytes and from plain values. Null means absent, as in Go."""

from typing import Any, Final, TypeVar

import msgspec

from extender.values.near_names import field_meant
from extender.values.reasons import InputError

T = TypeVar("T")


class DecodeError(InputError, ValueError):
    """The bytes are not JSON, or a field has the wrong type; the message has the place, and never the input."""


def decode(kind: type[T], data: bytes | msgspec.Raw) -> T:
    """Returns the object that JSON holds; nulls count as missing fields. Raises DecodeError."""
    try:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError:
            plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise DecodeError(_reason(exc)) from exc
    # The fast path knows no null; Go reads it as "not there". The slow path is only paid by bodies that hold one.
    return convert(kind, plain)


def convert(kind: type[T], value: object) -> T:
    """Returns the object that plain dicts and lists hold; nulls count as missing fields. Raises DecodeError."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass  # perhaps for a null; the reason that counts is that of the second try
    except RecursionError as exc:
        raise DecodeError(_reason(exc)) from exc
    try:
        return msgspec.convert(_without_nulls(value), kind)
    except (msgspec.ValidationError, RecursionError) as exc:
        raise DecodeError(f"{_reason(exc)}{field_meant(kind, str(exc))}") from exc


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(member) for member in value]
    return value


def _reason(exc: BaseException) -> str:
    return "nested too deeply" if isinstance(exc, RecursionError) else str(exc)


replaced: Final = msgspec.structs.replace
"""Returns a copy of an object with some fields changed."""
