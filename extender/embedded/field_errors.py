"""What is wrong with a field of an object: where, of what sort, and how upstream words it.

Upstream: apimachinery/pkg/util/validation/field/errors.go (v1.36.2).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from extender.objects.field_errors import quoted

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
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
}
# encoding/json keeps texts safe to put into HTML and JavaScript.
_JSON_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@final
@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong.

    Attributes:
        field: its path, such as `spec.containers[0].name`.
        type: the machine-readable sort, such as FieldValueRequired.
        detail: what a person should know; may be empty.
        shown: the value as it is printed; empty where the sort shows none.
    """

    field: str
    type: str
    detail: str = ""
    shown: str = ""

    @property
    def message(self) -> str:
        """Everything but the path."""
        return ": ".join(part for part in (_WORDS[self.type], self.shown, self.detail) if part)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def as_cause(self) -> dict[str, str]:
        """A metav1.StatusCause."""
        return {"reason": self.type, "message": self.message, "field": self.field}


def required(path: str, detail: str = "") -> FieldError:
    """There must be a value."""
    return FieldError(path, REQUIRED, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """This value cannot stand here."""
    return FieldError(path, INVALID, detail, shown(value))


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is none of those that are known."""
    return FieldError(path, NOT_SUPPORTED, f"supported values: {', '.join(map(quoted, supported))}", shown(value))


def forbidden(path: str, detail: str) -> FieldError:
    """The value could be right, but not here and now."""
    return FieldError(path, FORBIDDEN, detail)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    """The value is there already."""
    return FieldError(path, DUPLICATE, detail, shown(value))


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """Nothing of this name is known."""
    return FieldError(path, NOT_FOUND, detail, shown(value))


def too_long(path: str, length: int) -> FieldError:
    """The text has more than `length` bytes."""
    return FieldError(path, TOO_LONG, f"may not be more than {length} byte{'' if length == 1 else 's'}")


def too_many(path: str, actual: int, largest: int) -> FieldError:
    """The list has more than `largest` items."""
    return FieldError(path, TOO_MANY, f"must have at most {largest} item{'' if largest == 1 else 's'}", shown(actual))


def all_invalid(path: str, value: Any, details: Iterable[str]) -> list[FieldError]:
    """An error for each of the sentences."""
    return [invalid(path, value, detail) for detail in details]


def non_negative(path: str, value: int | None) -> list[FieldError]:
    """Nothing below 0. Upstream: ValidateNonnegativeField."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    """The value is what it was; absent and empty are the same. Upstream: ValidateImmutableField."""
    return [invalid(path, new, IMMUTABLE)] if (new or None) != (old or None) else []


def one_of(path: str, value: str | None, supported: Iterable[str]) -> list[FieldError]:
    """There is a value, and it is a known one."""
    if not value:
        return [required(path)]
    supported = tuple(supported)
    return [] if value in supported else [not_supported(path, value, supported)]


def in_go(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A value of an internal type, which prints with the names of its Go fields: all of `names`, null where there is nothing."""
    return {name: value.get(name[0].lower() + name[1:]) for name in names}


def shown(value: Any) -> str:
    """A value as Go prints it in an error."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)
