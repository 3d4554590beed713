"""Compares values of a type, describes them as sets of fields, merges them, and removes fields from them.

A scalar, an atomic list, map or struct is one field. Items of other lists are identified by their keys or, in a set, by
their value.

Upstream: structured-merge-diff/v6/typed, compare.go, tofieldset.go, merge.go, remove.go, helpers.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import orjson

from extender.values.golang.schema import GoType, ListOf, MapOf, Scalar, Struct
from reprieve.cluster.patches import field_sets
from reprieve.cluster.patches.field_sets import LEAF, SELF, FieldSet

ABSENT: Final = object()
"""Represents a field that is absent; None is null."""


@final
class UnkeyedItemError(ValueError):
    """An item of a list has no identity."""


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields that only the new value has, those that differ, and those that only the old value has."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return field_sets.union(self.modified, self.added)


def is_leaf(kind: GoType) -> bool:
    if isinstance(kind, (Struct, MapOf)):
        return kind.atomic
    return not isinstance(kind, ListOf) or kind.list_type == "atomic"


def type_below(kind: GoType, name: str) -> GoType | None:
    """Returns the type of a field of a struct or of the values of a map; None if the struct has no such field."""
    if isinstance(kind, Struct):
        field = kind.field(name)
        return None if field is None else field.type
    return kind.value if isinstance(kind, MapOf) else None


def item_element(kind: ListOf, item: Any) -> str:
    """Returns the path element of an item of a list that is not atomic.

    Raises UnkeyedItemError if it lacks a key that has no default, or is of the wrong type; the text is upstream's.
    """
    if kind.list_type == "set":
        if isinstance(item, dict):
            raise UnkeyedItemError("associative list without keys has an element that's a map type")
        if item is None:
            raise UnkeyedItemError("associative list without keys has an element that's an explicit null")
        return f"v:{orjson.dumps(item).decode()}"
    if not isinstance(item, dict):
        shape = "a null element" if item is None else "non-map elements"
        raise UnkeyedItemError(f"associative list with keys may not have {shape}")
    keys = {}
    for name in sorted(kind.keys):
        value = item.get(name, ABSENT)
        if value is ABSENT:
            value = _default(kind, name)
        keys[name] = value
    return f"k:{orjson.dumps(keys).decode()}"


def _default(kind: ListOf, name: str) -> Any:
    default = kind.item.fields[name].default if isinstance(kind.item, Struct) and name in kind.item.fields else None
    if default is None:
        raise UnkeyedItemError(
            f'associative list with keys has an element that omits key field "{name}" (and doesn\'t have default value)'
        )
    return default


def items_by_element(kind: ListOf, items: Sequence[Any] | None) -> dict[str, list[Any]]:
    """Returns the items of a list by path element, in order; several where items have the same identity."""
    result: dict[str, list[Any]] = {}
    for item in items or ():
        result.setdefault(item_element(kind, item), []).append(item)
    return result


def compare(kind: GoType, old: Any, new: Any) -> Comparison:
    added, modified, removed = _compare(kind, old, new)
    return Comparison(added or LEAF, modified or LEAF, removed or LEAF)


_Nodes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
_Parts = tuple[FieldSet, FieldSet, FieldSet]
_SAME: Final[_Nodes] = (None, None, None)
_MODIFIED: Final[_Nodes] = (None, LEAF, None)


def _compare(kind: GoType, old: Any, new: Any) -> _Nodes:
    if old is ABSENT:
        return everything(kind, new), None, None
    if new is ABSENT:
        return None, None, everything(kind, old)
    if old == new:
        return _SAME
    if is_leaf(kind) or not (old or new):
        return _MODIFIED
    if isinstance(kind, ListOf):
        return _compare_lists(kind, old, new)
    return _compare_maps(kind, old or {}, new or {})


def _compare_maps(kind: GoType, old: Mapping[str, Any], new: Mapping[str, Any]) -> _Nodes:
    parts: _Parts = ({}, {}, {})
    for name, value in new.items():
        below = type_below(kind, name)
        if below is None:
            continue
        former = old.get(name, ABSENT)
        if former is ABSENT:
            parts[0][f"f:{name}"] = everything(below, value)
        elif former != value:
            _put(parts, f"f:{name}", _compare(below, former, value))
    for name in old.keys() - new.keys():
        below = type_below(kind, name)
        if below is not None:
            parts[2][f"f:{name}"] = everything(below, old[name])
    return parts[0] or None, parts[1] or None, parts[2] or None


def _put(parts: _Parts, element: str, nodes: _Nodes) -> None:
    for part, below in zip(parts, nodes, strict=True):
        if below is not None:
            part[element] = below


def _compare_lists(kind: ListOf, old: Sequence[Any] | None, new: Sequence[Any] | None) -> _Nodes:
    before, after = items_by_element(kind, old), items_by_element(kind, new)
    parts: _Parts = ({}, {}, {})
    for element in {**before, **after}:
        olds, news = before.get(element, ()), after.get(element, ())
        if len(olds) < 2 and len(news) < 2:
            nodes = _compare(kind.item, olds[0] if olds else ABSENT, news[0] if news else ABSENT)
        elif len(olds) > 1 and len(news) > 1:
            # Items of the same identity are one field together.
            nodes = _SAME if olds == news else _MODIFIED
        elif len(news) < 2:
            nodes = everything(kind.item, news[0]) if news else None, None, LEAF
        else:
            nodes = LEAF, None, everything(kind.item, olds[0]) if olds else None
        _put(parts, element, nodes)
    return parts[0] or None, parts[1] or None, parts[2] or None


def everything(kind: GoType, value: Any) -> FieldSet:
    """Returns the value of the path element for a value that is added or removed with all in it."""
    if not value or is_leaf(kind):
        return LEAF
    result: FieldSet = {SELF: LEAF}
    if isinstance(kind, Struct):
        for name, below in value.items():
            field = kind.field(name)
            if field is not None:
                result[f"f:{name}"] = everything(field.type, below)
    elif isinstance(kind, MapOf):
        for name, below in value.items():
            result[f"f:{name}"] = everything(kind.value, below)
    elif isinstance(kind, ListOf):
        for element, items in items_by_element(kind, value).items():
            result[element] = everything(kind.item, items[0]) if len(items) == 1 else LEAF
    return result


def fields_of(kind: GoType, value: Any) -> FieldSet:
    """Returns the leaves, list items and map keys that a value sets, without fields that only hold others."""
    if isinstance(kind, ListOf):
        nodes = {}
        for element, items in items_by_element(kind, value).items():
            nodes[element] = _fields_below(kind.item, items[0], True) if len(items) == 1 else LEAF
        return {element: node for element, node in nodes.items() if node is not None}
    nodes = {}
    for name, below in (value or {}).items():
        type_ = type_below(kind, name)
        if type_ is not None:
            nodes[f"f:{name}"] = _fields_below(type_, below, isinstance(kind, MapOf))
    return {element: node for element, node in nodes.items() if node is not None}


def _fields_below(kind: GoType, value: Any, is_own: bool) -> FieldSet | None:
    if value is None or value == {} or is_leaf(kind):
        return LEAF
    return field_sets.node(is_own, fields_of(kind, value))


def with_named_fields(kind: GoType | None, fields: FieldSet) -> FieldSet:
    """Returns the set with the fields of structs that hold any of its members (Set.EnsureNamedFieldsAreMembers)."""
    result = {}
    for element, node in fields.items():
        if element == SELF:
            continue
        name, is_field = element[2:], element.startswith("f:")
        type_ = (
            type_below(kind, name) if is_field and kind is not None else kind.item if isinstance(kind, ListOf) else None
        )
        is_named = is_field and isinstance(kind, Struct) and name in kind.fields
        filled = field_sets.node(field_sets.is_member(node) or is_named, with_named_fields(type_, node))
        if filled is not None:
            result[element] = filled
    return result


def merge(kind: GoType, live: Any, applied: Any) -> Any:
    """Returns the live value merged with the applied one. Neither is changed; parts are shared.

    Items of the live list alone keep their place; items of both come in the order of the applied list.
    """
    if applied is ABSENT:
        return live
    if live is ABSENT or is_leaf(kind) or not (live or applied):
        return applied
    if isinstance(kind, ListOf):
        return _merge_lists(kind, live or [], applied or [])
    live, applied = live or {}, applied or {}
    result = {}
    for name in {**live, **applied}:
        below = type_below(kind, name)
        if below is not None:
            result[name] = merge(below, live.get(name, ABSENT), applied.get(name, ABSENT))
    return result


def _merge_lists(kind: ListOf, live: Sequence[Any], applied: Sequence[Any]) -> list[Any]:
    theirs = items_by_element(kind, live)
    ours = {item_element(kind, item): item for item in applied}
    # An applied item replaces all live items of its identity.
    mergeable = {element: items[0] for element, items in theirs.items() if len(items) == 1}
    result = []
    followers = _followers(kind, live, [element for element in ours if element in theirs])
    result += followers.get("", [])
    for element, item in ours.items():
        result.append(merge(kind.item, mergeable.get(element, ABSENT), item))
        result += followers.get(element, [])
    return result


def _followers(kind: ListOf, live: Sequence[Any], shared: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the items of the live list alone, by the shared item that they follow; "" for those before all of them.

    A shared item that stands too early in the live list, compared with the applied one, has no followers.
    """
    followers: dict[str, list[Any]] = {}
    elements, leader, waiting = set(shared), "", iter(shared)
    awaited = next(waiting, None)
    for item in live:
        element = item_element(kind, item)
        if element not in elements:
            followers.setdefault(leader, []).append(item)
        elif element == awaited:
            leader, awaited = element, next(waiting, None)
    return followers


def remove(kind: GoType | None, value: Any, fields: FieldSet) -> Any:
    """Returns the value without these fields; None if it has no others."""
    if kind is None or value is None or isinstance(kind, Scalar):
        return value
    if not value or is_leaf(kind):
        return None
    if isinstance(kind, ListOf):
        items: list[Any] = []
        for item in value:
            node = fields.get(item_element(kind, item))
            if node is None:
                items.append(item)
            elif not field_sets.is_member(node):
                items.append(remove(kind.item, item, node))
        return items or None
    members: dict[str, Any] = {}
    for name, below in value.items():
        node = fields.get(f"f:{name}")
        if node is None:
            members[name] = below
        elif not field_sets.is_member(node):
            members[name] = remove(type_below(kind, name), below, node)
    return members or None
