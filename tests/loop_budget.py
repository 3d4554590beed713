"""The event loop's budget: a test fails if the code of the service holds an event loop for too long at once.

Counted is CPU time of the loop's thread, so that a busy machine fails no test, without that of the garbage collector, which has the heap of
the whole test run to walk. What a test does in a coroutine of its own is not counted, nor are commands, whose loop serves nobody else.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

MOST_SECONDS: Final = 0.25
"""Five times what the service promises: the first call of anything imports and compiles."""

_ROOT: Final = Path(__file__).resolve().parents[1]
_EXEMPT: Final = tuple(str(_ROOT / folder) for folder in ("tests", "api/cli", "api/doctor", "extender/testing"))


@contextmanager
def held_too_long(most: float = MOST_SECONDS) -> Iterator[list[str]]:
    """Collects, as text, the steps of event loops in this process that took more CPU seconds than this."""
    found: list[str] = []
    run, collecting, began_collecting = asyncio.Handle._run, 0.0, 0.0

    def on_collection(phase: str, info: object) -> None:
        nonlocal collecting, began_collecting
        if phase == "start":
            began_collecting = time.thread_time()
        else:
            collecting += time.thread_time() - began_collecting

    def measured(handle: Any) -> None:
        began, collecting_before = time.thread_time(), collecting
        run(handle)
        seconds = time.thread_time() - began - (collecting - collecting_before)
        if seconds > most:
            name, file = _what(handle._callback)
            if not file.startswith(_EXEMPT):
                found.append(f"{name} held the event loop for {seconds * 1e3:.0f} ms of CPU time")

    gc.callbacks.append(on_collection)
    asyncio.Handle._run = measured  # type: ignore[assignment,method-assign]
    try:
        yield found
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        gc.callbacks.remove(on_collection)


def _what(callback: Callable[..., object]) -> tuple[str, str]:
    """Returns the name of a callback, or of the coroutine of the task whose step it is, and its file."""
    owner = getattr(callback, "__self__", callback)
    what: Any = owner.get_coro() if isinstance(owner, asyncio.Task) else callback
    code = getattr(what, "cr_code", None) or getattr(what, "__code__", None)
    return getattr(what, "__qualname__", repr(what)), getattr(code, "co_filename", "")
