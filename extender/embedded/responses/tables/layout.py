"""What a table of one kind looks like: its columns, and how an object becomes a row.

Upstream: apimachinery/pkg/apis/meta/v1/types.go, TableColumnDefinition, TableRow (v1.36.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, final

from extender.embedded.api_resources import Object

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


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column. Those of priority 1 are shown on request only (`-o wide`)."""

    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def as_object(self) -> Object:
        """The TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def wide(name: str, description: str, format: str = "") -> Column:  # noqa: A002 - as upstream calls it
    """A column that is shown on request only."""
    return Column(name, description, format=format, priority=1)


NAME: Final = Column("Name", "The name of the object, unique within its namespace.", format="name")
AGE: Final = Column("Age", "The time since the object was created.")
CONTAINERS: Final = wide("Containers", "Names of each container in the template.")
IMAGES: Final = wide("Images", "Images referenced by each container in the template.")

Cells = Callable[[Object, Ages], list[Any]]
"""The cells of an object's row, one for each column."""


def no_conditions(obj: Object) -> Sequence[Object]:
    """Most rows have none."""
    del obj
    return ()


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How objects of a kind are printed. `conditions` are what is said of a row as a whole."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[Object], Sequence[Object]] = no_conditions


def name_of(obj: Object) -> str:
    """The object's name."""
    name: str = obj["metadata"].get("name", "")
    return name


def spec_of(obj: Object) -> Object:
    """The object's spec; empty if it has none."""
    return obj.get("spec") or {}


def status_of(obj: Object) -> Object:
    """The object's status; empty if it has none."""
    return obj.get("status") or {}


def is_going(obj: Object) -> bool:
    """True once the object's deletion was asked for."""
    return obj["metadata"].get("deletionTimestamp") is not None


NONE: Final = "<none>"

_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def format_labels(labels: Mapping[str, str] | None) -> str:
    """`a=b,c=d`, or `<none>`."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or NONE


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """As `selector_text`, but `<none>` for one that says nothing."""
    return selector_text(selector) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """`a=b,c in (d,e),!f`: the requirements in the order of their keys; empty for one that says nothing."""
    if not selector:
        return ""
    requirements = [(name, f"{name}={value}") for name, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        requirements += [(each["key"], _requirement(each["key"], each["operator"], each.get("values") or ()))]
    return ",".join(text for _, text in sorted(requirements, key=lambda each: each[0]))


def _requirement(key: str, operator: str, values: Sequence[str]) -> str:
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(values))})"
    return key if operator == "Exists" else f"!{key}"
