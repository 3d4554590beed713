"""Work in a thread: it is told when nobody waits for it any more, and whoever gave it up goes on when it has ended."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from extender.values.concurrency.abandoned import AbandonedError, IsWanted, check_wanted, in_thread


class Work:
    """
    Goes on until the gate opens, and says what it was told.
    """

    def __init__(self, ends_with: Exception | None = None) -> None:
        self.has_begun, self.gate = threading.Event(), threading.Event()
        self.was_wanted: list[bool] = []
        self._ends_with = ends_with

    def __call__(self, is_wanted: IsWanted) -> str:
        self.was_wanted.append(is_wanted())
        self.has_begun.set()
        self.gate.wait(10)
        self.was_wanted.append(is_wanted())
        if self._ends_with is not None:
            raise self._ends_with
        return "done"


async def begun(work: Work) -> None:
    await asyncio.to_thread(work.has_begun.wait, 10)


def test_work_that_somebody_waits_for_is_wanted_to_its_end() -> None:
    work = Work()
    work.gate.set()

    assert asyncio.run(in_thread(work)) == "done"
    assert work.was_wanted == [True, True]


def test_what_it_raises_is_raised() -> None:
    work = Work(ends_with=ValueError("no"))
    work.gate.set()

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_thread(work))


def test_whoever_gives_it_up_goes_on_when_it_has_ended() -> None:
    work = Work()

    async def story() -> list[bool]:
        waiting = asyncio.ensure_future(in_thread(work))
        await begun(work)
        waiting.cancel("enough")
        for _ in range(10):
            await asyncio.sleep(0)
        went_on_before = waiting.done()
        work.gate.set()
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await waiting
        return [went_on_before, waiting.cancelled()]

    assert asyncio.run(story()) == [False, True]
    assert work.was_wanted == [True, False]


def test_whoever_gives_it_up_twice_does_not_wait_and_says_what_he_said_first() -> None:
    work = Work()

    async def story() -> None:
        waiting = asyncio.ensure_future(in_thread(work))
        await begun(work)
        waiting.cancel("first")
        await asyncio.sleep(0)
        waiting.cancel("second")
        with pytest.raises(asyncio.CancelledError, match="first"):
            await waiting
        assert not work.gate.is_set()
        work.gate.set()

    asyncio.run(story())


def test_work_that_was_given_up_before_its_turn_is_not_begun() -> None:
    first, second = Work(), Work()

    async def story() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        working = asyncio.ensure_future(in_thread(first))
        waiting = asyncio.ensure_future(in_thread(second))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        first.gate.set()
        assert await working == "done"
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())

    assert second.was_wanted == []


@pytest.mark.parametrize("cancellations", [1, 2])
def test_what_it_raises_when_nobody_waits_is_not_complained_about(cancellations: int) -> None:
    work = Work(ends_with=AbandonedError())

    async def story() -> None:
        waiting = asyncio.ensure_future(in_thread(work))
        await begun(work)
        for _ in range(cancellations):
            waiting.cancel()
            await asyncio.sleep(0)
        work.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert complaints_of(story) == []


def test_a_look_between_two_steps_ends_what_nobody_wants() -> None:
    check_wanted(lambda: True)

    with pytest.raises(AbandonedError):
        check_wanted(lambda: False)


def complaints_of(story: Callable[[], Awaitable[None]]) -> list[dict[str, Any]]:
    """
    What the loop says about exceptions that nobody has looked at.
    """
    told: list[dict[str, Any]] = []

    async def listened() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        await story()
        await asyncio.get_running_loop().shutdown_default_executor()
        gc.collect()

    asyncio.run(listened())
    return told
