"""Durations are shown with two or three significant figures."""

from datetime import timedelta

import pytest

from extender.values.golang.times import human_duration


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
