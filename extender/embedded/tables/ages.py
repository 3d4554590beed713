"""Durations as people like them: `42s`, `5m30s`, `7d2h`.

Upstream: apimachinery/pkg/util/duration/duration.go; pkg/printers/internalversion/printers.go (v1.36.2).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from extender.embedded.resources import Object

UNKNOWN: Final = "<unknown>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


def human_duration(duration: timedelta) -> str:
    """Two or three significant figures; a little less than nothing is `0s`, more than that `<invalid>`. Upstream: HumanDuration."""
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


@final
@dataclass(frozen=True, slots=True)
class Ages:
    """How long ago things happened, as of one moment."""

    now: datetime

    def since(self, timestamp: str | None) -> str:
        """The time since an RFC 3339 timestamp; `<unknown>` if there is none."""
        return human_duration(self.now - datetime.fromisoformat(timestamp)) if timestamp else UNKNOWN

    def of(self, obj: Object) -> str:
        """The time since the object was created."""
        return self.since(obj["metadata"].get("creationTimestamp"))
