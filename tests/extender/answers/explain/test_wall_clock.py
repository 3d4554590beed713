"""Times of the event loop are told as times of the clock on the wall."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from extender.answers.explain.queue_places import WallClock
from extender.values.golang.times import rfc3339

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("loop_time", "text"),
    [
        pytest.param(1000.0, "2026-01-01T12:00:00Z", id="now"),
        pytest.param(910.0, "2026-01-01T11:58:30Z", id="before"),
        pytest.param(1000.0 + 43_200, "2026-01-02T00:00:00Z", id="to come"),
        pytest.param(1000.9, "2026-01-01T12:00:00Z", id="whole seconds only"),
    ],
)
def test_both_clocks_go_at_one_pace(loop_time: float, text: str) -> None:
    assert WallClock(NOON, 1000.0).text(loop_time) == text


def test_other_time_zones_are_converted_to_utc() -> None:
    in_delhi = datetime(2026, 1, 1, 17, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    assert rfc3339(in_delhi) == "2026-01-01T12:00:00Z"
    assert WallClock(in_delhi, 0.0).text(60.0) == "2026-01-01T12:01:00Z"
