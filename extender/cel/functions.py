"""The functions and types that Kubernetes adds to CEL for devices: quantities and semantic versions.

cel-expr-python can check values of custom types, but not carry them at run time. So every expression is checked against the types that
upstream declares, and then runs with bytes in their place, their carriers: b"quantity:" with nanos and b"semver:" with the version as text,
which are equal exactly if the values are. Functions take and return Python values; `CelType` tells how they are carried.

Beware: no function may take a list, a map or dyn. The library ends the process when it converts an optional in one of them to Python.

Upstream: apiserver/pkg/cel/library, quantity.go, semverlib.go (v1.36.2).
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from extender.cel.semver import Semver, SemverError
from extender.golang.int64 import MAX_INT64, MIN_INT64
from extender.objects.quantity import Quantity, QuantityError

NANO: Final = 10**9
_QUANTITY: Final = b"quantity:"
_SEMVER: Final = b"semver:"

Carrier = bytes
"""A quantity or a version in a running expression."""


class CelType(enum.Enum):
    """The type of a parameter or result: a CEL type, or a quantity (an int of nanos) or version (Semver) with a carrier."""

    STRING = str
    BOOL = bool
    INT = int
    DOUBLE = float
    QUANTITY = _QUANTITY
    SEMVER = _SEMVER


@final
@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a function, under upstream's id."""

    id: str
    name: str
    parameters: tuple[CelType, ...]
    result: CelType
    call: Callable[..., object]
    is_member: bool = True


def quantity_carrier(nanos: int) -> Carrier:
    """Returns the carrier of a quantity."""
    return _QUANTITY + str(nanos).encode()


def semver_carrier(version: Semver) -> Carrier:
    """Returns the carrier of a version."""
    return _SEMVER + str(version).encode()


def as_json(carrier: Carrier) -> object:
    """Returns a carrier in a form that `json.dumps` writes, as its `default`."""
    return {"": carrier.decode()}


def of_json(document: dict[str, Any]) -> object:
    """Returns a carrier that was written by `as_json`, or else the document itself; an `object_hook` of `json.loads`."""
    return document[""].encode() if document.keys() == {""} and isinstance(document[""], str) else document


def from_carrier(kind: CelType, value: Any) -> object | None:
    """Returns the Python value of an argument; None if it is not of this type."""
    if kind is CelType.QUANTITY:
        return int(value.removeprefix(_QUANTITY)) if value.startswith(_QUANTITY) else None
    if kind is CelType.SEMVER:
        return Semver.parse(value.removeprefix(_SEMVER).decode()) if value.startswith(_SEMVER) else None
    return value if type(value) is kind.value else None


def to_carrier(kind: CelType, value: Any) -> object:
    """Returns the CEL value of a Python value."""
    if kind is CelType.QUANTITY:
        return quantity_carrier(value)
    return semver_carrier(value) if kind is CelType.SEMVER else value


def _quantity(text: str) -> int:
    return Quantity.parse(text).nanos()


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _is_integer(nanos: int) -> bool:
    return nanos % NANO == 0 and MIN_INT64 <= nanos // NANO <= MAX_INT64


def _as_integer(nanos: int) -> int:
    if not _is_integer(nanos):
        raise ValueError("cannot convert value to integer")
    return nanos // NANO


def _as_float(nanos: int) -> float:
    try:
        return nanos / NANO
    except OverflowError:
        return math.copysign(math.inf, nanos)


def _compare(one: int, other: int) -> int:
    return (one > other) - (one < other)


def _semver(text: str, normalized: bool = False) -> Semver:
    return Semver.parse_normalized(text) if normalized else Semver.parse(text)


def _is_semver(text: str, normalized: bool = False) -> bool:
    try:
        _semver(text, normalized)
    except SemverError:
        return False
    return True


_Q, _V, _S, _B, _I = CelType.QUANTITY, CelType.SEMVER, CelType.STRING, CelType.BOOL, CelType.INT

FUNCTIONS: Final = (
    Function("string_to_quantity", "quantity", (_S,), _Q, _quantity, is_member=False),
    Function("is_quantity_string", "isQuantity", (_S,), _B, _is_quantity, is_member=False),
    Function("quantity_sign", "sign", (_Q,), _I, lambda nanos: _compare(nanos, 0), is_member=False),
    Function("quantity_is_greater_than", "isGreaterThan", (_Q, _Q), _B, lambda one, other: one > other),
    Function("quantity_is_less_than", "isLessThan", (_Q, _Q), _B, lambda one, other: one < other),
    Function("quantity_compare_to", "compareTo", (_Q, _Q), _I, _compare),
    Function("quantity_get_float", "asApproximateFloat", (_Q,), CelType.DOUBLE, _as_float),
    Function("quantity_get_int", "asInteger", (_Q,), _I, _as_integer),
    Function("quantity_is_integer", "isInteger", (_Q,), _B, _is_integer),
    Function("quantity_add", "add", (_Q, _Q), _Q, lambda one, other: one + other),
    Function("quantity_add_int", "add", (_Q, _I), _Q, lambda one, whole: one + whole * NANO),
    Function("quantity_sub", "sub", (_Q, _Q), _Q, lambda one, other: one - other),
    Function("quantity_sub_int", "sub", (_Q, _I), _Q, lambda one, whole: one - whole * NANO),
    Function("string_to_semver", "semver", (_S,), _V, _semver, is_member=False),
    Function("string_bool_to_semver", "semver", (_S, _B), _V, _semver, is_member=False),
    Function("is_semver_string", "isSemver", (_S,), _B, _is_semver, is_member=False),
    Function("is_semver_string_bool", "isSemver", (_S, _B), _B, _is_semver, is_member=False),
    Function("semver_is_greater_than", "isGreaterThan", (_V, _V), _B, lambda one, other: one.compare(other) > 0),
    Function("semver_is_less_than", "isLessThan", (_V, _V), _B, lambda one, other: one.compare(other) < 0),
    Function("semver_compare_to", "compareTo", (_V, _V), _I, Semver.compare),
    Function("semver_major", "major", (_V,), _I, lambda version: version.major),
    Function("semver_minor", "minor", (_V,), _I, lambda version: version.minor),
    Function("semver_patch", "patch", (_V,), _I, lambda version: version.patch),
)
