"""Semantic versions (semver.org 2.0.0), with the error texts of the library that upstream uses.

Upstream: github.com/blang/semver/v4; apiserver/pkg/cel/library/semverlib.go (v1.36.2).
"""

import re
from dataclasses import dataclass
from typing import Final, final

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
        """Parses a version.

        Raises:
            SemverError: the text is not a semantic version.
        """
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
        """Parses a version after removing a leading v and leading zeros, and adding missing minor and patch numbers.

        Raises:
            SemverError: the text is not a semantic version even then.
        """
        parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
        if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        return Semver.parse(".".join([*parts, "0", "0"][:3]))

    def compare(self, other: "Semver") -> int:
        """Returns -1, 0 or 1. A prerelease comes before its release."""
        mine, theirs = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != theirs:
            return 1 if mine > theirs else -1
        before, after = _order(self.prerelease), _order(other.prerelease)
        return (before > after) - (before < after)

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


def _order(prerelease: tuple[str, ...]) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Returns a sort key: a missing prerelease last; numbers before words, numbers by value."""
    identifiers = [(False, int(part), "") if _DIGITS.issuperset(part) else (True, 0, part) for part in prerelease]
    return not prerelease, identifiers


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else f"0{stripped}"
