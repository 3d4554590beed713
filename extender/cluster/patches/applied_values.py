"""Whether an applied object fits its type. Server-side apply asks this first.

Upstream: structured-merge-diff/v6/typed/validate.go, helpers.go (v1.36.2).
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from extender.cluster.patches import field_sets, typed_values
from extender.cluster.patches.typed_values import UnkeyedItemError
from extender.values.golang.quoting import printed, printed_type
from extender.values.golang.schema import GoType, Kind, ListOf, MapOf, Scalar, Struct

_NUMBERS: Final = frozenset((Kind.INT32, Kind.INT64, Kind.UINT32, Kind.FLOAT64))
_TEXTS: Final = frozenset((Kind.STRING, Kind.BYTES, Kind.DURATION))


def problem_text(kind: GoType, value: Any) -> str:
    """Returns what is wrong with a value, in one text; empty if nothing is."""
    problems = list(_problems(kind, value, ""))
    return (
        problems[0]
        if len(problems) < 2 and problems
        else "\n".join(["errors:", *(f"  {each}" for each in problems)] if problems else [])
    )


def _problems(kind: GoType, value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    if isinstance(kind, Scalar):
        yield from _scalar_problems(kind.kind, value, path)
    elif isinstance(kind, ListOf):
        yield from _list_problems(kind, value, path) if isinstance(value, list) else _wrong_shape("list", value, path)
    elif isinstance(kind, Struct | MapOf):
        yield from _map_problems(kind, value, path) if isinstance(value, dict) else _wrong_shape("map", value, path)


def _wrong_shape(expected: str, value: Any, path: str) -> list[str]:
    return [_placed(path, f"expected {expected}, got &{{{printed(value)}}}")]


def _scalar_problems(kind: Kind, value: Any, path: str) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in _NUMBERS:
        if not is_number:
            yield _placed(path, f"expected numeric (int or float), got {printed_type(value)}")
    elif kind in _TEXTS:
        if not isinstance(value, str):
            yield _placed(path, f"expected string, got &value.valueUnstructured{{Value:{printed(value)}}}")
    elif kind is Kind.BOOL:
        if not isinstance(value, bool):
            shown = json.dumps(value) if isinstance(value, str) else printed(value)
            yield _placed(path, f"expected boolean, got &value.valueUnstructured{{Value:{shown}}}")
    elif not isinstance(value, str | int | float):
        yield _placed(path, f"expected any scalar, got &{{{printed(value)}}}")


def _list_problems(kind: ListOf, items: list[Any], path: str) -> Iterator[str]:
    seen = set()
    for place, item in enumerate(items):
        element = f"i:{place}"
        if kind.list_type != "atomic":
            try:
                element = typed_values.item_element(kind, item)
            except UnkeyedItemError as error:
                yield _placed(path, f"element {place}: {error}")
                return
            if element in seen:
                yield _placed(path, f"duplicate entries for key {field_sets.element_text(element)}")
            seen.add(element)
        yield from _problems(kind.item, item, path + field_sets.element_text(element))


def _map_problems(kind: Struct | MapOf, value: dict[str, Any], path: str) -> Iterator[str]:
    for name, below in value.items():
        type_ = typed_values.type_below(kind, name)
        if type_ is None:
            # Upstream stops at the first unknown field of an object.
            yield _placed(f"{path}.{name}", "field not declared in schema")
            return
        yield from _problems(type_, below, f"{path}.{name}")


def _placed(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem
