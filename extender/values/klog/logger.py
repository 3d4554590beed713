"""Structured logging: a message that never varies, with what it is about as keys and values.

Messages go through the loggers of the standard library, so that an application that embeds the engine decides where
they end. Verbosity n is the level `INFO - n`; a call below the level of its logger costs a fraction of a microsecond.

Upstream: k8s.io/klog/v2, structured logging.
"""

import logging
import re
from collections.abc import Mapping, Set
from typing import Any, Final, final

import msgspec

from extender.values import limits
from extender.values.golang.quoting import quoted
from extender.values.objects.meta import HasMetadata

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def level_of(verbosity: int) -> int:
    return max(1, logging.INFO - max(0, verbosity))  # 0 would be NOTSET


@final
class Lines(msgspec.Struct, frozen=True):
    """A text of several lines, made by this project and not by users, that is logged in full."""

    text: str


@final
class Message(msgspec.Struct, frozen=True):
    """A message with its keys and values. As a text it is the body of a klog line."""

    message: str
    keys: Mapping[str, object]

    def __str__(self) -> str:
        return " ".join((quoted(self.message), *(f"{key}={as_text(value)}" for key, value in self.keys.items())))


@final
class Logger:
    """Logs in the name of a module."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def enabled(self, verbosity: int) -> bool:
        """Returns whether `info` at this verbosity logs anything, before values are computed for it (V(n).Enabled)."""
        return self._logger.isEnabledFor(logging.INFO - verbosity)

    def info(self, verbosity: int, message: str, /, **keys: object) -> None:
        """Logs a message at a verbosity; 0 is always logged."""
        level = logging.INFO - verbosity
        if self._logger.isEnabledFor(level):
            self._logger.log(level, Message(message, keys), stacklevel=2)

    def error(self, error: BaseException | str | None, message: str, /, **keys: object) -> None:
        """Logs a failure that is expected to happen at times. The error comes first."""
        self._logger.error(Message(message, keys if error is None else {"err": error, **keys}), stacklevel=2)

    def exception(self, error: BaseException, message: str, /, **keys: object) -> None:
        """Logs an unexpected exception, with its traceback."""
        self._logger.error(Message(message, {"err": error, **keys}), exc_info=error, stacklevel=2)


def as_text(value: object) -> str:
    """Returns a value as klog's text format writes it, on one line but for `Lines`."""
    meta = value.metadata if isinstance(value, HasMetadata) else None
    if meta is not None:
        return quoted(_short(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name))
    match value:
        case Lines(text) if "\n" in text:
            return (
                "<\n"
                + "".join(f"\t{_UNPRINTABLE.sub(_escape, line)}\n" for line in text.removesuffix("\n").split("\n"))
                + " >"
            )
        case Lines(text):
            return quoted(text)
        case str() | BaseException():
            return quoted(_short(_shown(value)))
        case _:
            return _short(msgspec.json.encode(as_json(value)).decode())


def as_json(value: object) -> Any:
    """Returns a value for klog's JSON format, in dicts, lists and scalars."""
    meta = value.metadata if isinstance(value, HasMetadata) else None
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
            return {str(key): as_json(part) for key, part in value.items()}
        case Set():
            return sorted(as_json(part) for part in value)
        case list() | tuple():
            return [as_json(part) for part in value]
        case _:
            return _short(_shown(value))


def _shown(value: object) -> str:
    """Returns the text without lone surrogates, which no encoder takes; an exception without a text by its type."""
    text = str(value) or (type(value).__name__ if isinstance(value, BaseException) else "")
    return text.encode("utf-8", "backslashreplace").decode()


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _short(text: str) -> str:
    return text if len(text) <= limits.LOGGED_VALUE else f"{text[: limits.LOGGED_VALUE]}…"
