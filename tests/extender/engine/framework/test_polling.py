"""Asking again and again costs the seconds that were asked for, and no more."""

import asyncio

import pytest

from extender.engine.framework import poll
from extender.testing import virtual_time


def polled(*, ready_at: float, timeout: float, at_once: bool = False) -> tuple[float, list[float]]:
    """(seconds until it was done, when it was asked), for something that is so from a moment on."""

    async def story() -> tuple[float, list[float]]:
        loop, ask_times = asyncio.get_running_loop(), []

        def is_done() -> bool:
            ask_times.append(loop.time())
            return loop.time() >= ready_at

        await poll(is_done, every=2, within=timeout, at_once=at_once)
        return loop.time(), ask_times

    return virtual_time.run(story())


def test_the_first_question_comes_after_the_first_pause() -> None:
    assert polled(ready_at=0, timeout=10) == (2, [2])


def test_polling_may_begin_at_once() -> None:
    assert polled(ready_at=0, timeout=10, at_once=True) == (0, [0])


def test_condition_is_polled_until_it_holds() -> None:
    assert polled(ready_at=5, timeout=10) == (6, [2, 4, 6])


def test_the_deadline_is_kept() -> None:
    with pytest.raises(TimeoutError, match="context deadline exceeded"):
        polled(ready_at=100, timeout=5)


def test_exception_of_the_condition_ends_the_polling() -> None:
    def fails() -> bool:
        raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        virtual_time.run(poll(fails, every=1, within=10))
