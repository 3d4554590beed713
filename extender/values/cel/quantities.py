"""Quantities and semantic versions (semver.org 2.0.0, in the words of upstream's library), and their functions.

Upstream: apiserver/pkg/cel/library, quantity.go, semverlib.go; github.com/blang/semver/v4.
"""

import math
import operator
import re
from dataclasses import dataclass
from typing import Any, Final, final

from extender.values.cel.functions import BOOL, DOUBLE, INT, STRING, CelType, Function, accepts
from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.objects.quantity import Quantity

_DIGITS: Final = frozenset("0123456789")
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]*")
_MAX_UINT64: Final = 2**64 - 1


class SemverError(ValueError):
    """The text is not a semantic version."""


@final
@dataclass(frozen=True, slots=True)
class Semver:
    """A version without its build metadata, which does not matter to order or equality."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> "Semver":
        """Parses a version. Raises SemverError."""
        if not text:
            raise SemverError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise SemverError("No Major.Minor.Patch elements found")
        major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
        rest, plus, build = parts[2].partition("+")
        patch, dash, prerelease = rest.partition("-")
        version = Semver(
            major, minor, _number("Patch", patch), tuple(map(_prerelease, prerelease.split("."))) if dash else ()
        )
        for identifier in build.split(".") if plus else ():
            if not identifier:
                raise SemverError("Build meta data is empty")
            if _IDENTIFIER.fullmatch(identifier) is None:
                raise SemverError(f'Invalid character(s) found in build meta data "{identifier}"')
        return version

    @staticmethod
    def parse_normalized(text: str) -> "Semver":
        """Parses a version without a leading v and leading zeros, with missing numbers added. Raises SemverError."""
        parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
        if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        return Semver.parse(".".join([*parts, "0", "0"][:3]))

    def __lt__(self, other: "Semver") -> bool:
        """Returns whether it comes before the other. A prerelease comes before its release."""
        return self._order() < other._order()

    def _order(self) -> tuple[object, ...]:
        """Returns a sort key: a missing prerelease last; numbers before words, numbers by value."""
        parts = self.prerelease
        identifiers = [(False, int(part), "") if _DIGITS.issuperset(part) else (True, 0, part) for part in parts]
        return self.major, self.minor, self.patch, not parts, identifiers

    def __str__(self) -> str:
        number = f"{self.major}.{self.minor}.{self.patch}"
        return f"{number}-{'.'.join(self.prerelease)}" if self.prerelease else number


def _number(name: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise SemverError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f'{name} number must not contain leading zeroes "{text}"')
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    # The length is checked first: Python refuses to parse numbers of thousands of digits.
    if len(text) > 20 or int(text) > _MAX_UINT64:
        raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _prerelease(identifier: str) -> str:
    if not identifier:
        raise SemverError("Prerelease is empty")
    if _DIGITS.issuperset(identifier):
        if len(identifier) > 1 and identifier[0] == "0":
            raise SemverError(f'Numeric PreRelease version must not contain leading zeroes "{identifier}"')
        return str(_number("PreRelease", identifier))
    if _IDENTIFIER.fullmatch(identifier) is None:
        raise SemverError(f'Invalid character(s) found in prerelease "{identifier}"')
    return identifier


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else f"0{stripped}"


NANO: Final = 10**9
QUANTITY: Final = CelType.of_kubernetes("kubernetes.Quantity", int)
"""A quantity; functions get it as the number of its billionths."""
SEMVER: Final = CelType.of_kubernetes("kubernetes.Semver", Semver.parse)


def _quantity(text: str) -> int:
    return Quantity.parse(text).nanos()


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


def _compare(one: Any, other: Any) -> int:
    """Returns -1, 0 or 1."""
    return bool(other < one) - bool(one < other)


def _semver(text: str, normalized: bool = False) -> Semver:
    return Semver.parse_normalized(text) if normalized else Semver.parse(text)


_Q, _V, _S, _B, _I = QUANTITY, SEMVER, STRING, BOOL, INT

FUNCTIONS: Final = (
    Function("string_to_quantity", "quantity", (_S,), _Q, _quantity, is_member=False),
    Function("is_quantity_string", "isQuantity", (_S,), _B, accepts(Quantity.parse), is_member=False),
    Function("quantity_sign", "sign", (_Q,), _I, lambda nanos: _compare(nanos, 0), is_member=False),
    Function("quantity_is_greater_than", "isGreaterThan", (_Q, _Q), _B, operator.gt),
    Function("quantity_is_less_than", "isLessThan", (_Q, _Q), _B, operator.lt),
    Function("quantity_compare_to", "compareTo", (_Q, _Q), _I, _compare),
    Function("quantity_get_float", "asApproximateFloat", (_Q,), DOUBLE, _as_float),
    Function("quantity_get_int", "asInteger", (_Q,), _I, _as_integer),
    Function("quantity_is_integer", "isInteger", (_Q,), _B, _is_integer),
    Function("quantity_add", "add", (_Q, _Q), _Q, operator.add),
    Function("quantity_add_int", "add", (_Q, _I), _Q, lambda one, whole: one + whole * NANO),
    Function("quantity_sub", "sub", (_Q, _Q), _Q, operator.sub),
    Function("quantity_sub_int", "sub", (_Q, _I), _Q, lambda one, whole: one - whole * NANO),
    Function("string_to_semver", "semver", (_S,), _V, _semver, is_member=False),
    Function("string_bool_to_semver", "semver", (_S, _B), _V, _semver, is_member=False),
    Function("is_semver_string", "isSemver", (_S,), _B, accepts(_semver), is_member=False),
    Function("is_semver_string_bool", "isSemver", (_S, _B), _B, accepts(_semver), is_member=False),
    Function("semver_is_greater_than", "isGreaterThan", (_V, _V), _B, operator.gt),
    Function("semver_is_less_than", "isLessThan", (_V, _V), _B, operator.lt),
    Function("semver_compare_to", "compareTo", (_V, _V), _I, _compare),
    Function("semver_major", "major", (_V,), _I, lambda version: version.major),
    Function("semver_minor", "minor", (_V,), _I, lambda version: version.minor),
    Function("semver_patch", "patch", (_V,), _I, lambda version: version.patch),
)
