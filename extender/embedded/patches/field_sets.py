"""Sets of fields, as managedFields writes them: who owns what is decided by adding and taking away such sets.

A set is the JSON of FieldsV1 itself: `f:name` is a field or a key of a map, `k:{...}` an item of a list told apart by keys, `v:...` an item
of a set. What lies below a path element says which fields below it belong to the set; an empty value, or a `.` in it, says that the element
itself does. The outermost `{}` is therefore the empty set, and a nested one is a leaf. No set is ever changed: what is unchanged is shared.

Upstream: structured-merge-diff/v6/fieldpath/set.go, serialize.go; path.go and element.go for the texts (v1.36.2).
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

FieldSet = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {}
"""What stands below a path element that belongs to a set and has nothing below it that does."""


def is_well_formed(value: Any) -> bool:
    """Whether a JSON value is a set: objects all the way down."""
    return isinstance(value, dict) and all(map(is_well_formed, value.values()))


def is_member(node: FieldSet) -> bool:
    """True if the path element above belongs to the set itself."""
    return not node or SELF in node


def node(member: bool, below: FieldSet) -> FieldSet | None:
    """What stands below a path element; None if neither it nor anything below it belongs to the set."""
    if not below:
        return LEAF if member else None
    return {SELF: LEAF, **below} if member else below


def below(node: FieldSet) -> FieldSet:
    """The set of what lies below a path element."""
    return {name: value for name, value in node.items() if name != SELF} if SELF in node else node


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    """What belongs to either."""
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
    """What belongs to the first and not to the second. A field stays when only what is below it goes, and the other way round."""
    if not first or not second:
        return first
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        left = ours if theirs is None else node(is_member(ours) and not is_member(theirs), difference(below(ours), below(theirs)))
        if left is not None:
            result[name] = left
    return result


def without(first: FieldSet, second: FieldSet) -> FieldSet:
    """The first without the fields of the second and all that lies below them. Upstream: Set.RecursiveDifference."""
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        if theirs is None:
            result[name] = ours
        elif not is_member(theirs):
            left = node(is_member(ours), without(below(ours), below(theirs)))
            if left is not None:
                result[name] = left
    return result


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    """What belongs to both."""
    result = {}
    for name, ours in first.items():
        theirs = second.get(name)
        if theirs is not None:
            both = node(is_member(ours) and is_member(theirs), intersection(below(ours), below(theirs)))
            if both is not None:
                result[name] = both
    return result


def of_paths(*paths: tuple[str, ...]) -> FieldSet:
    """The set of these paths of named fields."""
    result: FieldSet = LEAF
    for path in paths:
        nested: FieldSet = LEAF
        for name in reversed(path):
            nested = {f"f:{name}": nested}
        result = union(result, nested)
    return result


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The members as texts such as `.spec.containers[name="c"].image`, in upstream's order: those of a level before those below it."""
    elements = sorted(name for name in fields if name != SELF)
    for name in elements:
        if is_member(fields[name]):
            yield prefix + element_text(name)
    for name in elements:
        yield from paths(below(fields[name]), prefix + element_text(name))


def element_text(name: str) -> str:
    """A path element as people read it."""
    kind, _, value = name.partition(":")
    if kind == "k":
        keys = orjson.loads(value)
        return "[" + ",".join(f"{key}={orjson.dumps(keys[key]).decode()}" for key in sorted(keys)) + "]"
    if kind == "v":
        return f"[={value}]"
    return f"[{value}]" if kind == "i" else f".{value}"
