"""What holds for all tests."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.loop_budget import held_too_long

# Timing decides no test: a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell without job control starts what runs in the background with SIGINT ignored, and programs that tests interrupt
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class BrowserTogether(LoadFileScheduling):
    """Gives a file to one worker, which makes what its tests share once; all tests of the browser are like one file."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "tests/browser" if file.startswith("tests/browser/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> BrowserTogether:
    return BrowserTogether(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """
    One worker more than there are cores, for `-n auto`: a third of the time tests wait for a browser, a socket or real
    time.
    """
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def event_loops_are_not_held() -> Iterator[None]:
    """
    No request and no object may hold an event loop of the service for long; see `tests.loop_budget`.
    """
    with held_too_long() as found:
        yield
    assert not found, "\n".join(found)
