"""Equal parts of objects become one: 150,000 pods of a few thousand workloads say the same things over and over.

What is shared is frozen by agreement, as all decoded objects are. The tables are bounded: one that is full begins anew, which costs
memory and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, final

import msgspec

P = TypeVar("P")

CAPACITY: Final = 1 << 16
"""Distinct parts that a table remembers."""


@final
class SharedStrings:
    """Equal strings are one string."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._known: dict[str, str] = {}
        self._capacity = capacity

    def __call__(self, text: str) -> str:
        """The string that was seen first of those that equal this one."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= self._capacity:
                self._known.clear()
            known = self._known[text] = text
        return known


@final
class SharedParts:
    """Equal lists, dicts or structs are one. For the parts of one field: what encodes alike must be of one type."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._known: dict[bytes, Any] = {}
        self._capacity = capacity
        self._encode: Callable[[object], bytes] = msgspec.json.Encoder().encode

    def __call__(self, part: P) -> P:
        """The part that was seen first of those that equal this one."""
        name = self._encode(part)
        known: P | None = self._known.get(name)
        if known is None:
            if len(self._known) >= self._capacity:
                self._known.clear()
            known = self._known[name] = part
        return known
