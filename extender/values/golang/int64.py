"""Go's int64: its range, wrapping on overflow, and decimal scaling as resource.Quantity does it.

Upstream: Go, strconv, atoi.go; apimachinery/pkg/api/resource, math.go, scale_int.go, amount.go.
"""

import re
from typing import Final

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

# Powers of ten that upstream multiplies by in one step: on overflow the product wraps. Others are looped over and give
# 0.
_ONE_STEP_SCALES: Final = frozenset({1, 2, 3, 6, 9})
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


def ten_to(zeros: int) -> int:
    """Returns 10**`zeros`, for `zeros` from 0. The limits on what is read keep it below 10**120."""
    power: int = 10**zeros
    return power


def scale_up(amount: int, zeros: int) -> tuple[int, bool]:
    """Returns `amount` * 10**`zeros` as int64, and whether it fits. Upstream: math.go, positiveScaleInt64."""
    product = amount * ten_to(zeros)
    if MIN_INT64 <= product <= MAX_INT64:
        return product, True
    if zeros in _ONE_STEP_SCALES and amount != MIN_INT64:
        return wrap(product), False
    return 0, False


def divide_away(amount: int, zeros: int) -> tuple[int, bool]:
    """Returns `amount` / 10**`zeros` rounded away from zero, and whether it was exact (negativeScaleInt64)."""
    quotient, rest = divmod(abs(amount), ten_to(zeros))
    rounded = quotient + (rest > 0)
    return (-rounded if amount < 0 else rounded), rest == 0


def scale_big(unscaled: int, zeros: int) -> int:
    """Returns `unscaled` * 10**`zeros` as int64, wrapping. Upstream: scale_int.go, scaledValue."""
    if zeros >= 0:
        # float64 -> int64 of 1e19 and more gives the least int64 on amd64.
        return wrap(unscaled * (ten_to(zeros) if zeros < 19 else MIN_INT64))
    divisor = ten_to(-zeros)
    if unscaled < MAX_INT64 and zeros > -19:
        number = wrap(unscaled)
        quotient = abs(number) // divisor
        return (-quotient if number < 0 else quotient) + (number % divisor != 0)
    quotient, rest = divmod(unscaled, divisor)
    return wrap(quotient + (rest != 0))


def add_scaled(mine: int, my_exponent: int, theirs: int, their_exponent: int) -> tuple[int, int] | None:
    """Returns amount and exponent of a sum of two int64 forms; None if it does not fit (int64Amount.Add)."""
    if theirs == 0:
        return mine, my_exponent
    if mine == 0:
        return theirs, their_exponent
    exponent = min(my_exponent, their_exponent)
    mine, mine_fits = scale_up(mine, my_exponent - exponent)
    theirs, theirs_fits = scale_up(theirs, their_exponent - exponent)
    total = mine + theirs
    if not (mine_fits and theirs_fits and MIN_INT64 <= total <= MAX_INT64):
        return None
    return total, exponent
