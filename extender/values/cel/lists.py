"""The functions of lists that Kubernetes adds.

What cannot be returned has no overload here: sums, minima and maxima of durations, timestamps and unsigned integers.

Upstream: apiserver/pkg/cel/library, lists.go (v1.36.2).
"""

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)

from extender.values.cel.functions import BOOL, BYTES, DOUBLE, INT, STRING, CelType, Function, type_name
from extender.values.golang.int64 import MAX_INT64, MIN_INT64

_ANY: Final = CelType(cel.Type.DYN, cel.Type.DYN, object)
_NO_OVERLOAD: Final = "no such overload"
_ORDERED: Final = (bool, int, float, str, bytearray, timedelta, datetime)


def _list_of(element: Any) -> CelType:
    return CelType(cel.Type.List(element), cel.Type.LIST, list)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _before(one: Any, other: Any) -> bool:
    """Returns whether the one is less than the other. Numbers of different types are comparable."""
    if type(one) is not type(other) and not (_is_number(one) and _is_number(other)):
        raise TypeError(_NO_OVERLOAD)
    if not isinstance(one, _ORDERED) or (isinstance(one, bytearray) and type_name(bytes(one)) is not None):
        raise TypeError(_NO_OVERLOAD)
    return bool(one < other)


def _equal(one: Any, other: Any) -> bool:
    return (isinstance(one, bool) == isinstance(other, bool)) and bool(one == other)


def _is_sorted(items: list[Any]) -> bool:
    return not any(_before(later, earlier) for earlier, later in itertools.pairwise(items))


def _sum(items: list[Any]) -> int | float:
    total = 0
    for item in items:
        if not _is_number(item):
            raise TypeError(_NO_OVERLOAD)
        total += item
        if isinstance(total, int) and not MIN_INT64 <= total <= MAX_INT64:
            raise ValueError("integer overflow")
    return total


def _extreme(name: str, is_better: Callable[[Any, Any], bool]) -> Callable[[list[Any]], object]:
    def call(items: list[Any]) -> object:
        if not items:
            raise ValueError(f"{name} called on empty list")
        best, *others = items
        for item in others:
            if is_better(item, best):
                best = item
        return bytes(best) if isinstance(best, bytearray) else best

    return call


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if _equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if _equal(items[place], wanted)), -1)


_RETURNED: Final = {"int": INT, "double": DOUBLE, "bool": BOOL, "string": STRING, "bytes": BYTES}
_COMPARABLE: Final = {
    **{name: kind.declared for name, kind in _RETURNED.items()},
    "uint": cel.Type.UINT,
    "duration": cel.Type.DURATION,
    "timestamp": cel.Type.TIMESTAMP,
}
_MIN, _MAX = _extreme("min", _before), _extreme("max", lambda one, other: _before(other, one))

FUNCTIONS: Final = (
    *(
        Function(f"list_{name}_is_sorted_bool", "isSorted", (_list_of(kind),), BOOL, _is_sorted)
        for name, kind in _COMPARABLE.items()
    ),
    *(
        Function(f"list_{name}_sum_{name}", "sum", (_list_of(_RETURNED[name].declared),), _RETURNED[name], _sum)
        for name in ("int", "double")
    ),
    *(
        Function(f"list_{name}_min_{name}", "min", (_list_of(kind.declared),), kind, _MIN)
        for name, kind in _RETURNED.items()
    ),
    *(
        Function(f"list_{name}_max_{name}", "max", (_list_of(kind.declared),), kind, _MAX)
        for name, kind in _RETURNED.items()
    ),
    Function("list_a_index_of_int", "indexOf", (_list_of(cel.Type.DYN), _ANY), INT, _index_of),
    Function("list_a_last_index_of_int", "lastIndexOf", (_list_of(cel.Type.DYN), _ANY), INT, _last_index_of),
)
