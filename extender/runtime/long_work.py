"""Runs what plugins defer with `LongWork`, in a thread of its own, so that the event loop is free meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from extender.concurrency.child_process import renewed_in_children
from extender.framework import LongWork

T = TypeVar("T")

# One thread computes, because every further one would take as much of the interpreter from the event loop. Plugins that
# wait have their own.
_THREADS: Final[dict[str, ThreadPoolExecutor]] = {}
renewed_in_children(_THREADS.clear)


async def do_long_work(long: LongWork) -> None:
    """Does the deferred work; it takes its turn behind work that was deferred before. The work ends early if the caller is cancelled."""
    thread = _THREADS.get(long.thread)
    if thread is None:
        thread = _THREADS[long.thread] = ThreadPoolExecutor(1, f"long-work {long.thread}".rstrip())
    is_abandoned = threading.Event()
    try:
        await asyncio.get_running_loop().run_in_executor(thread, long.work, lambda: not is_abandoned.is_set())
    finally:
        is_abandoned.set()


async def with_long_work(attempt: Callable[[], T]) -> T:
    """Returns the result of the attempt, which is repeated after each `LongWork` that it raises."""
    kept: LongWork | None = None
    while True:
        try:
            return attempt()
        except LongWork as long:
            kept = long.with_traceback(None)  # the frames of the cycle are not needed
        await do_long_work(kept)
