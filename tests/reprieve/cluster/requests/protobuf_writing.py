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


def message(api_type, obj):
    """An object in a message; what has no number is left out."""
    return _message({name: field.protobuf for name, field in api_type.fields.items() if field.protobuf}, api_type, obj)


def sample(api_type):
    """A value with everything that has a number; lists and maps have two items."""
    if isinstance(api_type, Scalar):
        return SAMPLES[api_type.kind]
    if isinstance(api_type, Struct):
        return {name: sample(field.type) for name, field in api_type.fields.items() if field.protobuf}
    if isinstance(api_type, ListOf):
        return [sample(api_type.item), sample(api_type.item)]
    if isinstance(api_type, MapOf):
        return {"a": sample(api_type.value), "b": sample(api_type.value)}
    return {"f:free": {"form": [1]}}


def _message(ways, api_type, obj):
    """The fields of an object. A way of several numbers leads through messages that JSON does not show."""
    result = b""
    hidden: dict[int, dict[str, Any]] = {}
    for name, (number, *rest) in ways.items():
        if rest:
            hidden.setdefault(number, {})[name] = rest
        elif name in obj:
            result += b"".join(field(number, item) for item in _items(api_type.fields[name].type, obj[name]))
    return result + b"".join(field(number, _message(below, api_type, obj)) for number, below in hidden.items())


def _items(api_type, value):
    if isinstance(api_type, ListOf):
        return [_value(api_type.item, item) for item in value]
    if isinstance(api_type, MapOf):
        return [field(1, key) + field(2, _value(api_type.value, item)) for key, item in value.items()]
    return [_value(api_type, value)]


def _value(api_type, value):
    if isinstance(api_type, Struct):
        return message(api_type, value)
    if isinstance(api_type, ListOf):
        return b"".join(field(1, _value(api_type.item, item)) for item in value)
    if isinstance(api_type, Preserve):
        return field(1, orjson.dumps(value))
    if api_type.kind is Kind.BYTES:
        return base64.b64decode(value)
    if api_type.kind is Kind.QUANTITY:
        return field(1, value)
    if api_type.kind is Kind.INT_OR_STRING:
        return field(1, 1) + field(3, value) if isinstance(value, str) else field(1, 0) + field(2, value)
    if api_type.kind in (Kind.TIME, Kind.MICRO_TIME):
        moment = datetime.fromisoformat(value)
        return field(1, int(moment.timestamp())) + field(2, moment.microsecond * 1000)
    return value
