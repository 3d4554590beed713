"""Compiled expressions: the form of a cel.expr.CheckedExpr in protobuf's wire format, as far as it is needed; and how
one is linked with the functions that run it, where these are not those it was checked against.

- A Python function cannot return an optional. It returns an empty list or no bytes for an absent value, and the
  expression gets a call of optional.ofNonZeroValue around the call of the function.
- The texts of addresses and networks, `string(ip)`, are made by a function of another name, because `string` takes
  their bytes for a text.

Upstream: google/cel-spec, proto/cel/expr, checked.proto, syntax.proto.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, final

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
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        number, form = key >> 3, key & 7
        value: int | bytes
        if form == 0:
            value, offset = _varint(data, offset)
        elif form == 2:
            length, offset = _varint(data, offset)
            value, offset = data[offset : offset + length], offset + length
        elif form in (1, 5):
            length = 8 if form == 1 else 4
            value, offset = data[offset : offset + length], offset + length
        else:
            raise FormError("unknown form of field")
        yield number, value


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset


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
    if isinstance(value, int):
        return _written_varint(number << 3) + _written_varint(value)
    return _written_varint(number << 3 | 2) + _written_varint(len(value)) + value


def _written_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def rewritten(data: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """Returns a message with other strings and messages in it, by the numbers of their fields."""
    return b"".join(
        written(number, change(number, value) if isinstance(value, bytes) else value)
        for number, value in in_order(data)
    )


# Linking.

STRING_AT_RUN_TIME: Final = "kubernetes.string"

_OPTIONAL: Final = frozenset((b"format-validate", b"format-named"))
_TO_STRING: Final = frozenset((b"ip_to_string", b"cidr_to_string"))
_AROUND: Final = b"optional.ofNonZeroValue"
_OVERLOAD_AROUND: Final = b"optional_ofNonZeroValue"
_FIRST_ID: Final = 1 << 32
"""Of the calls that are added. The parser counts from 1."""

_PARTS: Final[Mapping[int, frozenset[int]]] = {
    SELECT: frozenset((OPERAND,)),
    CALL: frozenset((TARGET, ARGUMENT)),
    LIST: frozenset((ELEMENT,)),
    COMPREHENSION: frozenset((RANGE, INITIAL, CONDITION, STEP, RESULT)),
}
"""The fields that have expressions, by kind of expression. Structs have them in their entries."""
_PARTS_OF_ENTRY: Final = frozenset((ENTRY_KEY, ENTRY_VALUE))


def linked(serialized: bytes) -> bytes:
    """Returns a checked expression, serialized as before, in the form in which it can run."""
    if not any(overload in serialized for overload in _OPTIONAL | _TO_STRING):
        return serialized
    checked = bytes_of(fields_of(serialized), ANY_VALUE)
    references = messages_of(fields_of(checked), REFERENCES)
    linker = _Linker({int_of(entry, MAP_KEY): _overloads(entry) for entry in references})
    result = rewritten(checked, lambda number, value: linker.expression(value) if number == EXPRESSION else value)
    reference = written(REFERENCE_NAME, _AROUND) + written(REFERENCE_OVERLOAD, _OVERLOAD_AROUND)
    for identifier in linker.added:
        result += written(REFERENCES, written(MAP_KEY, identifier) + written(MAP_VALUE, reference))
    return rewritten(serialized, lambda number, value: result if number == ANY_VALUE else value)


def _overloads(entry: Fields) -> frozenset[bytes]:
    overloads = message_of(entry, MAP_VALUE).get(REFERENCE_OVERLOAD, [])
    return frozenset(overload for overload in overloads if isinstance(overload, bytes))


@final
@dataclass(frozen=True, slots=True)
class _Linker:
    """Writes an expression anew, with what its overloads are called here."""

    overloads: Mapping[int, frozenset[bytes]]
    """Id of a call -> the overloads that it may have."""
    added: list[int] = field(default_factory=list)
    """The ids of the calls of optional.ofNonZeroValue."""

    def expression(self, expression: bytes) -> bytes:
        overloads = self.overloads.get(int_of(fields_of(expression), ID), frozenset())

        def changed(number: int, value: bytes) -> bytes:
            if number == STRUCT:
                return rewritten(value, self._entry)
            if number not in _PARTS:
                return value
            message = self._message(value, _PARTS[number])
            return _to_string(message) if overloads and overloads <= _TO_STRING else message

        result = rewritten(expression, changed)
        return self._around(result) if overloads & _OPTIONAL else result

    def _around(self, expression: bytes) -> bytes:
        self.added.append(_FIRST_ID + len(self.added))
        call = written(FUNCTION, _AROUND) + written(ARGUMENT, expression)
        return written(ID, self.added[-1]) + written(CALL, call)

    def _message(self, message: bytes, parts: frozenset[int]) -> bytes:
        return rewritten(message, lambda number, value: self.expression(value) if number in parts else value)

    def _entry(self, number: int, value: bytes) -> bytes:
        return self._message(value, _PARTS_OF_ENTRY) if number == ENTRY else value


def _to_string(call: bytes) -> bytes:
    name = STRING_AT_RUN_TIME.encode()
    return rewritten(call, lambda number, value: name if number == FUNCTION else value)
