"""The log: lines as klog writes them, or one JSON object a line, on stderr, written without waiting.

A full disk, a closed or unread pipe, a stopped terminal: none of them delays a pod. Lines that cannot be written are
counted, and the count is written as soon as lines can be written again.

Messages, values and exception texts may repeat user content, so control characters in them are escaped and their length
is capped; only the frames of a traceback and dumps, which are ours, span lines, and those begin with blanks.

Upstream: k8s.io/klog/v2, klog.go, header; component-base/logs/json, json.go.
"""

import logging
import os
import select
import traceback
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final, Literal, final
from uuid import uuid4

import orjson

from extender.values import limits
from extender.values.klog.logger import Message, as_json, level_of

_STDERR: Final = 2

_PATIENCE: Final = 100
"""Milliseconds for which a line may wait; none after a line that has waited in vain."""


@final
class Outlet(logging.Handler):
    """Writes to a file descriptor. State: the number of lines that were dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLOUT)
        self._dropped = 0
        self._unreported = 0
        """Dropped lines that have not been reported."""
        self._is_cut_off = False
        """Whether the last line was cut off."""

    def dropped(self) -> int:
        """Returns how many lines were dropped or cut off."""
        return self._dropped

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
        else:
            self.write_line(line)

    def write_line(self, line: str) -> None:
        self.acquire()
        try:
            lines = [self._notice(), line] if self._unreported else [line]
            text = "".join(f"{part}\n" for part in lines).encode("utf-8", "backslashreplace")
            self._write_text(b"\n" + text if self._is_cut_off else text)
        finally:
            self.release()

    def _write_text(self, text: bytes) -> None:
        length = self._write(text)
        if length:
            self._is_cut_off = not text[:length].endswith(b"\n")
        if length == len(text):
            self._unreported = 0
        else:
            self._unreported += 1
            self._dropped += 1

    def _write(self, text: bytes) -> int:
        num_bytes = 0
        patience = 0 if self._unreported else _PATIENCE
        while num_bytes < len(text):
            if not self._ready.poll(patience):
                break
            try:
                # A pipe that is ready accepts PIPE_BUF bytes without blocking.
                num_bytes += os.write(self._descriptor, text[num_bytes : num_bytes + select.PIPE_BUF])
            except OSError:
                break
        return num_bytes

    def _notice(self) -> str:
        message = Message("Lines of the log were dropped, as they could not be written", {"lines": self._unreported})
        return self.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, None, None))


STDERR: Final = Outlet(_STDERR)


Format = Literal["text", "json"]

_ESCAPES: Final = {
    # C0, DEL and C1; what ends a line, and what turns the direction of text; what is not seen, tags among it.
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    **{code: f"\\u{code:04x}" for code in (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))},
    **{code: f"\\u{code:04x}" for code in (0xAD, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0xFEFF)},
    **{code: f"\\U{code:08x}" for code in range(0xE0000, 0xE0080)},
    **{ord(character): repr(character)[1:-1] for character in "\n\r\t"},
}
_OURS: Final = ("extender", "reprieve", "api")


def escaped(text: str, limit: int = limits.LOGGED_FIELD) -> str:
    """Returns at most `limit` characters without those that control, turn the text's direction, or are not seen."""
    visible = text[:limit].translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()
    return visible if len(text) <= limit else f"{visible}…"


@final
class TextFormatter(logging.Formatter):
    """`I1120 15:49:40.000000 1 file.py:12] "message" key="value"`; then a traceback after blanks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        # Local time, as klog.
        second, fraction = divmod(record.created, 1)
        time = f"{_second(int(second))}.{int(fraction * 1e6):06}"
        header = f"{_severity(record)}{time} {record.process or 0:7} {record.filename}:{record.lineno}]"
        message = record.msg if isinstance(record.msg, Message) else _of_others(record.message)
        return f"{header} {message}"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return _traceback(ei[1])


@final
class JsonFormatter(logging.Formatter):
    """`{"ts":..., "caller":"folder/file.py:12", "msg":"message", "v":0, "key":"value"}`; `ts` in milliseconds. Errors
    have no `v`.
    """

    def format(self, record: logging.LogRecord) -> str:
        path = PurePath(record.pathname)
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{path.parent.name}/{path.name}:{record.lineno}",
        }
        message = record.msg if isinstance(record.msg, Message) else None
        line["msg"] = message.message if message is not None else _of_others(record.getMessage())
        if record.levelno < logging.ERROR:
            line["v"] = max(0, logging.INFO - record.levelno)
        if message is not None:
            line |= {key: as_json(value) for key, value in message.keys.items() if key != "err"}
            if "err" in message.keys:
                line["err"] = as_json(message.keys["err"])
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["stacktrace"] = _traceback(record.exc_info[1])
        return orjson.dumps(line, option=orjson.OPT_PASSTHROUGH_SUBCLASS, default=str).decode()


def _of_others(message: str) -> str:
    """Returns a message of another library; of a long one also the end, where a traceback says what went wrong."""
    cut = limits.LOGGED_MESSAGE // 2
    is_long = len(message) > limits.LOGGED_MESSAGE
    return escaped(message, cut) + escaped(message[-cut:], cut) if is_long else escaped(message, limits.LOGGED_MESSAGE)


@lru_cache(maxsize=4)
def _second(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp):%m%d %H:%M:%S}"


def _severity(record: logging.LogRecord) -> str:
    if record.levelno >= logging.CRITICAL:
        return "F"
    return "E" if record.levelno >= logging.ERROR else "W" if record.levelno >= logging.WARNING else "I"


def _traceback(exc: BaseException | None) -> str:
    chain: list[str] = []
    exceptions = [exc]
    while exceptions and len(chain) < 8:
        if (exc := exceptions.pop()) is None:
            continue
        frames = "".join(traceback.format_tb(exc.__traceback__, limit=-30))
        chain.append(f"{frames}  {type(exc).__name__}: {escaped(str(exc), limits.LOGGED_MESSAGE)}")
        exceptions.append(exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__))
        exceptions += exc.exceptions if isinstance(exc, BaseExceptionGroup) else ()
    return "\n  caused by\n".join(chain)


def configure(form: Format = "text", verbosity: int = 0, by_file: Sequence[tuple[str, int]] = ()) -> None:
    """Sends the log to stderr from now on.

    `by_file` has (pattern, verbosity) for files, named without folder and suffix; the first that fits counts
    (--vmodule).
    """
    STDERR.setFormatter(TextFormatter() if form == "text" else JsonFormatter())
    logging.basicConfig(handlers=[STDERR], level=logging.INFO, force=True)
    logging.getLogger("uvicorn").setLevel(logging.INFO)
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    set_verbosity(verbosity)
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger) and name.startswith(tuple(f"{ours}." for ours in _OURS)):
            path = name.replace(".", "/")
            fitting = (
                level
                for pattern, level in by_file
                if fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)
            )
            logger.setLevel(next((level_of(level) for level in fitting), logging.NOTSET))


def set_verbosity(verbosity: int) -> None:
    """Sets the verbosity of our own modules. Other libraries stay at their warnings and errors."""
    for name in _OURS:
        logging.getLogger(name).setLevel(level_of(verbosity))


def report(logger: logging.Logger, what: str, exc: BaseException) -> str:
    """Logs an unexpected exception. Returns the id under which it is found in the log, all that a caller is given."""
    number = uuid4().hex[:12]
    logger.error("internal error, id %s: %s", number, what, exc_info=exc)
    return number
