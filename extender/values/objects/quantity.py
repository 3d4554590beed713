"""resource.Quantity: exact amounts such as `100m`, `1.5Gi` or `3e2`, as Kubernetes has them. No unbounded work:
limits on what is read keep powers of ten below 10**120.

Upstream: apimachinery/pkg/api/resource, quantity.go, amount.go, math.go, scale_int.go, suffix.go.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple, final

from extender.values import limits
from extender.values.golang.int64 import MAX_INT64, MIN_INT64, wrap

RawQuantity = str | int | float
"""A quantity as JSON held it: a string or a number."""

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

NANO: Final = -9
MILLI: Final = -3


# Up to here a decimal number surely fits an int64; upstream calls it maxInt64Factors.
_INT64_DIGITS: Final = 18

# Powers of ten that upstream multiplies by in one step: on overflow the product wraps. Others are looped over and give
# 0.
_ONE_STEP_SCALES: Final = frozenset({1, 2, 3, 6, 9})

CACHE_SIZE: Final = 32768
"""Quantities that each reader below keeps: more than a large cluster spells, tens of megabytes at worst."""

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?+)(?P<zeros>0*+)(?P<whole>[0-9]*+)(?:\.(?P<fraction>[0-9]*+))?+(?P<suffix>[eEinumkKMGTP]*+[-+]?+[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+")
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

_NANOS_OF: Final = {
    **{suffix: 10 ** (exponent - NANO) for suffix, exponent in _DECIMAL_SUFFIXES.items()},
    **{suffix: 10**-NANO << exponent for suffix, exponent in _BINARY_SUFFIXES.items()},
}
PLAIN_BELOW: Final = 2**63 * 10**6
"""Billionths. All readers below, and their sums, agree about smaller amounts, however upstream holds them."""

FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"
TOO_LONG: Final = f"quantities must not be longer than {limits.QUANTITY_CHARACTERS} characters"
EXPONENT_TOO_LARGE: Final = (
    f"exponents of quantities must be between -{limits.QUANTITY_EXPONENT} and {limits.QUANTITY_EXPONENT}"
)


class QuantityError(ValueError):
    """No quantity, in upstream's words or ours for a limit, perhaps after a field path, and never with the text."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`amount` * 10**`exponent`, in the format it was written in. Equal and ordered by value, whatever the format.

    Attributes:
        amount: fits an int64 unless `is_big`.
        exponent: power of ten, at least -9.
        is_big: upstream holds the number as a big decimal. It is remembered because negative and overflowing numbers
            then round and wrap in another way.
        format: DecimalSI, BinarySI, DecimalExponent, or empty for the zero value.
        text: the spelling it was parsed from, if that is as good as the canonical one; else empty.
    """

    amount: int = 0
    exponent: int = 0
    is_big: bool = False
    format: str = ""
    text: str = ""

    @staticmethod
    def parse(text: str) -> "Quantity":
        """Returns the quantity of a text (ParseQuantity). Raises QuantityError, also beyond the limits."""
        if len(text) > limits.QUANTITY_CHARACTERS:
            raise QuantityError(TOO_LONG)
        parts = _GRAMMAR.fullmatch(text)
        if not text or parts is None:
            raise QuantityError(FORMAT_WRONG)
        if text == "0":
            return Quantity(format=DECIMAL_SI, text=text)
        whole, fraction = parts["whole"] or "0", parts["fraction"] or ""
        unit = _unit_of(parts["suffix"])
        quantity = _parse_small(text, whole, fraction, unit)
        if quantity is None:
            if not (parts["zeros"] or parts["whole"] or fraction):
                raise QuantityError(NUMERIC_WRONG)
            quantity = _parse_big(whole, fraction, unit)
        return quantity if parts["sign"] != "-" else replace(quantity, amount=-quantity.amount)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.amount > 0) - (self.amount < 0)

    def value(self) -> int:
        return self.scaled_value(0)

    def milli_value(self) -> int:
        return self.scaled_value(MILLI)

    def scaled_value(self, scale: int) -> int:
        """Returns units of 10**`scale`, an int64 (AsScaledInt64, scaledValue).

        Numbers in the int64 form round away from zero; on overflow the product wraps, or is 0 for some powers. Big
        decimals round up when positive; a negative one is cut and then one is added. All of that is upstream's.
        """
        if self.is_big:
            return _scale_big(self.amount, self.exponent - scale)
        if self.exponent < scale:
            return _divide_away(self.amount, scale - self.exponent)[0]
        return scale_up(self.amount, self.exponent - scale)[0]

    def nanos(self) -> int:
        """Returns billionths, exact and unbounded: no quantity is finer."""
        return self._at(NANO)

    def __add__(self, other: "Quantity") -> "Quantity":
        """Returns the sum, in this format; in the format of `other` if this is zero. Upstream: quantity.go, Add."""
        notation = self.format if self else other.format
        if not self.is_big and not other.is_big:
            total = _add_scaled(self.amount, self.exponent, other.amount, other.exponent)
            if total is not None:
                return Quantity(*total, False, notation)
        exponent = min(self.exponent, other.exponent)
        return Quantity(self._at(exponent) + other._at(exponent), exponent, True, notation)

    def __sub__(self, other: "Quantity") -> "Quantity":
        """Returns the difference, in the format that the sum would have. Upstream: quantity.go, Sub."""
        if not self.is_big and not other.is_big:
            notation = self.format if self else other.format
            # Beware: upstream's -b wraps for the least int64, and so it does here.
            total = _add_scaled(self.amount, self.exponent, wrap(-other.amount), other.exponent)
            if total is not None:
                return Quantity(*total, False, notation)
        return self + replace(other, amount=-other.amount, is_big=True)

    def cmp(self, other: "Quantity") -> int:
        """Returns -1, 0 or 1, by value."""
        exponent = min(self.exponent, other.exponent)
        mine, theirs = self._at(exponent), other._at(exponent)
        return (mine > theirs) - (mine < theirs)

    def round_up(self, scale: int) -> tuple["Quantity", bool]:
        """Returns it rounded away from zero to whole 10**`scale`, and whether that was exact (RoundUp)."""
        if self.exponent >= scale:
            return self, True
        amount, exact = _divide_away(self.amount, scale - self.exponent)
        return replace(self, amount=amount, exponent=scale, text=""), exact

    def canonical(self) -> str:
        """Returns number and suffix: no fraction, and the largest possible suffix (CanonicalizeBytes)."""
        if not self:
            return "0"
        if self.format == BINARY_SI and abs(self.nanos()) >= 1024 * 10**9:
            whole, exact = self.round_up(0)
            if exact:
                return _canonical_binary(whole)
        amount, exponent = _canonical_decimal(self.amount, self.exponent)
        if self.format in (DECIMAL_SI, BINARY_SI):
            # Beyond n..E there is no suffix and upstream writes none, even though that changes the number.
            return f"{amount}{_DECIMAL_SUFFIX_OF.get(exponent, '')}"
        return f"{amount}e{exponent}" if exponent else f"{amount}"

    def __str__(self) -> str:
        return self.text or self.canonical()

    def __bool__(self) -> bool:
        return self.amount != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.cmp(other) == 0

    def __hash__(self) -> int:
        return hash(self.nanos())

    def __lt__(self, other: "Quantity") -> bool:
        return self.cmp(other) < 0

    def __gt__(self, other: "Quantity") -> bool:
        return self.cmp(other) > 0

    def _at(self, exponent: int) -> int:
        # Only called with exponents not above our own: the product is exact.
        amount: int = self.amount * 10 ** (self.exponent - exponent)
        return amount


@lru_cache(maxsize=CACHE_SIZE)
def quantity_of(raw: RawQuantity) -> Quantity:
    """Returns the quantity of a JSON string, blanks around it ignored, or number. Raises QuantityError."""
    if isinstance(raw, str):
        # Blanks count here, so that no cache entry is larger than it looks.
        if len(raw) > limits.QUANTITY_CHARACTERS:
            raise QuantityError(TOO_LONG)
        return Quantity.parse(raw.strip())
    # Python refuses to write out ints above 4300 digits: count the bits first.
    if isinstance(raw, int) and raw.bit_length() > 4 * limits.QUANTITY_CHARACTERS:
        raise QuantityError(TOO_LONG)
    return Quantity.parse(repr(raw))


@lru_cache(maxsize=CACHE_SIZE)
def value_of(raw: RawQuantity) -> int:
    """Returns whole units of a quantity as JSON held it, rounded up (Quantity.Value()); int64. Raises QuantityError."""
    nanos = _plain_nanos(raw)
    return quantity_of(raw).value() if nanos is None else -(-nanos // 10**9)


@lru_cache(maxsize=CACHE_SIZE)
def milli_value_of(raw: RawQuantity) -> int:
    """Returns thousandths, rounded up (Quantity.MilliValue()); int64. Raises QuantityError."""
    nanos = _plain_nanos(raw)
    return quantity_of(raw).milli_value() if nanos is None else -(-nanos // 10**6)


@lru_cache(maxsize=CACHE_SIZE)
def nanos_of(raw: RawQuantity) -> int:
    """Returns billionths, exact and unbounded: sums and maxima of them lose nothing. Raises QuantityError."""
    nanos = _plain_nanos(raw)
    return quantity_of(raw).nanos() if nanos is None else nanos


def _plain_nanos(raw: RawQuantity) -> int | None:
    """Returns the billionths of a small whole number with a suffix or none, as most are: a pod may have thousands."""
    if not isinstance(raw, str) or len(raw) > _INT64_DIGITS or not raw.isascii():
        return None
    for digits, suffix in ((raw, ""), (raw[:-1], raw[-1:]), (raw[:-2], raw[-2:])):
        if digits.isdigit() and suffix in _NANOS_OF:
            nanos = int(digits) * _NANOS_OF[suffix]
            return nanos if nanos < PLAIN_BELOW else None
    return None


class _Unit(NamedTuple):
    """The meaning of a suffix: times `base` ** `exponent`, written in `format`."""

    base: int
    exponent: int
    format: str


def _unit_of(suffix: str) -> _Unit:
    if suffix in _DECIMAL_SUFFIXES:
        return _Unit(10, _DECIMAL_SUFFIXES[suffix], DECIMAL_SI)
    if suffix in _BINARY_SUFFIXES:
        return _Unit(2, _BINARY_SUFFIXES[suffix], BINARY_SI)
    if _EXPONENT.fullmatch(suffix) is None:
        raise QuantityError(SUFFIX_WRONG)
    exponent = int(suffix[1:])
    if not MIN_INT64 <= exponent <= MAX_INT64:
        raise QuantityError(SUFFIX_WRONG)
    if abs(exponent) > limits.QUANTITY_EXPONENT:
        raise QuantityError(EXPONENT_TOO_LARGE)
    return _Unit(10, exponent, DECIMAL_EXPONENT)


def _parse_small(text: str, whole: str, fraction: str, unit: _Unit) -> Quantity | None:
    """Returns the unsigned quantity in the int64 form, or None if upstream holds it as a big decimal."""
    digits = whole + fraction
    if unit.base == 10:
        factor, scale, spare_digits = 1, unit.exponent, _INT64_DIGITS - len(digits)
    else:
        factor, scale = 1 << unit.exponent, 0
        spare_digits = 15 - len(whole) - unit.exponent * 3 // 10 - 1 if not fraction else -1
    scale -= len(fraction)
    if spare_digits < 0 or scale < NANO:
        return None
    number = int(digits)
    if number * factor > MAX_INT64:
        return None
    is_decimal_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    is_canonical = number & 7 != 0 if unit.base == 2 else is_decimal_canonical
    return Quantity(number * factor, scale, False, unit.format, text if is_canonical else "")


def _parse_big(whole: str, fraction: str, unit: _Unit) -> Quantity:
    """Returns the unsigned quantity as a big decimal: whole nanos, rounded up; BinarySI capped at int64."""
    number, scale, notation = int(whole + fraction), -len(fraction), unit.format
    if unit.base == 10:
        scale += unit.exponent
    else:
        number <<= unit.exponent
    if number:
        number = number * 10 ** (scale - NANO) if scale > NANO else _divide_away(number, NANO - scale)[0]
        scale = NANO
    if notation == BINARY_SI and number > MAX_INT64 * 10**-scale:
        number, scale = MAX_INT64, 0
    if notation == BINARY_SI and 0 < number < 10**-scale:
        notation = DECIMAL_SI
    return Quantity(number, scale, True, notation)


def _canonical_decimal(amount: int, exponent: int) -> tuple[int, int]:
    """Returns the same number with a multiple of three as exponent, as large as it can be."""
    while amount % 10 == 0:
        amount //= 10
        exponent += 1
    spare = exponent % 3
    return amount * 10**spare, exponent - spare


def _canonical_binary(whole: Quantity) -> str:
    amount = whole.amount * 10**whole.exponent
    # Upstream's int64 loop does not touch the least int64: its negation is itself.
    times = 0
    while amount % 1024 == 0 and (whole.is_big or amount != MIN_INT64):
        amount //= 1024
        times += 1
    return f"{amount}{_BINARY_SUFFIX_OF.get(times * 10, '')}"


def scale_up(amount: int, zeros: int) -> tuple[int, bool]:
    """Returns `amount` * 10**`zeros` as int64, and whether it fits. Upstream: math.go, positiveScaleInt64."""
    product = amount * 10**zeros
    if MIN_INT64 <= product <= MAX_INT64:
        return product, True
    if zeros in _ONE_STEP_SCALES and amount != MIN_INT64:
        return wrap(product), False
    return 0, False


def _divide_away(amount: int, zeros: int) -> tuple[int, bool]:
    """Returns `amount` / 10**`zeros` rounded away from zero, and whether it was exact (negativeScaleInt64)."""
    quotient, rest = divmod(abs(amount), 10**zeros)
    rounded = quotient + (rest > 0)
    return (-rounded if amount < 0 else rounded), rest == 0


def _scale_big(unscaled: int, zeros: int) -> int:
    """Returns `unscaled` * 10**`zeros` as int64, wrapping. Upstream: scale_int.go, scaledValue."""
    if zeros >= 0:
        # float64 -> int64 of 1e19 and more gives the least int64 on amd64.
        return wrap(unscaled * (10**zeros if zeros < 19 else MIN_INT64))
    divisor: int = 10**-zeros
    if unscaled < MAX_INT64 and zeros > -19:
        number = wrap(unscaled)
        quotient = abs(number) // divisor
        return (-quotient if number < 0 else quotient) + (number % divisor != 0)
    quotient, rest = divmod(unscaled, divisor)
    return wrap(quotient + (rest != 0))


def _add_scaled(mine: int, my_exponent: int, theirs: int, their_exponent: int) -> tuple[int, int] | None:
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
