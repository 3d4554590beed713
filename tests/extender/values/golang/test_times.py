"""Times of the API, read and printed as apimachinery does it."""

import pytest

from extender.values.golang.times import TimeError, read_micro_time, read_time
from tests.kit.tables import cases


@cases(
    "text, time, micro_time",
    ("a fraction", "2026-11-29T07:00:00.123456Z", "2026-11-29T07:00:00Z", "2026-11-29T07:00:00.123456Z"),
    ("another zone", "2026-11-29T08:00:00.000000+01:00", "2026-11-29T07:00:00Z", "2026-11-29T07:00:00.000000Z"),
    ("zero", "0001-01-01T00:00:00.000000Z", None, None),
)
def test_a_time_is_printed_in_utc(text: str, time: str | None, micro_time: str | None) -> None:
    assert (read_time(text), read_micro_time(text)) == (time, micro_time)


def test_only_a_micro_time_needs_a_fraction() -> None:
    text = "2026-11-29T07:00:00Z"

    assert read_time(text) == text
    with pytest.raises(TimeError, match=r'cannot parse "Z" as "\.000000"'):
        read_micro_time(text)
