"""Durations as Go writes them: `1m30s`, `500ms`, exact to the nanosecond."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from extender.values.golang.quoting import quoted

_SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek letter mu
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_LIMIT: Final = 2**63

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_PIECE: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")


class DurationError(ValueError):
    """The text is no duration. The message is that of Go's time.ParseDuration."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time. Upstream: metav1.Duration."""

    nanoseconds: int = 0

    @classmethod
    def of(cls, seconds: int) -> "Duration":
        return cls(seconds * _SECOND)

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Returns the duration that `text` spells (time.ParseDuration).

        Raises DurationError for no number, no unit, an unknown unit, or more than 2**63 - 1 nanoseconds.
        """
        unsigned = text[1:] if text[:1] in ("-", "+") else text
        if unsigned == "0":
            return cls()
        total = position = 0
        while position < len(unsigned) or not unsigned:
            piece = _PIECE.match(unsigned, position)
            if piece is None or not (piece[1] or piece[2]):
                raise DurationError(f"time: invalid duration {quoted(text)}")
            unit = piece[3]
            if not unit:
                raise DurationError(f"time: missing unit in duration {quoted(text)}")
            if unit not in _UNITS:
                raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
            total += _nanoseconds(piece[1], piece[2] or "", _UNITS[unit])
            if total > _LIMIT:
                raise DurationError(f"time: invalid duration {quoted(text)}")
            position = piece.end()
        negative = text.startswith("-")
        if total == _LIMIT and not negative:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        return cls(-total if negative else total)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / _SECOND

    def __str__(self) -> str:
        """Returns the duration as Go prints it: `10m0s`, `1.5s`, `100ms`, `0s`."""
        sign, rest = ("-", -self.nanoseconds) if self.nanoseconds < 0 else ("", self.nanoseconds)
        if rest == 0:
            return "0s"
        if rest < _SECOND:
            unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS[unit])
            return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
        minutes, below = divmod(rest, 60 * _SECOND)
        hours, minutes = divmod(minutes, 60)
        text = f"{_decimal(below, _SECOND)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{text}"
        return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    whole = whole.lstrip("0")
    if len(whole) > len(str(_LIMIT)):
        return _LIMIT + 1
    # Go reads no more of a fraction than an int64 holds, and scales what it has read in floating point.
    digits = fraction[:18]
    scaled = int(float(int(digits)) * (float(unit) / 10.0 ** len(digits))) if digits else 0
    return int(whole or "0") * unit + scaled


def _decimal(amount: int, unit: int) -> str:
    whole, below = divmod(amount, unit)
    digits = f"{below:0{len(str(unit)) - 1}d}".rstrip("0") if unit > 1 else ""
    return f"{whole}.{digits}" if digits else str(whole)


def human_duration(duration: timedelta) -> str:
    """Returns a duration with two or three significant figures. Upstream: duration.HumanDuration."""
    # Go rounds towards zero.
    seconds = int(duration.total_seconds())
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")
