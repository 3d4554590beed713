"""What is wrong with a field of an object or of a configuration: where, of what sort, and in which words.

A path is plain text: `child("", "spec")`, `index(path, 0)`; the empty path is the root.

Upstream: apimachinery/pkg/util/validation/field, errors.go, path.go; util/errors.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

import msgspec

from extender.values.golang.json import marshal
from extender.values.golang.quoting import quoted

NOT_FOUND: Final = "FieldValueNotFound"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"

IMMUTABLE: Final = "field is immutable"
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"

_WORDS: Final = {
    "": "",
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
}


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def index(path: str, key: int | str) -> str:
    return f"{path}[{key}]"


@final
class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong. Upstream: field.Error.

    `field` is its path, such as `spec.containers[0].name`, empty for the whole document; `type` the machine-readable
    sort, empty if the detail says everything; `value_text` the printed value, where the sort shows one.
    """

    field: str
    type: str = ""
    detail: str = ""
    value_text: str = ""

    @property
    def message(self) -> str:
        """Everything but the path. Upstream: Error.ErrorBody."""
        return ": ".join(part for part in (_WORDS[self.type], self.value_text, self.detail) if part)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def as_cause(self) -> dict[str, str]:
        return {"reason": self.type, "message": self.message, "field": self.field}


def aggregate(errors: Iterable[object]) -> str:
    """Returns all the errors as one text, each of them once. Upstream: errors.NewAggregate, Flatten."""
    different = list(dict.fromkeys(map(str, errors)))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


# The errors of each sort, under upstream's names.


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, REQUIRED, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, INVALID, detail, shown(value))


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    return FieldError(path, NOT_SUPPORTED, f"supported values: {', '.join(map(quoted, supported))}", shown(value))


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, FORBIDDEN, detail)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(path, DUPLICATE, detail, shown(value))


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(path, NOT_FOUND, detail, shown(value))


def too_long(path: str, length: int) -> FieldError:
    return FieldError(path, TOO_LONG, f"may not be more than {length} byte{'' if length == 1 else 's'}")


def too_many(path: str, actual: int, largest: int) -> FieldError:
    return FieldError(path, TOO_MANY, f"must have at most {largest} item{'' if largest == 1 else 's'}", shown(actual))


def all_invalid(path: str, value: Any, details: Iterable[str]) -> list[FieldError]:
    return [invalid(path, value, detail) for detail in details]


def non_negative(path: str, value: int | None) -> list[FieldError]:
    """Returns the errors of a number that may not be negative. Upstream: ValidateNonnegativeField."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    """Returns the errors of a change of a field; absent and empty are the same (ValidateImmutableField)."""
    return [invalid(path, new, IMMUTABLE)] if (new or None) != (old or None) else []


def one_of(path: str, value: str | None, supported: Iterable[str]) -> list[FieldError]:
    if not value:
        return [required(path)]
    supported = tuple(supported)
    return [] if value in supported else [not_supported(path, value, supported)]


def in_go(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns a value of an internal type, which prints as all of its Go fields, null where there is nothing."""
    return {name: value.get(name[0].lower() + name[1:]) for name in names}


@final
class Marshalled(str):
    """A value that is already in the form in which an error shows it."""

    __slots__ = ()


def marshalled(value: object) -> Marshalled:
    """Returns the form in which an error shows a value of none of Go's simple types, such as a struct."""
    return Marshalled(marshal(value))


def shown(value: Any) -> str:
    """Returns a value as an error shows it. Upstream: Error.ErrorBody."""
    if isinstance(value, Marshalled):
        return value
    return quoted(value) if isinstance(value, str) else marshal(value)
