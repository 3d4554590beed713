"""The garbage collector, which is kept from walking over the whole cluster while a caller waits."""

import asyncio
import gc
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, Never, final

LONGEST: Final = 0.005
"""Seconds of processor time: what survives a full collection that takes longer is left alone by all later ones."""

DUE: Final = 3
"""The number of collections of younger objects after which a full one is due: some 25,000 new objects, which take 3 to 15 ms."""

BETWEEN: Final = 0.02
"""Seconds between two looks at whether a full collection is due."""

MOST_GROWTH: Final = 1.5
"""All objects are looked at again once the process has so many times the memory that it had then."""

_STATUS: Final = Path("/proc/self/status")

OVERDUE: Final = 1000
"""A full collection that is due for this many collections of younger objects begins in the middle of a step, which has no end."""


@final
class _Collector:
    """What blocks of `short_collections` change of the process's collector. State: how many blocks are open, and what was before the first.

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
async def short_collections(longest: float = LONGEST, between: float = BETWEEN) -> AsyncIterator[None]:
    """Keeps full collections short until the end of the block, and in steps of the event loop of their own.

    A collection that begins in the middle of a long step makes it longer still, so that none does. What is there at the beginning, and what
    survives a long collection later, is left alone: the objects of a cluster are here to stay, and go by their reference counts. What is
    under way then, such as requests, may be a cycle once it is over, so that all objects are looked at again when the process has become
    MOST_GROWTH times as large: that takes half a second among 50,000 pods, and is as rare as that.
    """
    _COLLECTOR.enter()
    collecting = asyncio.create_task(_collect_when_due(longest, between), name="collections")
    try:
        yield
    finally:
        collecting.cancel()
        _COLLECTOR.leave()


async def _collect_when_due(longest: float, between: float) -> Never:
    size = _most_memory()
    while True:
        await asyncio.sleep(between)
        if gc.get_count()[2] >= DUE:
            began = time.thread_time()
            gc.collect()
            if time.thread_time() - began > longest:
                # To count the objects that are left alone would take nearly as long as to look at them.
                if _most_memory() > MOST_GROWTH * size:
                    gc.unfreeze()
                    gc.collect()
                    size = _most_memory()
                gc.freeze()


def _most_memory() -> int:
    """Returns the most memory that the process has had, in KiB. The system's own figure may be that of the process that began this one."""
    with suppress(OSError):
        for line in _STATUS.read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # not on Linux


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
