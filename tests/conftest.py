"""What holds for all tests."""

import os

import pytest
from hypothesis import settings

# Timing decides no test: a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """
    One worker more than there are cores, for `-n auto`: a third of the time tests wait for a browser, a socket or real time.
    """
    return (os.cpu_count() or 1) + 1
