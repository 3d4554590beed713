"""Go's int64: its range, what is left on overflow, and decimal scaling as quantities do it. Python's ints know no such limits."""

import re
from typing import Final

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

# Powers of ten that upstream multiplies by in one step: on overflow the product wraps. Others are looped over and give 0.
_ONE_STEP_SCALES: Final = frozenset({1, 2, 3, 6, 9})
_INTEGER: Final = re.compile(r"([+-]?+)0*+([0-9]*+)")
_INT64_DIGITS: Final = 19


def wrap(number: int) -> int:
    """The int64 that is left of `number` when the higher bits fall off."""
    return (number - MIN_INT64) % 2**64 + MIN_INT64


def parse_int64(text: str) -> int | None:
    """The number that `text` spells in base 10, or None: no number, or no int64. Upstream: Go, strconv.ParseInt(text, 10, 64)."""
    parts = _INTEGER.fullmatch(text)
    if parts is None or text in ("", "+", "-") or len(parts[2]) > _INT64_DIGITS:
        return None
    number = int(parts[1] + (parts[2] or "0"))
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def ten_to(zeros: int) -> int:
    """10**`zeros`, for no negative number; the limits on what is read keep it below 10**120."""
    power: int = 10**zeros
    return power


def scale_up(amount: int, zeros: int) -> tuple[int, bool]:
    """`amount` * 10**`zeros` as int64, and whether it fits. Upstream: math.go, positiveScaleInt64."""
    product = amount * ten_to(zeros)
    if MIN_INT64 <= product <= MAX_INT64:
        return product, True
    if zeros in _ONE_STEP_SCALES and amount != MIN_INT64:
        return wrap(product), False
    return 0, False


def divide_away(amount: int, zeros: int) -> tuple[int, bool]:
    """`amount` / 10**`zeros` rounded away from zero, and whether that was exact. Upstream: math.go, negativeScaleInt64."""
    quotient, rest = divmod(abs(amount), ten_to(zeros))
    rounded = quotient + (rest > 0)
    return (-rounded if amount < 0 else rounded), rest == 0
