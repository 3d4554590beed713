"""Reads objects in Kubernetes' protobuf form, as Go clients send them, into JSON values; answers are in JSON.

Upstream: apimachinery/pkg/runtime/serializer/protobuf/protobuf.go; pkg/runtime/types_proto.go;
pkg/apis/meta/v1/time_proto.go.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, cast, final

import orjson

from extender.rules.api_resources import Object
from extender.rules.schema import api_types
from extender.values.golang.quoting import quoted
from extender.values.golang.schema import BOUNDS, Field, GoType, Kind, ListOf, MapOf, Preserve, Scalar, Struct
from extender.values.golang.times import rfc3339
from reprieve.cluster import limits

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DELETE_OPTIONS: Final = "DeleteOptions"

Numbers = dict[int, "str | Numbers"]
"""The fields of a message by number: their JSON names, or the fields of a struct that JSON has one level higher."""
_Raw = int | float | bytes
"""A value on the wire: an integer, a floating-point number, or bytes."""


@final
class BrokenObjectError(ValueError):
    """The envelope can be read, but not the object in it."""

    def __init__(self, kind: str, version: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.version = version


def parse(body: bytes, api_version: str = "", kind: str = "") -> Object:
    """Returns the object of a body, with its kind and apiVersion (the expected ones if it has none).

    Raises BrokenObjectError if the object in the body cannot be read, ValueError if there is none.
    """
    if not body:
        raise ValueError("empty data")
    if not body.startswith(_MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if body == _MAGIC:
        raise ValueError("empty body")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    api_version, kind = _type_meta(_bytes(envelope.get(1, b"")), api_version, kind)
    type_meta = {"kind": kind, "apiVersion": api_version}
    group, _, version = api_version.rpartition("/")
    # Every group and version has options of the same form.
    type_ = api_types.find("", "v1", kind) if kind == _DELETE_OPTIONS else api_types.find(group, version, kind)
    if type_ is None:
        return type_meta
    try:
        return type_meta | _message(type_, _bytes(envelope.get(2, b"")))
    except ValueError as error:
        raise BrokenObjectError(kind, version, str(error)) from error


def _type_meta(data: bytes, api_version: str, kind: str) -> tuple[str, str]:
    """Returns the apiVersion and kind of a body, or the expected ones where it has none."""
    meta_fields = dict(_fields(data))
    said_version, said_kind = _text(meta_fields.get(1, b"")), _text(meta_fields.get(2, b""))
    for name, value in (("Kind", said_kind or kind), ("apiVersion", said_version or api_version)):
        if not value:
            meta = f"runtime.TypeMeta{{APIVersion:{quoted(said_version)}, Kind:{quoted(said_kind)}}}"
            raise ValueError(f"Object '{name}' is missing in '{meta}'")
    return said_version or api_version, said_kind or kind


def _fields(data: bytes) -> Iterator[tuple[int, _Raw]]:
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        wire, number = key & 7, key >> 3
        if not number:
            raise ValueError(f"proto: illegal tag 0 (wire type {wire})")
        length = 0
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if wire == _BYTES:
            length, place = _varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"proto: illegal wireType {wire}")
        if length > end - place:
            raise ValueError("unexpected EOF")
        value_bytes = data[place : place + length]
        place += length
        yield (
            number,
            value_bytes if wire == _BYTES else struct.unpack("<d" if wire == _FIXED64 else "<f", value_bytes)[0],
        )


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Returns an integer and the place of its end."""
    value = 0
    for shift in range(_VARINT_BYTES):
        if place >= len(data):
            raise ValueError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, place
    raise ValueError("proto: integer overflow")


def _message(type_: Struct, data: bytes) -> Object:
    result: Object = {}
    _read(_numbers(type_), type_, data, result)
    return result


@cache
def _numbers(type_: Struct) -> Numbers:
    result: Numbers = {}
    for name, field in type_.fields.items():
        if field.protobuf:
            message = result
            for number in field.protobuf[:-1]:
                message = cast(Numbers, message.setdefault(number, {}))
            message[field.protobuf[-1]] = name
    return result


def _read(numbers: Numbers, type_: Struct, data: bytes, result: Object) -> None:
    for number, raw in _fields(data):
        name = numbers.get(number)
        if name is None:
            continue
        if not isinstance(name, str):
            _read(name, type_, _bytes(raw), result)
            continue
        field: Field = type_.fields[name]
        if isinstance(field.type, ListOf):
            result.setdefault(name, []).extend(_values(field.type.item, raw))
        elif isinstance(field.type, MapOf):
            entry = dict(_fields(_bytes(raw)))
            result.setdefault(name, {})[_text(entry.get(1, b""))] = _value(field.type.value, entry.get(2, b""))
        elif isinstance(field.type, Struct):
            # A message may come in several parts.
            _read(_numbers(field.type), field.type, _bytes(raw), result.setdefault(name, {}))
        else:
            result[name] = _value(field.type, raw)


def _values(type_: GoType, raw: _Raw) -> list[Any]:
    """Returns one item of a list, or several numbers that are packed together."""
    if (
        not isinstance(raw, bytes)
        or not isinstance(type_, Scalar)
        or not (type_.kind in BOUNDS or type_.kind is Kind.BOOL)
    ):
        return [_value(type_, raw)]
    values, place = [], 0
    while place < len(raw):
        number, place = _varint(raw, place)
        values.append(_value(type_, number))
    return values


def _value(type_: GoType, raw: _Raw) -> Any:
    if isinstance(type_, Scalar):
        return _scalar(type_.kind, raw)
    if isinstance(type_, Struct):
        return _message(type_, _bytes(raw))
    if isinstance(type_, Preserve):
        # A message of one field, which holds JSON.
        inner = dict(_fields(_bytes(raw))).get(1)
        return _shallow(orjson.loads(_bytes(inner))) if inner else None
    if isinstance(type_, ListOf):
        # Lists as values of maps are messages of one field.
        return [_value(type_.item, inner) for number, inner in _fields(_bytes(raw)) if number == 1]
    raise ValueError("proto: a map in a map")


def _scalar(kind: Kind, raw: _Raw) -> Any:
    if kind is Kind.STRING:
        return _text(raw)
    if kind is Kind.BYTES:
        return base64.b64encode(_bytes(raw)).decode()
    if kind is Kind.BOOL:
        return _signed(raw) != 0
    if kind in BOUNDS:
        return _signed(raw)
    if kind is Kind.FLOAT64:
        if not isinstance(raw, float):
            raise ValueError("proto: wrong wireType")
        return raw
    # Everything else is a message.
    fields = dict(_fields(_bytes(raw)))
    if kind is Kind.QUANTITY:
        return _text(fields.get(1, b"")) or "0"
    if kind is Kind.INT_OR_STRING:
        return _text(fields.get(3, b"")) if fields.get(1) else _signed(fields.get(2, 0))
    if kind is Kind.DURATION:
        return f"{_signed(fields.get(1, 0))}ns"
    return _moment(_signed(fields.get(1, 0)), _signed(fields.get(2, 0)), kind) if fields else None


def _shallow(value: Any, levels: int = limits.PROTOBUF_JSON_DEPTH) -> Any:
    if not levels:
        raise ValueError("exceeded max depth")
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            _shallow(member, levels - 1)
    return value


def _moment(seconds: int, nanos: int, kind: Kind) -> str:
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000 if kind is Kind.MICRO_TIME else 0)
    except OverflowError as error:
        raise ValueError("proto: a time beyond all bounds") from error
    return rfc3339(moment, "microseconds" if kind is Kind.MICRO_TIME else "seconds")


def _signed(raw: _Raw) -> int:
    if not isinstance(raw, int):
        raise ValueError("proto: wrong wireType")
    raw &= (1 << 64) - 1
    return raw - (1 << 64) if raw >> 63 else raw


def _text(raw: _Raw) -> str:
    return _bytes(raw).decode(errors="replace")


def _bytes(raw: _Raw) -> bytes:
    if not isinstance(raw, bytes):
        raise ValueError("proto: wrong wireType")
    return raw
