"""Sets of fields, as managedFields writes them; set operations on them decide the ownership of fields.

A set is the JSON of FieldsV1 itself: `f:name` is a field or a key of a map, `k:{...}` an item of a list identified by
keys, `v:...` an item of a set. The value of a path element holds the members below it; an empty value, or a `.` in it,
makes the element itself a member. The outermost `{}` is therefore the empty set, and a nested one is a leaf. Sets are
never changed, so that they can share parts.

Upstream: structured-merge-diff/v6/fieldpath/set.go, serialize.go; path.go and element.go for the texts.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

FieldSet = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {}
"""The value of a path element that is a member of the set without members below it."""


def is_well_formed(value: Any) -> bool:
    """Returns whether a JSON value is a set, that is, consists of objects only."""
    pending = [value]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            return False
        pending.extend(node.values())
    return True


def is_member(node: FieldSet) -> bool:
    """Returns whether the path element above the node is a member of the set."""
    return not node or SELF in node


def node(member: bool, below: FieldSet) -> FieldSet | None:
    """Returns the value of a path element; None if neither the element nor anything below it is a member."""
    if not below:
        return LEAF if member else None
    return {SELF: LEAF, **below} if member else below


def below(node: FieldSet) -> FieldSet:
    """Returns the set of the members below a path element."""
    return {name: value for name, value in node.items() if name != SELF} if SELF in node else node


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    if not first or not second:
        return first or second
    result = dict(first)
    for name, theirs in second.items():
        ours = first.get(name)
        if ours is None:
            result[name] = theirs
        elif ours is not theirs:
            both = node(is_member(ours) or is_member(theirs), union(below(ours), below(theirs)))
            result[name] = LEAF if both is None else both
    return result


def difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """Returns the members of the first set that are not in the second; a field and its subfields count separately."""
    if not first or not second:
        return first
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        remainder = (
            ours
            if theirs is None
            else node(is_member(ours) and not is_member(theirs), difference(below(ours), below(theirs)))
        )
        if remainder is not None:
            result[name] = remainder
    return result


def without(first: FieldSet, second: FieldSet) -> FieldSet:
    """Returns the first set without the fields of the second and all their subfields (Set.RecursiveDifference)."""
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        if theirs is None:
            result[name] = ours
        elif not is_member(theirs):
            remainder = node(is_member(ours), without(below(ours), below(theirs)))
            if remainder is not None:
                result[name] = remainder
    return result


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        if theirs is not None:
            both = node(is_member(ours) and is_member(theirs), intersection(below(ours), below(theirs)))
            if both is not None:
                result[name] = both
    return result


def of_paths(*paths: tuple[str, ...]) -> FieldSet:
    result: FieldSet = LEAF
    for path in paths:
        nested: FieldSet = LEAF
        for name in reversed(path):
            nested = {f"f:{name}": nested}
        result = union(result, nested)
    return result


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yields the members as `.spec.containers[name="c"].image`, those of a level before those below it."""
    elements = sorted(name for name in fields if name != SELF)
    for name in elements:
        if is_member(fields[name]):
            yield prefix + element_text(name)
    for name in elements:
        yield from paths(below(fields[name]), prefix + element_text(name))


def element_text(name: str) -> str:
    """Returns a path element in a readable form."""
    kind, _, value = name.partition(":")
    if kind == "k":
        keys = orjson.loads(value)
        return "[" + ",".join(f"{key}={orjson.dumps(keys[key]).decode()}" for key in sorted(keys)) + "]"
    if kind == "v":
        return f"[={value}]"
    return f"[{value}]" if kind == "i" else f".{value}"
