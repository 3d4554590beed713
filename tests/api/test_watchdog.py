"""Who keeps the event loop from going on is named in the log."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from api.serving.server import Watchdog
from tests.kit.service import TWELVE_NODES, serving
from tests.kit.waiting import DEADLINE


@contextmanager
def watched(patience: float) -> Iterator[Watchdog]:
    watchdog = Watchdog(patience)
    watchdog.start()
    try:
        yield watchdog
    finally:
        watchdog.stop()


def a_filter_that_hangs_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_blocked_loop_and_its_return_are_logged_with_the_place(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    with watched(0.1) as watchdog:
        a_filter_that_hangs_until(lambda: "is blocked" in caplog.text)
        watchdog.beat()
        watchdog.beat()

    assert "a_filter_that_hangs_until" in caplog.text
    assert caplog.text.count('"The event loop responds again"') == 1


def test_blocked_loop_is_logged_at_growing_intervals(caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with watched(0.02):
        time.sleep(1)
    stood = time.monotonic() - began

    # Each time after twice as long: six times in a second.
    assert 1 <= caplog.text.count("is blocked") <= math.log2(stood / 0.02) + 1


def test_running_loop_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with watched(30) as watchdog:
        watchdog.beat()

    assert "event loop" not in caplog.text


def test_a_service_has_one_for_as_long_as_it_serves() -> None:
    def watchdogs() -> int:
        return [thread.name for thread in threading.enumerate()].count("watchdog")

    of_others = watchdogs()
    with serving(state=TWELVE_NODES, schedule=False) as service:
        assert service.client.get("/livez").status_code == 200
        assert watchdogs() == of_others + 1

    assert watchdogs() == of_others
