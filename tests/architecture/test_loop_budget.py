"""The watchdog of the event loop finds what it is there for."""

import asyncio
import time
from typing import Any

import pytest

from tests import loop_budget
from tests.loop_budget import held_too_long

_SERVICE_CODE = """
def hold(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""


def held(seconds: float, slowness: float = 1.0) -> list[str]:
    """What is found while a callback that is no test's computes for this long, on a machine that is so many times as
    slow.
    """
    scope: dict[str, Any] = {"time": time}
    exec(compile(_SERVICE_CODE, "/srv/service.py", "exec"), scope)

    async def main() -> None:
        asyncio.get_running_loop().call_soon(scope["hold"], seconds)
        await asyncio.sleep(0.01)

    with pytest.MonkeyPatch.context() as patch, held_too_long(0.1) as found:
        patch.setattr(loop_budget, "slowness", lambda: slowness)
        asyncio.run(main())
    return found


def test_a_callback_that_computes_for_long_is_found() -> None:
    (found,) = held(0.15)

    assert found.startswith("hold held the event loop for 1")


def test_short_callbacks_are_not() -> None:
    assert held(0.01) == []


def test_a_slow_machine_may_take_longer() -> None:
    assert held(0.15, slowness=2.0) == []
    assert held(0.15, slowness=1.2)
    assert loop_budget.slowness() >= 1
