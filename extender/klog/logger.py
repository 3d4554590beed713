"""Log: what the scheduler does, said as upstream says it: a message that never varies, and what it is about as keys and values.

It goes through the loggers of the standard library, so that whoever embeds the engine decides where it ends. Verbosity n is the level
`INFO - n`, and is said only by loggers that were set to it: a call that is not said costs a fraction of a microsecond.

Upstream: k8s.io/klog/v2, structured logging (v1.36.2).
"""

import logging
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, final

import msgspec

from extender.golang.quoting import quoted
from extender.objects.meta import ApiObject, ObjectMeta

MAX_VERBOSITY: Final = logging.INFO - 1

MAX_TEXT: Final = 4096
"""Characters of a value that are said; people write into objects what they like."""


_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def level_of(verbosity: int) -> int:
    """The level of the standard library at which so much is said."""
    return logging.INFO - max(0, min(verbosity, MAX_VERBOSITY))


@final
@dataclass(frozen=True, slots=True)
class Lines:
    """A text of many lines that we have made ourselves, said in full."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Said:
    """A message, and what it is about. As a text it is the body of a klog line."""

    message: str
    keys: Mapping[str, object]

    def __str__(self) -> str:
        return " ".join((quoted(self.message), *(f"{key}={as_text(value)}" for key, value in self.keys.items())))


@final
class Logger:
    """Says things in the name of a module."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        """Arguments: name: of the module, `__name__`."""
        self._logger = logging.getLogger(name)

    def says(self, verbosity: int) -> bool:
        """Whether `info` at this verbosity says anything: asked before anything is worked out for it."""
        return self._logger.isEnabledFor(logging.INFO - verbosity)

    def info(self, verbosity: int, message: str, /, **keys: object) -> None:
        """Say it to those who want to hear so much; 0 is for everybody."""
        level = logging.INFO - verbosity
        if self._logger.isEnabledFor(level):
            self._logger.log(level, Said(message, keys), stacklevel=2)

    def error(self, error: BaseException | str | None, message: str, /, **keys: object) -> None:
        """Something that went wrong, as things do. The error comes first."""
        self._logger.error(Said(message, keys if error is None else {"err": error, **keys}), stacklevel=2)

    def exception(self, error: BaseException, message: str, /, **keys: object) -> None:
        """Something that nobody expected: it is said where it came from, too."""
        self._logger.error(Said(message, {"err": error, **keys}), exc_info=error, stacklevel=2)


def as_text(value: object) -> str:
    """A value as klog's text format writes it, on one line but for `Lines`."""
    meta = _meta_of(value)
    if meta is not None:
        return quoted(_short(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name))
    match value:
        case Lines(text) if "\n" in text:
            return "<\n" + "".join(f"\t{_UNPRINTABLE.sub(_escape, line)}\n" for line in text.removesuffix("\n").split("\n")) + " >"
        case Lines(text):
            return quoted(text)
        case str() | BaseException():
            return quoted(_short(_shown(value)))
        case _:
            return _short(msgspec.json.encode(as_json(value)).decode())


def as_json(value: object) -> Any:
    """A value as JSON shows it."""
    meta = _meta_of(value)
    if meta is not None:
        return {"name": meta.name, "namespace": meta.namespace} if meta.namespace else {"name": meta.name}
    match value:
        case Lines(text):
            return text
        case int() if not isinstance(value, bool) and value.bit_length() > 63:
            return str(value)  # beyond what JSON readers count with
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {str(key): as_json(each) for key, each in value.items()}
        case Set():
            return sorted(as_json(each) for each in value)
        case list() | tuple():
            return [as_json(each) for each in value]
        case _:
            return _short(_shown(value))


@cache
def _is_named(kind: type) -> bool:
    return issubclass(kind, ApiObject) and "metadata" in kind.__struct_fields__


def _meta_of(value: object) -> ObjectMeta | None:
    """What an object of the API is called; None for anything else."""
    kind: Any = type(value)
    if not _is_named(kind):
        return None
    meta: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    return meta


def _shown(value: object) -> str:
    """The text without halves of characters, which no encoder takes. An exception that says nothing is called by its type."""
    text = str(value) or (type(value).__name__ if isinstance(value, BaseException) else "")
    return text.encode("utf-8", "backslashreplace").decode()


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
