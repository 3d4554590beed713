"""Go's int64: its range, and wrapping on overflow. Upstream: Go, strconv, atoi.go."""

import re
from typing import Final

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

_INTEGER: Final = re.compile(r"([+-]?+)0*+([0-9]*+)")
_INT64_DIGITS: Final = 19


def wrap(number: int) -> int:
    """Returns the int64 that is left of `number` when the higher bits are dropped."""
    return (number - MIN_INT64) % 2**64 + MIN_INT64


def parse_int64(text: str) -> int | None:
    """Returns the int64 that `text` spells in base 10, if any (strconv.ParseInt)."""
    parts = _INTEGER.fullmatch(text)
    if parts is None or text in ("", "+", "-") or len(parts[2]) > _INT64_DIGITS:
        return None
    number = int(parts[1] + (parts[2] or "0"))
    return number if MIN_INT64 <= number <= MAX_INT64 else None
