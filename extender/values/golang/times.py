"""Times as Go's time.Parse reads them and as Kubernetes writes them, with Go's words for what it cannot read.

Upstream: Go, time/format.go, Parse; apimachinery/pkg/apis/meta/v1, time.go, micro_time.go (v1.36.2).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal

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
