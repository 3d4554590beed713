"""The table of nodes: the orders in which it can be sorted, and the heads of its columns."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, final
from urllib.parse import urlencode

from api.ui.resources import Resource, resource_words, resources_of, usage
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


_NAMES: Final[Mapping[str, _Column]] = {
    "name": _Column("node", lambda node: natural(node.name), is_number=False),
    "zone": _Column("zone", lambda node: node.zone, is_number=False),
}


def columns_for(nodes: Iterable[NodeOnMap]) -> dict[str, _Column]:
    """Returns the columns of the table: name, zone, and of each resource what is requested and what is free."""
    found = dict(_NAMES)
    for resource in resources_of(nodes):
        words = resource_words(resource)
        found[resource] = _Column("pods" if resource == "pods" else f"{words} requested", partial(_share, resource))
        found[f"{resource}-free"] = _Column(f"{words} free", partial(_free, resource))
    return found


def _share(resource: Resource, node: NodeOnMap) -> int:
    requested, whole = usage(node, resource)
    if resource == "pods":
        return requested
    return share(requested, whole) if whole else -1


def _free(resource: Resource, node: NodeOnMap) -> int:
    requested, whole = usage(node, resource)
    return whole - requested


class OrderError(ValueError):
    """There is no such order; the message lists the orders."""


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A column to sort by, and the direction."""

    column: str = DEFAULT
    is_descending: bool = False

    @property
    def written(self) -> str:
        """The order as in an address: `name`, or `-name` for descending; empty for the default."""
        return "" if self == Order() else f"{'-' * self.is_descending}{self.column}"


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: a link to the table sorted by it, in the other direction if it is sorted by it already."""

    words: str
    href: str
    is_number: bool
    sorted: Literal["ascending", "descending", ""]


def order(written: str, columns: Collection[str]) -> Order:
    """Returns the order that an address asks for. OrderError if there is no such column."""
    column = written.removeprefix("-") or DEFAULT
    if column not in columns or written == "-":
        raise OrderError(f"Nodes can be sorted by {', '.join(columns)}; a - before the name reverses the order.")
    return Order(column, written.startswith("-"))


def in_order(nodes: Sequence[NodeOnMap], by: Order, columns: Mapping[str, _Column]) -> list[NodeOnMap]:
    """Returns the nodes sorted; equal ones stay in the order of the map."""
    return sorted(nodes, key=columns[by.column].key, reverse=by.is_descending)


def heads(by: Order, columns: Mapping[str, _Column], kept: Mapping[str, str]) -> list[Head]:
    """Returns the heads of all columns that the nodes can be sorted by. Numbers begin with the largest.

    Arguments:
        kept: the other parameters of the address.
    """
    found = []
    for name, column in columns.items():
        is_it = name == by.column
        other = Order(name, not by.is_descending if is_it else column.is_number)
        asked = urlencode({key: value for key, value in {**kept, "sort": other.written}.items() if value})
        way: Literal["ascending", "descending", ""] = (
            ("descending" if by.is_descending else "ascending") if is_it else ""
        )
        found.append(Head(column.words, f"/ui/nodes?{asked}" if asked else "/ui/nodes", column.is_number, way))
    return found
