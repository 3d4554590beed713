"""What is wrong with a configuration, in upstream's words: one error a line, all at once."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from extender.config.json_text import as_json
from extender.objects.field_errors import aggregate, quoted

Stage = Literal["load", "validation", "create"]
"""Where a configuration fails: while it is read, while its values are checked, while profiles and extenders are built of it."""


class FieldError(NamedTuple):
    """One error: the path of the field (empty where the whole document is meant) and what is wrong."""

    path: str
    message: str

    @property
    def text(self) -> str:
        """As upstream prints it."""
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigErrors(Exception):  # noqa: N818  it carries all of them
    """The configuration cannot be used. Its text is upstream's aggregate of all errors."""

    def __init__(self, errors: Iterable[tuple[str, str]], stage: Stage = "validation") -> None:
        self.errors: Final = tuple(FieldError(path, message) for path, message in errors)
        self.stage: Final = stage
        super().__init__(aggregate(error.text for error in self.errors))


class Shown(str):
    """A value that is already in the form in which an error shows it."""

    __slots__ = ()


def shown_as_json(value: object) -> Shown:
    """How an error shows a value that is not of one of Go's simple types, such as a list, a struct or a named string type."""
    return Shown(as_json(value))


def invalid(path: str, value: float | str, detail: str) -> FieldError:
    """The value is malformed or out of range. Upstream: field.Invalid."""
    return _with_value("Invalid value", path, value, detail)


def duplicate(path: str, value: str) -> FieldError:
    """The value was there before. Upstream: field.Duplicate."""
    return _with_value("Duplicate value", path, value)


def not_supported(path: str, value: str, supported: Iterable[str]) -> FieldError:
    """The value is none of those supported. Upstream: field.NotSupported."""
    return _with_value("Unsupported value", path, value, "supported values: " + ", ".join(map(quoted, supported)))


def required(path: str, detail: str = "") -> FieldError:
    """The value is missing. Upstream: field.Required."""
    return FieldError(path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: str, detail: str) -> FieldError:
    """The value may not be given here. Upstream: field.Forbidden."""
    return FieldError(path, f"Forbidden: {detail}")


def _with_value(kind: str, path: str, value: float | str, detail: str = "") -> FieldError:
    shown = value if isinstance(value, Shown) else quoted(value) if isinstance(value, str) else str(value)
    return FieldError(path, f"{kind}: {shown}: {detail}" if detail else f"{kind}: {shown}")
