"""Durations are read and printed as Go does it, and shown to people with two or three significant figures."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from extender.values.golang.times import Duration, DurationError, human_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("5s", 5_000_000_000, "5s"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("600s", 600_000_000_000, "10m0s"),
        ("100ms", 100_000_000, "100ms"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("-0.5s", -500_000_000, "-500ms"),
        ("+.5us", 500, "500ns"),
        ("1µs", 1_000, "1µs"),
        ("1μs", 1_000, "1µs"),
        ("1.000000001s", 1_000_000_001, "1.000000001s"),
        ("2562047h47m16.854775807s", 2**63 - 1, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
        ("0" * 5000 + "1s", 1_000_000_000, "1s"),
    ],
)
def test_a_duration(text, nanoseconds, printed):
    duration = Duration.parse(text)

    assert duration.nanoseconds == nanoseconds
    assert str(duration) == printed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("abc", 'time: invalid duration "abc"'),
        (".s", 'time: invalid duration ".s"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1s1", 'time: missing unit in duration "1s1"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1s ", 'time: unknown unit "s " in duration "1s "'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9" * 5000 + "s", 'time: invalid duration "' + "9" * 5000 + 's"'),
    ],
)
def test_no_duration(text, error):
    with pytest.raises(DurationError) as caught:
        Duration.parse(text)

    assert str(caught.value) == error


@given(st.integers(-(2**63), 2**63 - 1))
def test_printed_duration_parses_to_the_same_duration(nanoseconds):
    assert Duration.parse(str(Duration(nanoseconds))) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=-2), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(milliseconds=999), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=2, seconds=5), "2m5s"),
        (timedelta(minutes=10, seconds=5), "10m"),
        (timedelta(hours=2, minutes=59), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=3, minutes=7), "3h7m"),
        (timedelta(hours=8, minutes=59), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(hours=49), "2d1h"),
        (timedelta(days=8, hours=5), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=8 * 365 + 4), "8y"),
    ],
)
def test_a_duration_for_people(duration, text):
    assert human_duration(duration) == text
