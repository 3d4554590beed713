"""The table of nodes: what it can be sorted by, and the heads of its columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final
from urllib.parse import urlencode

from api.ui.wording import share
from extender.answers.cluster_map import NodeOnMap, natural

DEFAULT: Final = "zone"
"""The order of the map: by zone, then by name."""

_Key = Callable[[NodeOnMap], int] | Callable[[NodeOnMap], str] | Callable[[NodeOnMap], tuple[tuple[int, str], ...]]


@final
@dataclass(frozen=True, slots=True)
class _Column:
    words: str
    key: _Key
    is_number: bool = True


_COLUMNS: Final[Mapping[str, _Column]] = {
    "name": _Column("node", lambda node: natural(node.name), is_number=False),
    "zone": _Column("zone", lambda node: node.zone, is_number=False),
    "pods": _Column("pods", lambda node: node.num_pods),
    "pods-free": _Column("pods free", lambda node: node.max_pods - node.num_pods),
    "cpu": _Column("cpu promised", lambda node: share(node.requested_cpu, node.cpu)),
    "cpu-free": _Column("cpu free", lambda node: node.cpu - node.requested_cpu),
    "memory": _Column("memory promised", lambda node: share(node.requested_memory, node.memory)),
    "memory-free": _Column("memory free", lambda node: node.memory - node.requested_memory),
}


class OrderError(ValueError):
    """There is no such order; says which there are."""


@final
@dataclass(frozen=True, slots=True)
class Order:
    """By which column, and which way."""

    column: str = DEFAULT
    falls: bool = False

    @property
    def written(self) -> str:
        """As an address has it: `name`, or `-name` from the last to the first; empty for the usual order."""
        return "" if self == Order() else f"{'-' * self.falls}{self.column}"


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: a link to the table sorted by it, the other way round if it is already."""

    words: str
    href: str
    is_number: bool
    sorted: Literal["ascending", "descending", ""]


def order(written: str) -> Order:
    """What an address asks for; empty is the usual order. OrderError if there is no such column."""
    column = written.removeprefix("-") or DEFAULT
    if column not in _COLUMNS or written == "-":
        raise OrderError(f"Nodes are sorted by {', '.join(_COLUMNS)}, or by one of these with a - before it, from the last to the first.")
    return Order(column, written.startswith("-"))


def in_order(nodes: Sequence[NodeOnMap], by: Order) -> list[NodeOnMap]:
    """The nodes sorted; those that are alike stay as they stand in the map."""
    return sorted(nodes, key=_COLUMNS[by.column].key, reverse=by.falls)


def heads(by: Order, kept: Mapping[str, str]) -> list[Head]:
    """The heads of all columns that the nodes can be sorted by. Numbers begin with the largest.

    Arguments:
        kept: what the address asks for besides the order.
    """
    found = []
    for name, column in _COLUMNS.items():
        is_it = name == by.column
        other = Order(name, not by.falls if is_it else column.is_number)
        asked = urlencode({key: value for key, value in {**kept, "sort": other.written}.items() if value})
        way: Literal["ascending", "descending", ""] = ("descending" if by.falls else "ascending") if is_it else ""
        found.append(Head(column.words, f"/ui/nodes?{asked}" if asked else "/ui/nodes", column.is_number, way))
    return found
