"""The tables that kubectl prints, by upstream's rules: their columns, and the cells of an object's row.

Upstream: apimachinery/pkg/apis/meta/v1/types.go, TableColumnDefinition; pkg/printers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from extender.rules.api_resources import Object
from extender.values.golang.times import human_duration

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"


@final
@dataclass(frozen=True, slots=True)
class Ages:
    """Ages as of one moment."""

    now: datetime

    def since(self, timestamp: str | None) -> str:
        """Returns the time since an RFC 3339 timestamp; `<unknown>` if there is none."""
        return human_duration(self.now - datetime.fromisoformat(timestamp)) if timestamp else UNKNOWN

    def of(self, obj: Object) -> str:
        return self.since(obj["metadata"].get("creationTimestamp"))


Cell = Callable[[Object], Any]


def field(path: str, otherwise: Any = "") -> Cell:
    """Returns a function that reads a field, such as `spec.nodeName`, or returns `otherwise` if it is empty."""
    *parents, last = path.split(".")

    def read(obj: Object) -> Any:
        for name in parents:
            obj = obj.get(name) or {}
        return obj.get(last) or otherwise

    return read


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column; only `-o wide` shows those of priority 1.

    `cell` is None for the age of the object, and if the layout makes whole rows.
    """

    name: str
    description: str
    cell: Cell | None = None
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


def wide(name: str, description: str, cell: Cell | None = None, format: str = "") -> Column:  # noqa: A002 - as upstream calls it
    return Column(name, description, cell, format=format, priority=1)


def number(name: str, description: str, path: str) -> Column:
    return Column(name, description, field(path, 0), "integer")


def flag(name: str, description: str, path: str) -> Column:
    return Column(name, description, field(path, False), "boolean")


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
    return obj["metadata"].get("deletionTimestamp") is not None


def format_labels(labels: Mapping[str, str] | None) -> str:
    """Returns `a=b,c=d`, or `<none>`."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or NONE


NAME: Final = Column("Name", "The name of the object, unique within its namespace.", name_of, format="name")
AGE: Final = Column("Age", "The time since the object was created.")


@final
class Layout:
    """The columns of a kind, optionally with functions for whole rows and for the conditions of rows."""

    def __init__(
        self,
        *columns: Column,
        row: Callable[[Object, Ages], list[Any]] | None = None,
        conditions: Callable[[Object], Sequence[Object]] | None = None,
    ) -> None:
        self.columns: Final = columns
        self.conditions: Final = conditions
        self._row = row

    def cells(self, obj: Object, ages: Ages) -> list[Any]:
        if self._row is not None:
            return self._row(obj, ages)
        return [ages.of(obj) if column.cell is None else column.cell(obj) for column in self.columns]


OTHERS: Final = Layout(
    NAME, Column("Created At", "When the object was created.", field("metadata.creationTimestamp", None), "date")
)
"""The layout of kinds without one of their own."""
