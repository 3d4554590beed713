"""Does `LongWork` in a thread of its own, so that other pods are scheduled meanwhile."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from extender.engine.framework.devices import LongWork
from extender.values.concurrency.child_process import renewed_in_children

T = TypeVar("T")

# One thread, because every further one would take as much of the interpreter from the event loop. It is made when it is
# first needed.
_THREADS: Final[list[ThreadPoolExecutor]] = []
renewed_in_children(_THREADS.clear)


async def do_long_work(long: LongWork) -> None:
    """Does the deferred work; it takes its turn behind work that was deferred before. The work ends early if the caller
    is cancelled.
    """
    if not _THREADS:
        _THREADS.append(ThreadPoolExecutor(1, "long-work"))
    (thread,) = _THREADS
    is_abandoned = threading.Event()
    try:
        await asyncio.get_running_loop().run_in_executor(thread, long.work, lambda: not is_abandoned.is_set())
    finally:
        is_abandoned.set()


async def with_long_work(attempt: Callable[[], Awaitable[T]]) -> T:
    """Returns what the attempt comes to, which is repeated after each `LongWork` that it raises."""
    done: list[LongWork] = []
    while True:
        try:
            return await attempt()
        except LongWork as long:
            done.append(long.with_traceback(None))  # the frames of the cycle are not needed
        await do_long_work(done[-1])
