"""Links a checked expression with the functions that run it, where these are not those it was checked against.

- A Python function cannot return an optional. It returns an empty list or no bytes for an absent value, and the
  expression gets a call of optional.ofNonZeroValue around the call of the function.
- The texts of addresses and networks, `string(ip)`, are made by a function of another name, because `string` takes
  their bytes for a text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from extender.values.cel import checked_expression as form

STRING_AT_RUN_TIME: Final = "kubernetes.string"

_OPTIONAL: Final = frozenset((b"format-validate", b"format-named"))
_TO_STRING: Final = frozenset((b"ip_to_string", b"cidr_to_string"))
_AROUND: Final = b"optional.ofNonZeroValue"
_OVERLOAD_AROUND: Final = b"optional_ofNonZeroValue"
_FIRST_ID: Final = 1 << 32
"""Of the calls that are added. The parser counts from 1."""

_PARTS: Final[Mapping[int, frozenset[int]]] = {
    form.SELECT: frozenset((form.OPERAND,)),
    form.CALL: frozenset((form.TARGET, form.ARGUMENT)),
    form.LIST: frozenset((form.ELEMENT,)),
    form.COMPREHENSION: frozenset((form.RANGE, form.INITIAL, form.CONDITION, form.STEP, form.RESULT)),
}
"""The fields that have expressions, by kind of expression. Structs have them in their entries."""
_PARTS_OF_ENTRY: Final = frozenset((form.ENTRY_KEY, form.ENTRY_VALUE))


def linked(serialized: bytes) -> bytes:
    """Returns a checked expression, serialized as it is given, in the form in which it can run."""
    if not any(overload in serialized for overload in _OPTIONAL | _TO_STRING):
        return serialized
    checked = form.bytes_of(form.fields_of(serialized), form.ANY_VALUE)
    linker = _Linker(
        {
            form.int_of(entry, form.MAP_KEY): _overloads(entry)
            for entry in form.messages_of(form.fields_of(checked), form.REFERENCES)
        }
    )
    result = b""
    for number, value in form.in_order(checked):
        result += form.written(
            number, linker.expression(value) if number == form.EXPRESSION and isinstance(value, bytes) else value
        )
    reference = form.written(form.REFERENCE_NAME, _AROUND) + form.written(form.REFERENCE_OVERLOAD, _OVERLOAD_AROUND)
    for identifier in linker.added:
        entry = form.written(form.MAP_KEY, identifier) + form.written(form.MAP_VALUE, reference)
        result += form.written(form.REFERENCES, entry)
    return b"".join(
        form.written(number, result if number == form.ANY_VALUE else value)
        for number, value in form.in_order(serialized)
    )


def _overloads(entry: form.Fields) -> frozenset[bytes]:
    found = form.message_of(entry, form.MAP_VALUE).get(form.REFERENCE_OVERLOAD, [])
    return frozenset(overload for overload in found if isinstance(overload, bytes))


@final
@dataclass(frozen=True, slots=True)
class _Linker:
    """Changes expressions."""

    overloads: Mapping[int, frozenset[bytes]]
    """Id of a call -> the overloads that it may have."""
    added: list[int] = field(default_factory=list)
    """The ids of the calls of optional.ofNonZeroValue."""

    def expression(self, expression: bytes) -> bytes:
        overloads = self.overloads.get(form.int_of(form.fields_of(expression), form.ID), frozenset())
        result = b""
        for number, value in form.in_order(expression):
            changed = value
            if isinstance(value, bytes) and number in _PARTS:
                changed = self._message(value, _PARTS[number])
                if overloads and overloads <= _TO_STRING:
                    changed = _with_function(changed, STRING_AT_RUN_TIME.encode())
            elif isinstance(value, bytes) and number == form.STRUCT:
                changed = self._struct(value)
            result += form.written(number, changed)
        return self._around(result) if overloads & _OPTIONAL else result

    def _around(self, expression: bytes) -> bytes:
        self.added.append(_FIRST_ID + len(self.added))
        call = form.written(form.FUNCTION, _AROUND) + form.written(form.ARGUMENT, expression)
        return form.written(form.ID, self.added[-1]) + form.written(form.CALL, call)

    def _message(self, message: bytes, parts: frozenset[int]) -> bytes:
        result = b""
        for number, value in form.in_order(message):
            result += form.written(
                number, self.expression(value) if number in parts and isinstance(value, bytes) else value
            )
        return result

    def _struct(self, struct: bytes) -> bytes:
        result = b""
        for number, value in form.in_order(struct):
            changed = (
                self._message(value, _PARTS_OF_ENTRY) if number == form.ENTRY and isinstance(value, bytes) else value
            )
            result += form.written(number, changed)
        return result


def _with_function(call: bytes, name: bytes) -> bytes:
    return b"".join(
        form.written(number, name if number == form.FUNCTION else value) for number, value in form.in_order(call)
    )
