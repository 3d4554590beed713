"""The garbage collector, which is kept from walking over the whole cluster while a caller waits."""

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

LONGEST: Final = 0.02
"""Seconds of processor time: what survives a full collection that takes longer is left alone by all later ones."""


@contextmanager
def short_collections(longest: float = LONGEST) -> Iterator[None]:
    """Keeps full collections short until the end of the block.

    What is there at the beginning, and what survives a long collection later, is not looked at again: the objects of a cluster are here to
    stay, and go by their reference counts. Only a cycle among them that breaks off later would stay, and they form none.
    """
    began = 0.0

    def on_collection(phase: Literal["start", "stop"], info: Mapping[str, Any]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        elif info["generation"] == 2 and time.thread_time() - began > longest:
            gc.freeze()

    gc.collect()
    gc.freeze()
    gc.callbacks.append(on_collection)
    try:
        yield
    finally:
        gc.callbacks.remove(on_collection)
        gc.unfreeze()


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
