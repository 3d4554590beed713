"""Laying an applied value over a live one, and taking fields out of a value.

Upstream: structured-merge-diff/v6/typed/merge.go, remove.go (v1.36.2).
"""

from collections.abc import Sequence
from typing import Any

from extender.embedded import comparing, field_sets
from extender.embedded.comparing import ABSENT
from extender.embedded.field_sets import FieldSet
from extender.golang.schema import GoType, ListOf, Scalar


def merge(kind: GoType, live: Any, applied: Any) -> Any:
    """The live value with what was applied laid over it; neither is changed, parts are shared.

    Lists keep what only the live value has, where it stood; what both have comes in the order of the applied value.
    """
    if applied is ABSENT:
        return live
    if live is ABSENT or comparing.is_leaf(kind) or not (live or applied):
        return applied
    if isinstance(kind, ListOf):
        return _merge_lists(kind, live or [], applied or [])
    live, applied = live or {}, applied or {}
    result = {}
    for name in {**live, **applied}:
        below = comparing.type_below(kind, name)
        if below is not None:
            result[name] = merge(below, live.get(name, ABSENT), applied.get(name, ABSENT))
    return result


def _merge_lists(kind: ListOf, live: Sequence[Any], applied: Sequence[Any]) -> list[Any]:
    theirs = comparing.items_by_element(kind, live)
    ours = {comparing.item_element(kind, item): item for item in applied}
    # Live items that cannot be told apart are replaced by an applied one together.
    mergeable = {element: items[0] for element, items in theirs.items() if len(items) == 1}
    result = []
    followers = _followers(kind, live, [element for element in ours if element in theirs])
    result += followers.get("", [])
    for element, item in ours.items():
        result.append(merge(kind.item, mergeable.get(element, ABSENT), item))
        result += followers.get(element, [])
    return result


def _followers(kind: ListOf, live: Sequence[Any], shared: Sequence[str]) -> dict[str, list[Any]]:
    """The items that only the live list has, by the item both have that they stay behind; "": they stay in front.

    Shared items that stand too early in the live list, in the order of the applied one, hold nobody behind them.
    """
    followers: dict[str, list[Any]] = {}
    known, leader, waiting = set(shared), "", iter(shared)
    awaited = next(waiting, None)
    for item in live:
        element = comparing.item_element(kind, item)
        if element not in known:
            followers.setdefault(leader, []).append(item)
        elif element == awaited:
            leader, awaited = element, next(waiting, None)
    return followers


def remove(kind: GoType | None, value: Any, fields: FieldSet) -> Any:
    """The value without these fields; None if nothing is left of it."""
    if kind is None or value is None or isinstance(kind, Scalar):
        return value
    if not value or comparing.is_leaf(kind):
        return None
    if isinstance(kind, ListOf):
        kept: list[Any] = []
        for item in value:
            node = fields.get(comparing.item_element(kind, item))
            if node is None:
                kept.append(item)
            elif not field_sets.is_member(node):
                kept.append(remove(kind.item, item, node))
        return kept or None
    left: dict[str, Any] = {}
    for name, below in value.items():
        node = fields.get(f"f:{name}")
        if node is None:
            left[name] = below
        elif not field_sets.is_member(node):
            left[name] = remove(comparing.type_below(kind, name), below, node)
    return left or None
