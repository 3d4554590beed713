"""Bodies as a Go client writes them: the other direction, for tests."""

import base64
import struct
from datetime import datetime
from typing import Any

import orjson

from extender.values.golang.schema import Kind, ListOf, MapOf, Preserve, Scalar, Struct

SAMPLES = {
    Kind.STRING: "text",
    Kind.BOOL: True,
    Kind.INT32: -7,
    Kind.INT64: 1 << 40,
    Kind.UINT32: 7,
    Kind.FLOAT64: 0.5,
    Kind.BYTES: base64.b64encode(b"bytes").decode(),
    Kind.QUANTITY: "1500m",
    Kind.TIME: "2026-11-20T01:02:03Z",
    Kind.MICRO_TIME: "2026-11-20T01:02:03.000004Z",
    Kind.INT_OR_STRING: "25%",
}


def varint(number):
    number &= (1 << 64) - 1
    result = b""
    while number > 0x7F:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def field(number, value):
    """One field of a message: a number, a text, or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version, kind, message):
    """A whole body, with its envelope."""
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def message(of, obj):
    """An object in a message; what has no number is left out."""
    return _message({name: field.protobuf for name, field in of.fields.items() if field.protobuf}, of, obj)


def sample(of):
    """A value with everything that has a number; lists and maps have two items."""
    if isinstance(of, Scalar):
        return SAMPLES[of.kind]
    if isinstance(of, Struct):
        return {name: sample(field.type) for name, field in of.fields.items() if field.protobuf}
    if isinstance(of, ListOf):
        return [sample(of.item), sample(of.item)]
    if isinstance(of, MapOf):
        return {"a": sample(of.value), "b": sample(of.value)}
    return {"f:free": {"form": [1]}}


def _message(ways, of, obj):
    """The fields of an object. A way of several numbers leads through messages that JSON does not show."""
    result = b""
    hidden: dict[int, dict[str, Any]] = {}
    for name, (number, *rest) in ways.items():
        if rest:
            hidden.setdefault(number, {})[name] = rest
        elif name in obj:
            result += b"".join(field(number, each) for each in _items(of.fields[name].type, obj[name]))
    return result + b"".join(field(number, _message(below, of, obj)) for number, below in hidden.items())


def _items(of, value):
    if isinstance(of, ListOf):
        return [_value(of.item, each) for each in value]
    if isinstance(of, MapOf):
        return [field(1, key) + field(2, _value(of.value, each)) for key, each in value.items()]
    return [_value(of, value)]


def _value(of, value):
    if isinstance(of, Struct):
        return message(of, value)
    if isinstance(of, ListOf):
        return b"".join(field(1, _value(of.item, each)) for each in value)
    if isinstance(of, Preserve):
        return field(1, orjson.dumps(value))
    if of.kind is Kind.BYTES:
        return base64.b64decode(value)
    if of.kind is Kind.QUANTITY:
        return field(1, value)
    if of.kind is Kind.INT_OR_STRING:
        return field(1, 1) + field(3, value) if isinstance(value, str) else field(1, 0) + field(2, value)
    if of.kind in (Kind.TIME, Kind.MICRO_TIME):
        moment = datetime.fromisoformat(value)
        return field(1, int(moment.timestamp())) + field(2, moment.microsecond * 1000)
    return value
