"""Work in a child process: its result comes back, its memory does not, and it ends when nobody waits for it any
more.
"""

import asyncio
import copyreg
import errno
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from extender.engine.runtime.plugin_calls import with_long_work
from extender.values.cel.evaluation import evaluate, is_cheap
from extender.values.cel.selector import Facts
from extender.values.concurrency.child_process import ChildEndedError, DeadlineError, NoChildError, in_child
from extender.values.config.configuration import ConfigErrors
from extender.values.golang.field_errors import FieldError
from tests.kit.waiting import DEADLINE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the work is done in a thread")


class Unpicklable(Exception):
    """Takes two arguments and tells pickle of one."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def failing(exc: Exception) -> Callable[[], None]:
    def work() -> None:
        raise exc

    return work


def children() -> set[str]:
    pids: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            pids.update((task / "children").read_text().split())
    return pids


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_result_of_any_size_comes_back() -> None:
    assert asyncio.run(in_child(lambda: b"x" * 10_000_000)) == b"x" * 10_000_000
    assert asyncio.run(in_child(lambda: {"of": [1, None]})) == {"of": [1, None]}


def test_the_work_sees_what_there_is_and_changes_nothing() -> None:
    entries = ["before"]

    def work() -> list[str]:
        entries.append("changed")
        return entries

    assert asyncio.run(in_child(work)) == ["before", "changed"]
    assert entries == ["before"]


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("no"),
        ConfigErrors([FieldError("profiles", detail="too many"), "and another"], "load"),
        KeyError("gone"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_exception_of_the_child_is_raised_with_its_traceback(exc: Exception) -> None:
    with pytest.raises(type(exc)) as raised:
        asyncio.run(in_child(failing(exc)))

    assert str(raised.value) == str(exc)
    assert "in work" in "".join(raised.value.__notes__)


def test_unpicklable_exception_is_raised_as_a_runtime_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # Libraries that other tests import teach pickle to send any exception.
    monkeypatch.setitem(copyreg.dispatch_table, Unpicklable, lambda exc: (Unpicklable, exc.args))
    with pytest.raises(RuntimeError, match="onetwo"):
        asyncio.run(in_child(failing(Unpicklable("one", "two"))))


def test_killed_child_raises_child_ended_error() -> None:
    def work() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    before = children()

    with pytest.raises(ChildEndedError, match="-9"):
        asyncio.run(in_child(work))
    assert children() <= before


def test_cancelled_caller_returns_once_the_child_has_ended() -> None:
    before = children()

    async def story() -> set[str]:
        waiting = asyncio.ensure_future(in_child(threading.Event().wait))
        await asyncio.to_thread(until, lambda: bool(children() - before))
        started = children() - before
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return started

    assert len(asyncio.run(story())) == 1
    assert children() <= before


@pytest.mark.parametrize("steps", range(4))
def test_a_caller_who_goes_at_any_moment_closes_no_descriptor_of_others(steps: int) -> None:
    """Its own is closed once. Closed again, it might be a connection that has got the number meanwhile."""

    async def main() -> list[int]:
        task = asyncio.create_task(in_child(lambda: time.sleep(60)))
        for _ in range(steps + 1):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
        del task
        gc.collect()
        return descriptors

    descriptors = uvloop.run(main())

    for descriptor in descriptors:
        os.close(descriptor)  # fails where it is closed


def test_child_that_is_not_ready_in_time_is_killed() -> None:
    before = children()

    with pytest.raises(DeadlineError, match=r"0\.1 s"):
        asyncio.run(in_child(threading.Event().wait, seconds=0.1))
    assert children() <= before


@pytest.mark.parametrize(
    "work", [lambda: bytearray(2**27), lambda: [str(number) for number in range(10**7)]], ids=["at once", "bit by bit"]
)
def test_child_that_takes_more_memory_than_it_may_fails(work: Callable[[], object]) -> None:
    with pytest.raises(MemoryError):
        asyncio.run(in_child(work, memory=2**25))


def test_memory_that_the_process_has_does_not_count() -> None:
    ballast = bytearray(2**27)

    assert asyncio.run(in_child(lambda: len(bytes(2**24)) + len(ballast), memory=2**25)) == 2**24 + 2**27


def test_a_connection_that_the_process_closes_is_closed_although_there_is_a_child() -> None:
    ours, theirs = socket.socketpair()

    async def story() -> bool:
        waiting = asyncio.ensure_future(in_child(lambda: time.sleep(60)))
        await asyncio.to_thread(until, lambda: bool(children() - before))
        ours.close()
        closed = await asyncio.to_thread(lambda: bool(select.select([theirs], [], [], 30)[0]))
        waiting.cancel()
        await asyncio.wait([waiting])
        return closed and theirs.recv(1) == b""

    before = children()
    with theirs:
        assert asyncio.run(story())


def test_expressions_that_need_a_process_of_their_own_get_one_in_the_child() -> None:
    """The worker of the process, which may be in use, is left to it."""
    expression = (
        " || ".join(f'device.driver.lowerAscii().replace("a", "{number}") == "x"' for number in range(60)) + " || true"
    )
    facts = Facts({"driver": "gpu.example.com", "attributes": {}, "capacity": {}}, 100)
    assert not is_cheap(expression)

    assert evaluate(expression, facts)
    assert asyncio.run(in_child(lambda: evaluate(expression, facts)))
    assert evaluate(expression, facts)


def test_an_event_loop_and_threads_of_its_own_work_in_the_child() -> None:
    async def shout() -> str:
        return "!"

    async def story() -> str:
        return await asyncio.to_thread(str, 5) + await with_long_work(shout)

    async def outer() -> str:
        return await in_child(lambda: asyncio.run(story()))

    assert asyncio.run(outer()) == "5!"


def test_failed_fork_raises_no_child_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refused)

    with pytest.raises(NoChildError, match="temporarily unavailable"):
        asyncio.run(in_child(os.getpid))


def test_on_other_systems_a_thread_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    async def story() -> int:
        return await in_child(lambda: asyncio.run(asyncio.sleep(0, os.getpid())))

    assert asyncio.run(story()) == os.getpid()
