"""An upper bound for the work of an expression, computed before it runs.

The interpreter stops after 10,000 iterations of macros, but not when values grow: x+x bound to a name, bound again,
thirty times, would fill the memory. So the compiled expression is walked once, without running it, adding up how large
every value can get and how much of it is processed. Upstream counts while the expression runs, and stops at a limit of
its own; ordinary expressions stay far below either.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from extender.values.cel import checked_expression as form
from extender.values.cel.library import FUNCTIONS

COMPREHENSION_MAX_ITERATIONS: Final = 10_000
"""The interpreter's limit; see above."""


class Size(NamedTuple):
    """An upper bound for the size of a value."""

    elements: int
    """Of the largest list or map in it."""
    total: int
    """Characters and elements altogether."""


_SCALAR: Final = Size(1, 1)

_OPERATORS: Final = frozenset(
    ("!_", "_&&_", "_||_", "-_", "_-_", "_*_", "_/_", "_%_", "@not_strictly_false", "hasValue")
)
"""They return a number or a bool in constant time."""
_COMPARISONS: Final = frozenset(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"))
"""They return a bool, and read no further than the smaller side goes (`in`: that much for every element)."""
_READERS: Final = frozenset(("size", "contains", "startsWith", "endsWith"))
"""They return a number or a bool, and may read everything."""
_ELEMENT_FUNCTIONS: Final = frozenset(("_[_]", "_[?_]", "_?._"))
_MULTIPLYING_FUNCTIONS: Final = frozenset(("replace", "join", "format"))
_PATTERN_FUNCTIONS: Final = frozenset(("matches", "find", "findAll"))
_PATTERN_FACTOR: Final = 500
"""A short pattern may repeat something up to a thousand times, and is compiled at every use."""
_SETS: Final = frozenset(("sets.contains", "sets.equivalent", "sets.intersects", "distinct"))
"""They compare every element with every other."""
_SORTS: Final = frozenset(("sort", "@sortByAssociatedKeys"))
_COMPARISONS_OF_SORT: Final = 20
"""Of an element, in a list of a million."""
_UNLIMITED: Final = 1 << 60
_ESCAPED_FACTOR: Final = 3
"""A character takes so many when it is escaped in a URL."""
_WRAPPERS: Final = frozenset(("value", "optional.of", "optional.ofNonZeroValue"))
"""They hand on what they are given, in constant time."""
_SENTENCES: Final = 4
_MESSAGES: Final = 2_000
"""How many sentences a format says of a text at most, and their characters without the text."""
_QUOTED_FACTOR: Final = 4
"""A character may take so many when the text is quoted."""
_IN_PYTHON: Final = frozenset(function.name for function in FUNCTIONS)
_PYTHON_CALL: Final = 100


def work_of(serialized: bytes, variables: Mapping[str, Size]) -> int:
    """Returns an upper bound for the steps and characters that a serialized expression costs. Raises FormError."""
    checked = form.message_of(form.fields_of(serialized), form.ANY_VALUE)
    return _walk(form.message_of(checked, form.EXPRESSION), variables)[1]


def _walk(expression: form.Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    if form.CONSTANT in expression:
        constant = form.message_of(expression, form.CONSTANT)
        length = sum(
            len(form.bytes_of(constant, kind))
            for kind in (form.STRING_CONSTANT, form.BYTES_CONSTANT)
            if kind in constant
        )
        return Size(1, length + 1), 1
    if form.IDENTIFIER in expression:
        return variables.get(form.text_of(form.message_of(expression, form.IDENTIFIER), form.NAME), _SCALAR), 1
    if form.SELECT in expression:
        return _walk_select(form.message_of(expression, form.SELECT), variables)
    if form.CALL in expression:
        return _walk_call(form.message_of(expression, form.CALL), variables)
    if form.LIST in expression:
        return _walk_elements(list(form.messages_of(form.message_of(expression, form.LIST), form.ELEMENT)), variables)
    if form.STRUCT in expression:
        entries = list(form.messages_of(form.message_of(expression, form.STRUCT), form.ENTRY))
        parts = [
            form.message_of(entry, part)
            for entry in entries
            for part in (form.ENTRY_KEY, form.ENTRY_VALUE)
            if part in entry
        ]
        return _walk_elements(parts, variables)
    if form.COMPREHENSION in expression:
        return _walk_comprehension(form.message_of(expression, form.COMPREHENSION), variables)
    raise form.FormError("unknown form of expression")


def _walk_select(select: form.Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    operand = form.message_of(select, form.OPERAND)
    if form.IDENTIFIER in operand:
        # A variable with a dotted name.
        name = (
            f"{form.text_of(form.message_of(operand, form.IDENTIFIER), form.NAME)}.{form.text_of(select, form.FIELD)}"
        )
        if name in variables:
            return variables[name], 1
    size, work = _walk(operand, variables)
    return size, work + 1


def _walk_call(call: form.Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    walked = [_walk(operand, variables) for operand in _operands(call)]
    function, sizes = form.text_of(call, form.FUNCTION), [size for size, _ in walked]
    elements, total = max((size.elements for size in sizes), default=1), sum(size.total for size in sizes)
    work = 1 + sum(work for _, work in walked)
    if function in _OPERATORS:
        return _SCALAR, work
    if function in _COMPARISONS:
        smaller = min(size.total for size in sizes)
        return _SCALAR, work + smaller * (sizes[-1].elements if function == "@in" else 1)
    if function in _ELEMENT_FUNCTIONS:
        return sizes[0], work
    if function == "_?:_":
        return Size(elements, max(size.total for size in sizes)), work
    if function in _WRAPPERS:
        return Size(elements, total), work
    work += total
    if function in _READERS:
        return _SCALAR, work
    if function in _IN_PYTHON:
        work += _PYTHON_CALL
    if function in _PATTERN_FUNCTIONS:
        result_size = _SCALAR if function == "matches" else Size(total, 2 * total)
        return result_size, work + sum(size.total for size in sizes[1:]) * _PATTERN_FACTOR
    if function == "_+_":
        return Size(sum(size.elements for size in sizes), total), work
    if function in _MULTIPLYING_FUNCTIONS:
        total = sizes[0].total * (1 + sum(size.total for size in sizes[1:]))
        return Size(1, total), work + total
    if function == "split":
        return Size(total, 2 * total), work
    if function == "strings.quote":
        return Size(1, 2 * total + 2), work
    if function in _SETS:
        return Size(elements, total), work + elements * total
    if function in _SORTS:
        return Size(elements, total), work + _COMPARISONS_OF_SORT * total
    if function == "lists.range":
        length = _most(next(form.messages_of(call, form.ARGUMENT), {}), variables)
        return Size(length, length), work + length
    if function == "url":
        return Size(1, _ESCAPED_FACTOR * total), work + _ESCAPED_FACTOR * total
    if function == "getQuery":
        return Size(total, 2 * total), work + total
    if function == "validate":
        return Size(_SENTENCES, _MESSAGES + _QUOTED_FACTOR * total), work + _MESSAGES + _QUOTED_FACTOR * total
    return Size(elements, total), work


def _most(expression: form.Fields, variables: Mapping[str, Size]) -> int:
    """Returns an upper bound of a number that is written down, or the size of something; of any other there is none."""
    if form.CALL in expression:
        call = form.message_of(expression, form.CALL)
        if form.text_of(call, form.FUNCTION) == "size":
            return sum(_walk(operand, variables)[0].total for operand in _operands(call))
    number = form.message_of(expression, form.CONSTANT).get(form.INT_CONSTANT, [_UNLIMITED])[0]
    return number if isinstance(number, int) else _UNLIMITED


def _operands(call: form.Fields) -> Iterator[form.Fields]:
    yield from form.messages_of(call, form.TARGET)
    yield from form.messages_of(call, form.ARGUMENT)


def _walk_elements(elements: list[form.Fields], variables: Mapping[str, Size]) -> tuple[Size, int]:
    walked = [_walk(element, variables) for element in elements]
    largest = max((size.elements for size, _ in walked), default=1)
    return Size(max(largest, len(elements)), 1 + len(elements) + sum(size.total for size, _ in walked)), 1 + sum(
        work for _, work in walked
    )


def _walk_comprehension(comprehension: form.Fields, variables: Mapping[str, Size]) -> tuple[Size, int]:
    over, work_over = _walk(form.message_of(comprehension, form.RANGE), variables)
    initial, work_initial = _walk(form.message_of(comprehension, form.INITIAL), variables)
    is_binding = not form.message_of(comprehension, form.RANGE).get(form.LIST, [b"x"])[0]
    times = 0 if is_binding else min(over.elements, COMPREHENSION_MAX_ITERATIONS)
    accumulator = form.text_of(comprehension, form.ACCUMULATOR)
    inside = dict(variables)
    for variable in (form.VARIABLE, form.SECOND_VARIABLE):
        if variable in comprehension:
            inside[form.text_of(comprehension, variable)] = over
    # Every step adds to the accumulator: inside a step it counts as empty, and the result counts as the sum of all
    # steps.
    inside[accumulator] = Size(0, 0)
    added, work_step = _walk(form.message_of(comprehension, form.STEP), inside)
    _, work_condition = _walk(form.message_of(comprehension, form.CONDITION), inside)
    final = Size(max(initial.elements + times, added.elements), initial.total + times * added.total)
    size, work_result = _walk(
        form.message_of(comprehension, form.RESULT), {**variables, accumulator: initial if is_binding else final}
    )
    return size, 1 + work_over + work_initial + times * (work_condition + work_step + final.elements) + work_result
