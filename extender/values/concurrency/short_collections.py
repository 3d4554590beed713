"""The garbage collector, which is kept from walking over the whole cluster while a caller waits."""

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, Never, final

LONGEST: Final = 0.005
"""Seconds of processor time: what survives a full collection that takes longer is left alone by all later ones."""

DUE: Final = 3
"""The number of collections of younger objects after which a full one is due: some 25,000 new objects, which take 3 to
15 ms.
"""

BETWEEN: Final = 0.02
"""Seconds between two looks at whether a collection is due."""

BUSY: Final = 0.005
"""Seconds of processor time of the process after which younger objects are collected."""

NEARLY_FULL: Final = 0.75
"""The part of the memory limit from which on all objects are looked at again."""

FURTHER: Final = 0.05
"""The part of the memory limit by which the process has to grow before that is done once more."""

OVERDUE: Final = 1000
"""A full collection that is due for this many collections of younger objects begins in the middle of a step, which has
no end.
"""

_MEMORY: Final = Path("/proc/self/statm")


@final
class _Collector:
    """What blocks of `short_collections` change of the process's collector. State: how many blocks are open, and what
    was before the first.

    A process may run several services at one time, as tests do: the last one that ends puts back what was before.
    """

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._open = 0
        self._before = gc.get_threshold()

    def enter(self) -> None:
        with self._lock:
            if not self._open:
                self._before = gc.get_threshold()
                gc.set_threshold(*self._before[:2], OVERDUE)
            self._open += 1
        gc.collect()
        gc.freeze()

    def leave(self) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                gc.unfreeze()
                gc.set_threshold(*self._before)


_COLLECTOR: Final = _Collector()


@asynccontextmanager
async def short_collections(
    longest: float = LONGEST,
    between: float = BETWEEN,
    *,
    limit: int | None = None,
    memory: Callable[[], int] | None = None,
) -> AsyncIterator[None]:
    """Keeps collections short until the end of the block, and full ones in steps of the event loop of their own.

    A collection that begins in the middle of a long step makes it longer still, so that no full one does. What is there
    at the beginning, and what survives a long collection later, is left alone: the objects of a cluster are here to
    stay, and go by their reference counts. What is under way then, such as requests, is in no cycle once it is over
    (tests/api/test_cycles.py). Should it be in one all the same, it stays until the process nears its memory limit:
    only then all objects are looked at again, which takes 0.4 s among 50,000 pods.

    Python counts objects that are made less those that are gone, so that it does not collect while pods are replaced,
    and all the new ones would be looked at at once. Younger objects are therefore collected after some processor time,
    too.

    Arguments:
        limit: the most bytes of memory that the process may have; by default what the machine has.
        memory: returns the bytes that it has; by default what the system says.
    """
    _COLLECTOR.enter()
    most = limit if limit is not None else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    collecting = asyncio.create_task(_collect_when_due(longest, between, most, memory or _resident), name="collections")
    try:
        yield
    finally:
        collecting.cancel()
        _COLLECTOR.leave()


async def _collect_when_due(longest: float, between: float, limit: int, memory: Callable[[], int]) -> Never:
    look_again = NEARLY_FULL * limit
    busy = time.process_time()
    num_own, own = 0, 0.0
    while True:
        await asyncio.sleep(between)
        began = time.thread_time()
        if gc.get_count()[2] - num_own >= DUE or own > longest:
            gc.collect()
            num_own, own = 0, 0.0
            if time.thread_time() - began > longest:
                if memory() > look_again:
                    gc.unfreeze()
                    gc.collect()
                    look_again = memory() + FURTHER * limit
                gc.freeze()
            busy = time.process_time()
        elif time.process_time() - busy > BUSY:
            gc.collect(1)
            num_own += 1
            own += time.thread_time() - began
            busy = time.process_time()


def _resident() -> int:
    """Returns the bytes of memory that the process has."""
    with suppress(OSError):
        return int(_MEMORY.read_bytes().split()[1]) * resource.getpagesize()
    # Not on Linux: the most that it has had, which macOS counts in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses Python's collector of cycles: searching a growing heap again and again takes longer than filling it.

    Objects without references are still freed at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
