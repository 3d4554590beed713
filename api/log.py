"""What is logged, and how: one record a line, whatever callers and objects hold.

Messages and exception texts may repeat user content, so control characters in them are escaped and their length is capped; only the
frames of a traceback, which are ours, span lines.
"""

import logging
import logging.config
import traceback
from typing import Any, Final, final
from uuid import uuid4

MAX_FIELD: Final = 256
MAX_MESSAGE: Final = 4096

_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def escaped(text: str, limit: int = MAX_FIELD) -> str:
    """The text without control characters and with no more than `limit` characters."""
    shown = text[:limit].translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()
    return shown if len(text) <= limit else f"{shown}…"


@final
class Formatter(logging.Formatter):
    """`time LEVEL logger message`, escaped; a traceback follows on lines that begin with blanks."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line of the record."""
        record.message = escaped(record.message, MAX_MESSAGE)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """The frames, and the escaped text of each exception of the chain."""
        chain: list[str] = []
        exc: BaseException | None = ei[1]
        while exc is not None and len(chain) < 8:
            frames = "".join(traceback.format_tb(exc.__traceback__, limit=-30))
            chain.append(f"{frames}  {type(exc).__name__}: {escaped(str(exc))}")
            exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
        return "\n  caused by\n".join(chain)


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "api.log.Formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"uvicorn": {"level": "INFO"}, "uvicorn.access": {"level": "WARNING"}},
}


def report(logger: logging.Logger, what: str, exc: BaseException) -> str:
    """Log an exception that nobody expected.

    Returns:
        The id under which it is found in the log; this, and nothing else, is told to the caller.
    """
    number = uuid4().hex[:12]
    logger.error("internal error, id %s: %s", number, what, exc_info=exc)
    return number
