"""The functions of quantities and semantic versions.

Upstream: apiserver/pkg/cel/library, quantity.go, semverlib.go (v1.36.2).
"""

import math
from typing import Final

from extender.values.cel.functions import BOOL, DOUBLE, INT, STRING, CelType, Function
from extender.values.cel.semver import Semver, SemverError
from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.objects.quantity import Quantity, QuantityError

NANO: Final = 10**9
QUANTITY: Final = CelType.of_kubernetes("kubernetes.Quantity", int)
"""A quantity; functions get it as the number of its billionths."""
SEMVER: Final = CelType.of_kubernetes("kubernetes.Semver", Semver.parse)


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


_Q, _V, _S, _B, _I = QUANTITY, SEMVER, STRING, BOOL, INT

FUNCTIONS: Final = (
    Function("string_to_quantity", "quantity", (_S,), _Q, _quantity, is_member=False),
    Function("is_quantity_string", "isQuantity", (_S,), _B, _is_quantity, is_member=False),
    Function("quantity_sign", "sign", (_Q,), _I, lambda nanos: _compare(nanos, 0), is_member=False),
    Function("quantity_is_greater_than", "isGreaterThan", (_Q, _Q), _B, lambda one, other: one > other),
    Function("quantity_is_less_than", "isLessThan", (_Q, _Q), _B, lambda one, other: one < other),
    Function("quantity_compare_to", "compareTo", (_Q, _Q), _I, _compare),
    Function("quantity_get_float", "asApproximateFloat", (_Q,), DOUBLE, _as_float),
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
