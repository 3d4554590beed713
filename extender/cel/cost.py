"""An upper bound for the work of an expression, computed before it runs.

The interpreter stops after 10,000 iterations of macros, but not when values grow: x+x bound to a name, bound again, thirty times, would
fill the memory. So the compiled expression is walked once, without running it, adding up how large every value can get and how much of it
is processed. Upstream counts while the expression runs, and stops at a limit of its own; ordinary expressions stay far below either.

The compiled expression is read from its serialized form, a cel.expr.CheckedExpr in protobuf's wire format: only the fields needed.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

MOST_ITERATIONS: Final = 10_000
"""The interpreter's limit; see above."""


class Size(NamedTuple):
    """An upper bound for the size of a value."""

    elements: int
    """Of the largest list or map in it."""
    total: int
    """Characters and elements altogether."""


class CostError(ValueError):
    """The compiled expression has an unknown form."""


_SCALAR: Final = Size(1, 1)

# Messages and fields of cel/expr: checked.proto, syntax.proto; google/protobuf/any.proto.
_ANY_VALUE: Final = 2
_CHECKED_EXPRESSION: Final = 4
_CONSTANT, _IDENTIFIER, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = range(3, 10)
_STRING_CONSTANT, _BYTES_CONSTANT = 6, 7
_NAME: Final = 1
_OPERAND, _FIELD = 1, 2
_TARGET, _FUNCTION, _ARGUMENT = 1, 2, 3
_ELEMENT: Final = 1
_ENTRY, _ENTRY_KEY, _ENTRY_VALUE = 2, 3, 4
_VARIABLE, _RANGE, _ACCUMULATOR, _INITIAL, _CONDITION, _STEP, _RESULT, _SECOND_VARIABLE = range(1, 9)

_OPERATORS: Final = frozenset(("!_", "_&&_", "_||_", "-_", "_-_", "_*_", "_/_", "_%_", "@not_strictly_false"))
"""They return a number or a bool in constant time."""
_COMPARISONS: Final = frozenset(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"))
"""They return a bool, and read no further than the smaller side goes (`in`: that much for every element)."""
_READERS: Final = frozenset(("size", "contains", "startsWith", "endsWith"))
"""They return a number or a bool, and may read everything."""
_ELEMENT_FUNCTIONS: Final = frozenset(("_[_]", "_[?_]", "_?._"))
_MULTIPLYING_FUNCTIONS: Final = frozenset(("replace", "join", "format"))
_CONDITIONAL: Final = "_?:_"
_IN: Final = "@in"
_PLUS: Final = "_+_"
_SPLIT: Final = "split"
_MATCHES: Final = "matches"
_PATTERN_FACTOR: Final = 500
"""A short pattern may repeat something up to a thousand times, and is compiled at every use."""
_QUOTE: Final = "strings.quote"

Fields = dict[int, list[int | bytes]]


def work_of(serialized: bytes, variables: Mapping[str, Size]) -> int:
    """Returns an upper bound for the steps and characters that the expression costs.

    Arguments:
        serialized: a compiled expression, from `Expression.serialize`.
        variables: upper bounds for the variables.

    Raises:
        CostError: the expression has an unknown form.
    """
    checked = _message(_fields(serialized), _ANY_VALUE)
    return _walk(_message(checked, _CHECKED_EXPRESSION), variables)[1]


def _walk(expression: Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    """Returns the bounds for the value's size and for the work to compute it."""
    if _CONSTANT in expression:
        constant = _message(expression, _CONSTANT)
        length = sum(len(_bytes(constant, kind)) for kind in (_STRING_CONSTANT, _BYTES_CONSTANT) if kind in constant)
        return Size(1, length + 1), 1
    if _IDENTIFIER in expression:
        return variables.get(_text(_message(expression, _IDENTIFIER), _NAME), _SCALAR), 1
    if _SELECT in expression:
        return _walk_select(_message(expression, _SELECT), variables)
    if _CALL in expression:
        return _walk_call(_message(expression, _CALL), variables)
    if _LIST in expression:
        return _walk_elements(list(_messages(_message(expression, _LIST), _ELEMENT)), variables)
    if _STRUCT in expression:
        entries = list(_messages(_message(expression, _STRUCT), _ENTRY))
        parts = [_message(entry, part) for entry in entries for part in (_ENTRY_KEY, _ENTRY_VALUE) if part in entry]
        return _walk_elements(parts, variables)
    if _COMPREHENSION in expression:
        return _walk_comprehension(_message(expression, _COMPREHENSION), variables)
    raise CostError("unknown form of expression")


def _walk_select(select: Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    operand = _message(select, _OPERAND)
    if _IDENTIFIER in operand:
        # A variable with a dotted name.
        name = f"{_text(_message(operand, _IDENTIFIER), _NAME)}.{_text(select, _FIELD)}"
        if name in variables:
            return variables[name], 1
    size, work = _walk(operand, variables)
    return size, work + 1


def _walk_call(call: Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    walked = [_walk(part, variables) for part in (*_messages(call, _TARGET), *_messages(call, _ARGUMENT))]
    function, sizes = _text(call, _FUNCTION), [size for size, _ in walked]
    elements, total = max((size.elements for size in sizes), default=1), sum(size.total for size in sizes)
    work = 1 + sum(work for _, work in walked)
    if function in _OPERATORS:
        return _SCALAR, work
    if function in _COMPARISONS:
        smaller = min(size.total for size in sizes)
        return _SCALAR, work + smaller * (sizes[-1].elements if function == _IN else 1)
    if function in _ELEMENT_FUNCTIONS:
        return sizes[0], work
    if function == _CONDITIONAL:
        return Size(elements, max(size.total for size in sizes)), work
    work += total
    if function in _READERS:
        return _SCALAR, work
    if function == _MATCHES:
        return _SCALAR, work + sizes[-1].total * _PATTERN_FACTOR
    if function == _PLUS:
        return Size(sum(size.elements for size in sizes), total), work
    if function in _MULTIPLYING_FUNCTIONS:
        total = sizes[0].total * (1 + sum(size.total for size in sizes[1:]))
        return Size(1, total), work + total
    if function == _SPLIT:
        return Size(total, 2 * total), work
    if function == _QUOTE:
        return Size(1, 2 * total + 2), work
    return Size(elements, total), work


def _walk_elements(elements: list[Fields], variables: Mapping[str, Size]) -> tuple[Size, int]:
    walked = [_walk(element, variables) for element in elements]
    largest = max((size.elements for size, _ in walked), default=1)
    return Size(max(largest, len(elements)), 1 + len(elements) + sum(size.total for size, _ in walked)), 1 + sum(work for _, work in walked)


def _walk_comprehension(comprehension: Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    over, work_over = _walk(_message(comprehension, _RANGE), variables)
    initial, work_initial = _walk(_message(comprehension, _INITIAL), variables)
    is_binding = not _message(comprehension, _RANGE).get(_LIST, [b"x"])[0]
    times = 0 if is_binding else min(over.elements, MOST_ITERATIONS)
    accumulator = _text(comprehension, _ACCUMULATOR)
    inside = dict(variables)
    for variable in (_VARIABLE, _SECOND_VARIABLE):
        if variable in comprehension:
            inside[_text(comprehension, variable)] = over
    # Every step adds to the accumulator: inside a step it counts as empty, and the result counts as the sum of all steps.
    inside[accumulator] = Size(0, 0)
    added, work_step = _walk(_message(comprehension, _STEP), inside)
    _, work_condition = _walk(_message(comprehension, _CONDITION), inside)
    final = Size(max(initial.elements + times, added.elements), initial.total + times * added.total)
    size, work_result = _walk(_message(comprehension, _RESULT), {**variables, accumulator: initial if is_binding else final})
    return size, 1 + work_over + work_initial + times * (work_condition + work_step + final.elements) + work_result


# Protobuf's wire format.


def _fields(data: bytes) -> Fields:
    """Returns number -> the values of a field: integers, or the bytes of strings and messages."""
    fields: Fields = {}
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
            raise CostError("unknown form of field")
        fields.setdefault(number, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _bytes(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[0]
    if not isinstance(value, bytes):
        raise CostError("a number where bytes were expected")
    return value


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields, number).decode()


def _message(fields: Fields, number: int) -> Fields:
    return _fields(_bytes(fields, number))


def _messages(fields: Fields, number: int) -> Iterator[Fields]:
    for value in fields.get(number, []):
        if not isinstance(value, bytes):
            raise CostError("a number where a message was expected")
        yield _fields(value)
