"""Times and durations as Go's package time reads and writes them, with its words for what it cannot read.

Upstream: Go, time/format.go, Parse; apimachinery/pkg/apis/meta/v1, time.go, micro_time.go.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal

import msgspec

from extender.values.golang.quoting import quoted

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

CACHE_SIZE: Final = 4096
"""The number of parsed times that are cached, because objects that are written again contain the same ones."""

# A fraction may be of any length, so that longer texts are not cached.
_KEPT_CHARACTERS: Final = 40
_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
# Each part of the layout, what it looks like in a text, and what it is called when it is out of range.
_PARTS: Final = (
    ("2006", re.compile(r"[0-9]{4}"), ""),
    ("-", re.compile(r"-"), ""),
    ("01", re.compile(r"[0-9]{2}"), "month"),
    ("-", re.compile(r"-"), ""),
    ("02", re.compile(r"[0-9]{2}"), "day"),
    ("T", re.compile(r"T"), ""),
    ("15", re.compile(r"[0-9]{2}"), "hour"),
    (":", re.compile(r":"), ""),
    ("04", re.compile(r"[0-9]{2}"), "minute"),
    (":", re.compile(r":"), ""),
    ("05", re.compile(r"[0-9]{2}"), "second"),
)
_LARGEST: Final = {"month": 12, "hour": 23, "minute": 59, "second": 59}
_FRACTION: Final = re.compile(r"[.,][0-9]+")
_MICROS: Final = re.compile(r"\.[0-9]{6}")
_ZONE: Final = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")


class TimeError(ValueError):
    """The text is no time. The message is Go's."""


def rfc3339(moment: datetime, precision: Literal["seconds", "milliseconds", "microseconds"] = "seconds") -> str:
    """Returns a time in UTC: to the second, as metav1.Time is written, or to the microsecond, as MicroTime is."""
    if precision == "microseconds" and moment.microsecond and moment.tzinfo is UTC:
        return str(msgspec.to_builtins(moment))  # the same text, which costs a twentieth
    return moment.astimezone(UTC).isoformat(timespec=precision).removesuffix("+00:00") + "Z"


def moment_of(text: str | None) -> datetime | None:
    """Returns the moment that a timestamp names, in UTC if it names no zone; None if it cannot be read."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def read_time(text: str) -> str | None:
    """Returns the time that metav1.Time makes of a text, as it is written; None for zero. Raises TimeError."""
    return _read_time(text) if len(text) <= _KEPT_CHARACTERS else _read_time.__wrapped__(text)


@lru_cache(maxsize=CACHE_SIZE)
def _read_time(text: str) -> str | None:
    moment = _parse(text, RFC3339)
    return None if moment == _ZERO else rfc3339(moment)


def read_micro_time(text: str) -> str | None:
    """Returns the time that metav1.MicroTime makes of a text, as `read_time` does."""
    moment = _parse(text, RFC3339_MICRO)
    return None if moment == _ZERO else rfc3339(moment, "microseconds")


def _parse(text: str, layout: str) -> datetime:
    place, numbers = 0, []
    for part, pattern, name in _PARTS:
        match = pattern.match(text, place)
        if match is None:
            raise _cannot_parse(text, layout, place, part)
        place = match.end()
        if part.isdigit():
            number = int(match[0])
            if (name == "month" and number == 0) or number > _LARGEST.get(name, 9999):
                raise TimeError(f"parsing time {quoted(text)}: {name} out of range")
            numbers.append(number)
    fraction = (_MICROS if layout is RFC3339_MICRO else _FRACTION).match(text, place)
    if fraction is None and layout is RFC3339_MICRO:
        raise _cannot_parse(text, layout, place, ".000000")
    micros = int(fraction[0][1:7].ljust(6, "0")) if fraction else 0
    place = fraction.end() if fraction else place
    zone = _ZONE.match(text, place)
    if zone is None:
        raise _cannot_parse(text, layout, place, "Z07:00")
    if zone.end() < len(text):
        raise TimeError(f"parsing time {quoted(text)}: extra text: {quoted(text[zone.end() :])}")
    try:
        return datetime(*numbers, micros, tzinfo=UTC) - _offset(zone[0])  # type: ignore[misc,arg-type]
    except ValueError as exc:
        raise TimeError(f"parsing time {quoted(text)}: day out of range") from exc
    except OverflowError as exc:
        raise TimeError(f"parsing time {quoted(text)}: time zone offset hour out of range") from exc


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -offset if zone[0] == "-" else offset


def _cannot_parse(text: str, layout: str, place: int, part: str) -> TimeError:
    return TimeError(
        f"parsing time {quoted(text)} as {quoted(layout)}: cannot parse {quoted(text[place:])} as {quoted(part)}"
    )


# Durations: `1m30s`, `500ms`, exact to the nanosecond.


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
        """Returns the duration that `text` spells (time.ParseDuration). Raises DurationError."""
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
