"""Quantities are exact, whatever is added to whatever, and nothing that anyone can write takes long to read."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings, strategies as st

from extender.values import limits
from extender.values.objects.quantity import Quantity, QuantityError, milli_value_of, nanos_of, quantity_of, value_of
from tests.kit.examples import examples
from tests.kit.tables import cases

UNITS = {"": Fraction(1), "e3": Fraction(1000), "E-2": Fraction(1, 100)}
UNITS |= {suffix: Fraction(1000) ** power for power, suffix in zip((-3, -2, -1, 1, 2, 3), "numkMG", strict=True)}
UNITS |= {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi"), start=1)}

calmly = settings(deadline=None, max_examples=examples(200))
numbers = st.builds(
    lambda sign, whole, places, unit: (
        f"{sign}{whole}{places}{unit}",
        Fraction(f"{sign}{whole}{places}") * UNITS[unit],
    ),
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**6),
    st.from_regex(r"(\.[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(sorted(UNITS)),
)
texts = numbers.map(lambda number: number[0])
noise = st.text(alphabet="0123456789+-.eEinumkKMGTPx \0é", max_size=limits.QUANTITY_CHARACTERS + 8)


def in_nanos(number: Fraction) -> int:
    """Billionths, rounded away from zero."""
    size = -(-abs(number.numerator) * 10**9 // number.denominator)
    return -size if number < 0 else size


@calmly
@given(numbers)
def test_a_quantity_is_the_number_it_spells(number: tuple[str, Fraction]) -> None:
    """A text stands for its number; what is finer than a billionth is rounded away from zero."""
    text, value = number

    quantity = Quantity.parse(text)

    assert in_nanos(value) == quantity.nanos()
    assert quantity.sign == (value > 0) - (value < 0)


@calmly
@given(texts.filter(lambda text: not text.startswith("-")))
def test_values_are_rounded_up(text: str) -> None:
    """Whole units and thousandths of a positive amount are the next ones that are enough."""
    nanos = nanos_of(text)

    assert value_of(text) == -(-nanos // 10**9)
    assert milli_value_of(text) == -(-nanos // 10**6)


@calmly
@example("0.1")
@given(st.one_of(texts, noise))
def test_amounts_of_a_text_are_those_of_its_quantity(text: str) -> None:
    """The shorter way to read most amounts agrees with the whole one, also about what is none."""
    try:
        quantity = quantity_of(text)
    except QuantityError:
        for read in (value_of, milli_value_of, nanos_of):
            with pytest.raises(QuantityError):
                read(text)
    else:
        assert (value_of(text), milli_value_of(text)) == (quantity.value(), quantity.milli_value())
        assert nanos_of(text) == quantity.nanos()


@calmly
@given(texts, texts)
def test_sums_and_differences_are_exact(one: str, other: str) -> None:
    first, second = Quantity.parse(one), Quantity.parse(other)

    total = first + second

    assert total.nanos() == first.nanos() + second.nanos()
    assert total == second + first
    assert total - second == first


@calmly
@given(texts, texts)
def test_order_is_the_order_of_the_numbers(one: str, other: str) -> None:
    """Quantities compare by value and are one dict key if equal, in whatever format they were written."""
    first, second = Quantity.parse(one), Quantity.parse(other)

    assert (first < second, first == second, first > second) == (
        first.nanos() < second.nanos(),
        first.nanos() == second.nanos(),
        first.nanos() > second.nanos(),
    )
    assert first != second or hash(first) == hash(second)


@calmly
@given(texts)
def test_the_canonical_text_has_the_same_value(text: str) -> None:
    printed = Quantity.parse(text).canonical()

    assert Quantity.parse(printed) == Quantity.parse(text)
    assert Quantity.parse(printed).canonical() == printed


@calmly
@given(noise)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever is sent is a quantity or a QuantityError that does not repeat it."""
    try:
        value = value_of(text)
    except QuantityError as exc:
        assert len(text.strip()) < 3 or text.strip() not in str(exc)
    else:
        assert -(2**63) <= value < 2**63


@cases(
    "raw, reason",
    ("an exponent too large to write out", "1E+1000000", "exponents of quantities must be between -30 and 30"),
    ("a fraction too long to write out", "1e-1000000", "exponents of quantities must be between -30 and 30"),
    ("an exponent that is no int64", "1e99999999999999999999", "unable to parse quantity's suffix"),
    ("too many digits", "1" * 65, "quantities must not be longer than 64 characters"),
    ("blanks count", "1" + " " * 64, "quantities must not be longer than 64 characters"),
    ("a number too long to be written out", 10**5000, "quantities must not be longer than 64 characters"),
    ("a blank inside", "10 GB", "quantities must match the regular expression"),
    ("an exponent without digits", "1e", "unable to parse quantity's suffix"),
    ("a minus that is none", "\u22121", "quantities must match the regular expression"),
    ("digits of another script", "\u0661", "quantities must match the regular expression"),
    ("no number at all", "e-20", "unable to parse numeric part of quantity"),
    ("nothing", "", "quantities must match the regular expression"),
    ("NaN", float("nan"), "quantities must match the regular expression"),
    ("infinity", float("inf"), "quantities must match the regular expression"),
)
def test_refusals(raw: str | int | float, reason: str) -> None:
    """What is no quantity, or one that would cost too much to handle, is refused with a reason."""
    with pytest.raises(QuantityError) as refusal:
        value_of(raw)

    assert str(refusal.value).startswith(reason)


@cases(
    "raw, value, milli_value",
    ("a JSON integer", 2, 2, 2000),
    ("a JSON fraction", 1.5, 2, 1500),
    ("a JSON number in scientific notation", 1e-05, 1, 1),
    ("blanks around", " 1Gi ", 2**30, 2**30 * 1000),
    ("thousandths of many digits wrap", "9223372036854775807", 2**63 - 1, -1000),
    ("binary amounts are capped at the largest int64", "9Ei", 2**63 - 1, -1000),
    ("decimal ones are not, and overflow to nothing", "10E", 0, 0),
    ("negative amounts round away from zero", "-1500m", -2, -1500),
)
def test_numbers_of_the_hot_path(raw: str | int | float, value: int, milli_value: int) -> None:
    """A quantity as JSON held it has the int64s that upstream's accessors give, overflow included."""
    assert (value, milli_value) == (value_of(raw), milli_value_of(raw))


def test_a_sum_takes_the_format_of_the_first_that_counts() -> None:
    """Zero takes over the format of what is added to it."""
    total = Quantity.parse("0") + Quantity.parse("3Mi") + Quantity.parse("1024k")

    assert (total.format, str(total)) == ("BinarySI", "4072Ki")


def test_a_quantity_is_false_only_when_zero() -> None:
    assert not quantity_of("0Gi")
    assert quantity_of("1n")
