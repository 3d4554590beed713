"""The process: its standard descriptors, and its garbage collector, which leaves alone what the first sync brought."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

THRESHOLDS: Final = (50_000, 20, 10)
"""Of Python's three generations: its own, 700, begin in the middle of every decision."""


def fill_standard_descriptors() -> None:
    """Opens closed standard descriptors on /dev/null, so that no socket becomes stderr and gets the log."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


@asynccontextmanager
async def rare_collections(synced: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Makes collections rare until the end of the block; what is there once `synced` returns is never walked."""

    async def freeze() -> None:
        await synced()
        gc.collect()
        gc.freeze()

    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    freezing = asyncio.create_task(freeze(), name="freeze what the first sync brought")
    try:
        yield
    finally:
        freezing.cancel()
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses collections while what makes no garbage is loaded: a file of 50,000 pods in 0.2 s instead of 0.4 s."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def loading_modules() -> Iterator[None]:
    """Pauses collections while modules are loaded, which then stay, so that no later collection walks over them: the
    first three took a fifth of a second. numpy starts no threads, unless it is told how many: nothing here is large
    enough for them, and each spins for a tenth of a second of CPU when it begins.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with collector_paused():
        yield
        gc.freeze()
