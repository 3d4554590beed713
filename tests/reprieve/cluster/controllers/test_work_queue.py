"""Keys come once, in order, later if so wished, and more and more rarely while they fail."""

import asyncio
import itertools
from random import Random

from reprieve.cluster.controllers.controller_loop import FIRST_RETRY, LAST_RETRY, WorkQueue


async def test_a_key_named_twice_is_looked_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(Random(1))
    for key in ("b", "a", "b"):
        queue.add(key)
    keys = [await queue.get(), await queue.get(), str(len(queue))]

    assert keys == ["b", "a", "0"]


async def test_earliest_of_several_delays_of_a_key_counts() -> None:
    queue: WorkQueue[str] = WorkQueue(Random(1))
    queue.add_after("a", 9)
    queue.add_after("a", 5)
    queue.add_after("a", 7)
    queue.add_after("b", 20)
    arrivals = [(await queue.get(), asyncio.get_running_loop().time()) for _ in range(2)]

    assert arrivals == [("a", 5), ("b", 20)]


async def test_waiting_consumer_is_woken_by_a_new_key() -> None:
    queue: WorkQueue[str] = WorkQueue(Random(1))
    queue.add_after("late", 100)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("now")

    assert waiting.result() == "now"


async def test_a_key_that_fails_waits_twice_as_long_each_time_up_to_a_minute() -> None:
    queue: WorkQueue[str] = WorkQueue(Random(1))
    delays = []
    for _ in range(20):
        delays.append(queue.retry("a"))
        await queue.get()
    queue.forget("a")
    afresh = queue.retry("a")

    assert FIRST_RETRY <= delays[0] <= FIRST_RETRY * 1.1
    assert all(1.8 < later / sooner < 2.3 for sooner, later in itertools.pairwise(delays[:11]))
    assert LAST_RETRY <= delays[-1] <= LAST_RETRY * 1.1
    assert afresh <= FIRST_RETRY * 1.1


async def test_a_key_that_asks_for_a_rounding_error_gets_on() -> None:
    """ "Due at 12.3" minus "now 12.299999" may be less than the clock can tell; asking for that must not stop time."""
    queue: WorkQueue[str] = WorkQueue(Random(1))
    await asyncio.sleep(1000)
    for _ in range(10):
        queue.add_after("a", 1e-14)
        await queue.get()

    assert asyncio.get_running_loop().time() > 1000
