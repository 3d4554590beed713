"""Label selectors as values: matching, printing, validation.

Upstream: apimachinery/pkg/labels/selector.go; apis/meta/v1/helpers.go, LabelSelectorAsSelector.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Final, final

import msgspec

from extender.values.golang.field_errors import FieldError, aggregate, child, index, invalid
from extender.values.golang.int64 import parse_int64
from extender.values.golang.quoting import quoted
from extender.values.golang.schema import written_or_null
from extender.values.objects.meta import LabelSelector
from extender.values.objects.name_syntax import label_key_errors, label_value_errors


class SelectorError(ValueError):
    """The selector cannot be used. The message is upstream's."""


@final
class Operator(StrEnum):
    """A requirement's operator, by upstream's texts in errors (apimachinery/pkg/selection/operator.go)."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_INCLUDES: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_EXCLUDES: Final = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_IS_SET: Final = frozenset({Operator.IN, Operator.NOT_IN})
_IS_EXACT: Final = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS})
_IS_UNARY: Final = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
BINARY_OPERATORS: Final = tuple(operator for operator in Operator if operator not in _IS_UNARY)
_SYMBOLS: Final = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}
OPERATORS_OF_API: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@final
class Requirement(msgspec.Struct, frozen=True):
    """One condition on the label `key`: a list element of a selector."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches_value(self, value: str | None) -> bool:
        """Returns whether an object fulfils it with this value of the label; None: no such label."""
        operator = self.operator
        if operator in _INCLUDES:
            return value is not None and value in self.values
        if operator in _EXCLUDES:
            return value is None or value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        return value is not None and self._is_beyond(value)

    def among(self, values: Mapping[str, object]) -> tuple[bool, Sequence[str], bool]:
        """Returns whether most of these values fulfil it, the exceptions, and whether no such label does."""
        operator = self.operator
        if operator in _INCLUDES or operator in _EXCLUDES:
            excludes = operator in _EXCLUDES
            return excludes, [value for value in self.values if value in values], excludes
        if operator in _IS_UNARY:
            return operator is Operator.EXISTS, (), operator is Operator.DOES_NOT_EXIST
        return False, [value for value in values if self._is_beyond(value)], False

    def _is_beyond(self, value: str) -> bool:
        number = parse_int64(value)
        limit = parse_int64(self.values[0]) if number is not None and len(self.values) == 1 else None
        if number is None or limit is None:
            return False
        return number > limit if self.operator is Operator.GREATER_THAN else number < limit

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        symbol = _SYMBOLS.get(self.operator, self.operator.value)
        return f"{self.key}{symbol}({values})" if self.operator in _IS_SET else f"{self.key}{symbol}{values}"


@final
@dataclass(frozen=True, slots=True)
class Selector:
    """All `requirements`, ordered by key; nothing at all if not `selectable`. Usable as a dict key."""

    requirements: tuple[Requirement, ...] = ()
    selectable: bool = True
    _hash: int = field(init=False, compare=False, repr=False)
    """Selectors are parts of keys that are looked up for every pod."""
    num_values: int = field(init=False, compare=False, repr=False)
    """The number of values that its requirements name, and at least that of the requirements."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requirements, self.selectable)))
        object.__setattr__(self, "num_values", sum([len(requirement.values) or 1 for requirement in self.requirements]))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Selector"], tuple[tuple[Requirement, ...], bool]]:
        # Another process has other hashes of text.
        return Selector, (self.requirements, self.selectable)

    @property
    def is_empty(self) -> bool:
        """True if it matches every object."""
        return self.selectable and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        if not self.selectable:
            return False
        return all(requirement.matches_value(labels.get(requirement.key)) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


NOTHING: Final = Selector(selectable=False)
"""Selects no object; its text is empty, like that of EVERYTHING."""
EVERYTHING: Final = Selector()
"""Selects every object."""


def selector_of(selector: LabelSelector | None) -> Selector:
    """Returns the selector that an API object holds: a missing one selects nothing, an empty one everything.

    Raises SelectorError for a bad key, operator or value; of several bad labels in `matchLabels` for the first by key.
    """
    if selector is None:
        return NOTHING
    requirements = [
        requirement_of(key, Operator.EQUALS, (value,)) for key, value in sorted(selector.match_labels.items())
    ]
    for expression in selector.match_expressions:
        operator = OPERATORS_OF_API.get(expression.operator)
        if operator is None:
            raise SelectorError(f"{quoted(expression.operator)} is not a valid label selector operator")
        requirements.append(requirement_of(expression.key, operator, expression.values))
    return selector_with(requirements)


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Returns the selector of objects with all these labels, not validated (SelectorFromSet)."""
    if not labels:
        return EVERYTHING
    return selector_with(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def with_requirements(selector: Selector, labels: Mapping[str, str]) -> Selector:
    """Returns the selector, narrowed to objects that have all these labels; nothing stays nothing."""
    if not selector.selectable:
        return NOTHING
    added = (Requirement(key, Operator.IN, (value,)) for key, value in labels.items())
    return selector_with((*selector.requirements, *added))


def selector_with(requirements: Iterable[Requirement]) -> Selector:
    """Returns the selector of all these requirements; those of one key keep their order (ByKey)."""
    return Selector(tuple(sorted(requirements, key=attrgetter("key"))))


def requirement_of(key: str, operator: Operator, values: Sequence[str], path: str = "") -> Requirement:
    """Returns a requirement that is fit to be used. Raises SelectorError with all its faults, at `path`."""
    errors = requirement_errors(key, operator, values, path)
    if errors:
        raise SelectorError(aggregate(errors))
    return Requirement(key, operator, tuple(values))


def requirement_errors(
    key: str, operator: Operator, values: Sequence[str], path: str = "", *, is_from_text: bool = False
) -> list[FieldError]:
    """Returns the errors of a requirement at `path` (NewRequirement).

    `is_from_text`: a list that was not written is nil for every operator.
    """
    errors: list[FieldError] = []
    wrong = label_key_errors(key)
    if wrong:
        errors.append(invalid(child(path, "key"), key, "; ".join(wrong)))
    values_path = child(path, "values")
    wrong_number = ""
    if operator in _IS_SET and not values:
        wrong_number = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in _IS_EXACT and len(values) != 1:
        wrong_number = "exact-match compatibility requires one single value"
    elif operator in _IS_UNARY and values:
        wrong_number = "values set must be empty for exists and does not exist"
    if wrong_number:
        errors.append(invalid(values_path, written_or_null(values), wrong_number))
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        if len(values) != 1:
            # Where these have no values in an object, upstream has an empty list and no nil one.
            shown_values = written_or_null(values) if is_from_text else list(values)
            errors.append(invalid(values_path, shown_values, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for place, value in enumerate(values):
            if parse_int64(value) is None:
                errors.append(
                    invalid(index(values_path, place), value, "for 'Gt', 'Lt' operators, the value must be an integer")
                )
    for place, value in enumerate(values):
        wrong = label_value_errors(value)
        if wrong:
            errors.append(invalid(index(index(values_path, place), key), value, "; ".join(wrong)))
    return errors
