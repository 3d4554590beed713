"""The form of a compiled expression, a cel.expr.CheckedExpr in protobuf's wire format, as far as it is needed.

Upstream: google/cel-spec, proto/cel/expr, checked.proto, syntax.proto.
"""

from collections.abc import Iterator
from typing import Final

Fields = dict[int, list[int | bytes]]

# Numbers of fields; google.protobuf.Any is around the expression.
ANY_VALUE: Final = 2
REFERENCES: Final = 2
EXPRESSION: Final = 4
MAP_KEY, MAP_VALUE = 1, 2
REFERENCE_NAME, REFERENCE_OVERLOAD = 1, 3
ID: Final = 2
CONSTANT, IDENTIFIER, SELECT, CALL, LIST, STRUCT, COMPREHENSION = range(3, 10)
INT_CONSTANT, STRING_CONSTANT, BYTES_CONSTANT = 3, 6, 7
NAME: Final = 1
OPERAND, FIELD = 1, 2
TARGET, FUNCTION, ARGUMENT = 1, 2, 3
ELEMENT: Final = 1
ENTRY, ENTRY_KEY, ENTRY_VALUE = 2, 3, 4
VARIABLE, RANGE, ACCUMULATOR, INITIAL, CONDITION, STEP, RESULT, SECOND_VARIABLE = range(1, 9)


class FormError(ValueError):
    """The compiled expression has an unknown form."""


def fields_of(data: bytes) -> Fields:
    """Returns number -> the values of a field: integers, or the bytes of strings and messages."""
    fields: Fields = {}
    for number, value in in_order(data):
        fields.setdefault(number, []).append(value)
    return fields


def in_order(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of each field."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, form = key >> 3, key & 7
        value: int | bytes
        if form == 0:
            value, at = _varint(data, at)
        elif form == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif form in (1, 5):
            length = 8 if form == 1 else 4
            value, at = data[at : at + length], at + length
        else:
            raise FormError("unknown form of field")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def int_of(fields: Fields, number: int) -> int:
    """Returns the value of a field that has a number; 0 if it is absent."""
    value = fields.get(number, [0])[0]
    if not isinstance(value, int):
        raise FormError("bytes where a number was expected")
    return value


def bytes_of(fields: Fields, number: int) -> bytes:
    """Returns the value of a field that has bytes; empty if it is absent."""
    value = fields.get(number, [b""])[0]
    if not isinstance(value, bytes):
        raise FormError("a number where bytes were expected")
    return value


def text_of(fields: Fields, number: int) -> str:
    return bytes_of(fields, number).decode()


def message_of(fields: Fields, number: int) -> Fields:
    return fields_of(bytes_of(fields, number))


def messages_of(fields: Fields, number: int) -> Iterator[Fields]:
    for value in fields.get(number, []):
        if not isinstance(value, bytes):
            raise FormError("a number where a message was expected")
        yield fields_of(value)


def written(number: int, value: int | bytes) -> bytes:
    """Returns a field in wire format."""
    if isinstance(value, int):
        return _written_varint(number << 3) + _written_varint(value)
    return _written_varint(number << 3 | 2) + _written_varint(len(value)) + value


def _written_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
