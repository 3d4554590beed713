"""Tables of objects that are also found by something they say, so that nobody looks through a whole table for a few of its objects."""

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, final, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
G = TypeVar("G", bound=Hashable)
D = TypeVar("D")

_NOBODY: Final[Mapping[object, object]] = MappingProxyType({})


@final
class GroupedTable(MutableMapping[K, V], Generic[K, V, G]):
    """Key -> object, in order of arrival, as a dict; and group -> the objects that belong to it.

    Objects are frozen, so that one changes its group only by being replaced.
    """

    __slots__ = ("_group_of", "_groups", "_items")

    def __init__(self, group_of: Callable[[V], G]) -> None:
        self._group_of = group_of
        self._items: dict[K, V] = {}
        self._groups: dict[G, dict[K, V]] = {}

    def copy(self) -> "GroupedTable[K, V, G]":
        """The same objects in the same order, to be changed by itself."""
        other: GroupedTable[K, V, G] = GroupedTable(self._group_of)
        other._items = self._items.copy()
        other._groups = {group: members.copy() for group, members in self._groups.items()}
        return other

    def group(self, group: G) -> Mapping[K, V]:
        """The objects that say they belong to this group; a view, in order of arrival there."""
        members = self._groups.get(group)
        return members if members is not None else _NOBODY  # type: ignore[return-value]

    def groups(self) -> Mapping[G, Mapping[K, V]]:
        """Every group with its objects; a view."""
        return self._groups

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...
    def get(self, key: K, default: V | D | None = None, /) -> V | D | None:
        """The object, or `default`. The inherited way is correct, too, but five times as long."""
        return self._items.get(key, default)

    def __setitem__(self, key: K, value: V) -> None:
        old = self._items.get(key)
        group = self._group_of(value)
        if old is not None and self._group_of(old) != group:
            self._leave(key, old)
        self._items[key] = value
        self._groups.setdefault(group, {})[key] = value

    def __delitem__(self, key: K) -> None:
        self._leave(key, self._items.pop(key))

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<GroupedTable of {len(self._items)} in {len(self._groups)} groups>"

    def _leave(self, key: K, value: V) -> None:
        group = self._group_of(value)
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]
