"""Structs and lists between JSON and values, strictly.

`struct_of(cls, go_type)` makes the kind of a dataclass whose fields say in their metadata (`wire(...)`) how they look in JSON, so that a
default stands beside the name and the type of what it fills.

Upstream: sigs.k8s.io/json, UnmarshalStrict; Go, encoding/json, Marshal.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from extender.config.json_text import Json, Object
from extender.config.kinds import Kind, Reading, WireError, named


class WrittenEmpty(list[Any]):
    """A list that was written, though empty: Go tells it from one that is not there, in error texts and in what it writes."""


class ListOf(Kind):
    """A slice. `make` builds it of the items that were read."""

    def __init__(self, item: Kind, make: Callable[[Iterable[Any]], Any] = tuple, zero: object = ()) -> None:
        super().__init__(f"[]{item.go_type}", zero)
        self._item = item
        self._make = make

    def read(self, value: Json, reading: Reading) -> Any:
        """Every item; null items are zero values."""
        if not isinstance(value, list):
            reading.does_not_fit(named(value), self.go_type)
            return self.zero
        return self._make(self._read_items(value, reading))

    def write(self, value: Iterable[Any]) -> Any:
        """A list."""
        return [self._item.write(item) for item in value]

    def _read_items(self, items: list[Json], reading: Reading) -> Iterator[Any]:
        for index, item in enumerate(items):
            with reading.item(index):
                yield self._item.read(item, reading) if item is not None or self._item.reads_null else self._item.zero


class ListOrNull(ListOf):
    """A slice that is always written: as null if it was not there. Make it with `written_list`."""

    def write(self, value: Iterable[Any]) -> Any:
        """A list, or None."""
        written = super().write(value)
        return written if written or isinstance(value, WrittenEmpty) else None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct: its name in JSON, the attribute that holds it, and when it is left out of what is written.

    Attributes:
        zero_is_default: a zero value is as if the member were not there.
        omit_empty: zero, empty and absent values are not written.
        omit_none: absent values are not written, though zero ones are.
    """

    name: str
    attribute: str
    kind: Kind
    zero_is_default: bool = False
    omit_empty: bool = False
    omit_none: bool = False


class Struct(Kind):
    """A struct. `make` builds the value of the members that were there, `get` takes one out again."""

    def __init__(self, go_type: str, members: Iterable[Member], make: Callable[..., Any], get: Callable[[Any, str], Any] = getattr) -> None:
        super().__init__(go_type, None)
        self.members = tuple(members)
        self._by_name = {member.name: member for member in self.members}
        self._name = go_type.rpartition(".")[2]
        self._make = make
        self._get = get
        self.zero = make()

    def read(self, value: Json, reading: Reading) -> Any:
        """Strictly: names as they are spelled, each once."""
        if not isinstance(value, Object):
            reading.does_not_fit(named(value), self.go_type)
            return self.zero
        seen: set[str] = set()
        found: dict[str, Any] = {}
        for name, item in value.members:
            member = self._by_name.get(name)
            if member is None:
                reading.forbid("unknown", name)
                continue
            if name in seen:
                reading.forbid("duplicate", name)
            seen.add(name)
            with reading.member(self._name, name):
                self._read_member(member, item, reading, found)
        return self._make(**found)

    def write(self, value: Any) -> dict[str, Any]:
        """A dict with the members that Go writes."""
        written: dict[str, Any] = {}
        for member in self.members:
            part = self._get(value, member.attribute)
            if (member.omit_none and part is None) or (member.omit_empty and part == member.kind.zero):
                continue
            written[member.name] = None if part is None else member.kind.write(part)
        return written

    def _read_member(self, member: Member, item: Json, reading: Reading, found: dict[str, Any]) -> None:
        if item is None and not member.kind.reads_null:
            return
        part = member.kind.read(item, reading)
        if member.zero_is_default and part == member.kind.zero:
            found.pop(member.attribute, None)
        else:
            found[member.attribute] = part


def wire(
    kind: Kind, *, name: str = "", zero_is_default: bool = False, omit_empty: bool = False, omit_none: bool = False
) -> Mapping[str, Any]:
    """Metadata of a dataclass field; the name in JSON is the attribute's in camelCase if not given."""
    return {"kind": kind, "name": name, "zero_is_default": zero_is_default, "omit_empty": omit_empty, "omit_none": omit_none}


def struct_of(cls: Any, go_type: str) -> Struct:
    """The kind of a dataclass: its fields with metadata from `wire`, in order."""
    return Struct(go_type, members_of(cls), cls)


def members_of(cls: Any) -> list[Member]:
    """The members that a dataclass declares."""
    members = []
    for declared in dataclasses.fields(cls):
        options = dict(declared.metadata)
        if options:
            name = options.pop("name") or _camel(declared.name)
            members.append(Member(name, declared.name, **options))
    return members


def read(kind: Struct, value: Json) -> tuple[Any, list[str]]:
    """The value, and what is forbidden in it.

    Raises:
        WireError: something has the wrong type.
    """
    reading = Reading()
    found = kind.read(value, reading)
    if reading.mismatch:
        raise WireError(reading.mismatch)
    return found, list(reading.forbidden)


def written_list(items: Iterable[Any]) -> list[Any]:
    """A list that remembers that it was written, should it be empty."""
    return list(items) or WrittenEmpty()


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(part.capitalize() for part in rest)
