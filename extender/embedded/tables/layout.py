"""What a table of one kind looks like: its columns, and how an object becomes a row.

Upstream: apimachinery/pkg/apis/meta/v1/types.go, TableColumnDefinition, TableRow (v1.36.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.embedded.resources import Object
from extender.embedded.tables.ages import Ages


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
