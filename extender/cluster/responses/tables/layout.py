"""The layout of a table: its columns, and the cells of an object's row.

Upstream: apimachinery/pkg/apis/meta/v1/types.go, TableColumnDefinition; pkg/util/duration/duration.go;
pkg/labels/labels.go (v1.36.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, final

from extender.cluster.api_resources import Object

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


def human_duration(duration: timedelta) -> str:
    """Returns a duration with two or three significant figures. Upstream: HumanDuration."""
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
    """The time since things happened, as of one moment."""

    now: datetime

    def since(self, timestamp: str | None) -> str:
        """Returns the time since an RFC 3339 timestamp; `<unknown>` if there is none."""
        return human_duration(self.now - datetime.fromisoformat(timestamp)) if timestamp else UNKNOWN

    def of(self, obj: Object) -> str:
        """Returns the time since the object was created."""
        return self.since(obj["metadata"].get("creationTimestamp"))


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column. Columns of priority 1 are shown by `-o wide` only."""

    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def as_object(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def wide(name: str, description: str, format: str = "") -> Column:  # noqa: A002 - as upstream calls it
    """Returns a column that is shown by `-o wide` only."""
    return Column(name, description, format=format, priority=1)


NAME: Final = Column("Name", "The name of the object, unique within its namespace.", format="name")
AGE: Final = Column("Age", "The time since the object was created.")
CONTAINERS: Final = wide("Containers", "Names of each container in the template.")
IMAGES: Final = wide("Images", "Images referenced by each container in the template.")

Cells = Callable[[Object, Ages], list[Any]]
"""Returns the cells of an object's row, one for each column."""


def no_conditions(obj: Object) -> Sequence[Object]:
    """Returns nothing: most rows have no conditions."""
    del obj
    return ()


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The columns and the rows of a kind. `conditions` says something about a whole row."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[Object], Sequence[Object]] = no_conditions


def name_of(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def spec_of(obj: Object) -> Object:
    """Returns the spec of an object; empty if it has none."""
    return obj.get("spec") or {}


def status_of(obj: Object) -> Object:
    """Returns the status of an object; empty if it has none."""
    return obj.get("status") or {}


def is_going(obj: Object) -> bool:
    """Returns True if the deletion of the object was asked for."""
    return obj["metadata"].get("deletionTimestamp") is not None


def format_labels(labels: Mapping[str, str] | None) -> str:
    """Returns `a=b,c=d`, or `<none>`."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or NONE
