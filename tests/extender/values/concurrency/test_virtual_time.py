import asyncio
import contextlib
import itertools
import math
import socket
import time

import pytest

from extender.values.concurrency import virtual_time


async def test_an_hour_passes_at_once():
    await asyncio.sleep(3600)

    assert asyncio.get_running_loop().time() == pytest.approx(3600)


async def test_sleepers_wake_in_the_order_of_their_alarms():
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((name, asyncio.get_running_loop().time()))

    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("late", 60.0), ("early", 0.1), ("between", 30.0)):
            tasks.create_task(sleeper(name, seconds))

    assert woken == [("early", 0.1), ("between", 30.0), ("late", 60.0)]


async def test_timers_a_hair_apart_run_one_after_the_other():
    early, late = 60.0, math.nextafter(60.0, 61.0)
    times: list[float] = []

    async def wait_until(when: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < when:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(when):
                    await loop.create_future()
        times.append(loop.time())

    await asyncio.gather(wait_until(early), *(wait_until(late) for _ in range(2)))

    assert times == [early, late, late]


async def test_a_timeout_ends_what_takes_longer():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await asyncio.sleep(600)

    assert asyncio.get_running_loop().time() == 5


def test_deadlock_error_names_the_task_that_waits_for_ever():
    async def wait_for_nothing() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(virtual_time.DeadlockError, match="wait_for_nothing"):
        virtual_time.run(wait_for_nothing())


def test_deadlock_error_at_the_horizon_names_the_task_that_waits_beside_an_endless_loop():
    async def tick() -> None:
        for _ in itertools.count():
            await asyncio.sleep(1)

    async def wait_beside_it() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(tick())

    with pytest.raises(virtual_time.DeadlockError, match=r"after 101 s: .*wait_beside_it"):
        virtual_time.run(wait_beside_it(), horizon=100)


async def test_work_in_a_thread_takes_no_time():
    def decoded() -> str:
        time.sleep(0.01)
        return "done"

    async with asyncio.timeout(0.001):
        result = await asyncio.to_thread(decoded)

    assert (result, asyncio.get_running_loop().time()) == ("done", 0)


def test_sockets_are_refused():
    async def read_from_a_socket() -> None:
        reader, writer = socket.socketpair()
        with reader, writer:
            asyncio.get_running_loop().add_reader(reader, print)

    with pytest.raises(RuntimeError, match="in-memory"):
        virtual_time.run(read_from_a_socket())


def test_an_exception_comes_through():
    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        virtual_time.run(fail())
