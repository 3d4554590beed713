"""Making very many objects at once that are all there to stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's collector of cycles rests while the block runs: looking through a growing heap again and again takes longer than filling it.

    What is no longer referred to is still freed at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
