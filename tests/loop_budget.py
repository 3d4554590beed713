"""The event loop's budget: a test fails if the code of the service holds an event loop for too long at once.

Counted is CPU time of the loop's thread, so that a busy machine fails no test, without that of the garbage collector,
which has the heap of the whole test run to walk. A machine that is half as fast, or that is slowed down as much by its
other work, has twice the budget. What a test does in a coroutine of its own is not counted, nor are commands and
simulations, whose loops serve nobody else, nor what a service does before its first request, such as to read its state.
"""

import asyncio
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

MOST_SECONDS: Final = 0.25
"""Five times what the service promises: the first call of anything imports and compiles."""

_REFERENCE_SECONDS: Final = 0.007
"""CPU seconds that `_reference` takes on two quiet cores; 5 to 8 ms were measured."""

_OBJECTS: Final = 15_000
_TIMES: Final = 5

_ROOT: Final = Path(__file__).resolve().parents[1]
_EXEMPT: Final = tuple(
    str(_ROOT / folder)
    for folder in (
        "tests",
        "api/cli",
        "api/doctor",
        "extender/testing",
        "extender/lab/simulation",
        "extender/answers/what_if",
        "extender/engine/evaluation",
    )
)
"""The last two run in loops of threads of their own."""


@contextmanager
def held_too_long(most: float = MOST_SECONDS, most_blocked: float = math.inf) -> Iterator[list[str]]:
    """Collects, as text, the steps of asyncio's event loops in this process that took too long. Those of uvloop are not
    seen.

    Arguments:
        most: CPU seconds of a step.
        most_blocked: seconds for which a step waits for anything but a processor, such as a lock or a pipe. Needs
            Linux.
    """
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
        blocked_before = _blocked() if most_blocked < math.inf else 0.0
        run(handle)
        seconds = time.thread_time() - began - (collecting - collecting_before)
        blocked = _blocked() - blocked_before if most_blocked < math.inf else 0.0
        if (seconds > most and seconds > most * slowness()) or blocked > most_blocked:
            name, file = _what(handle._callback)
            if not file.startswith(_EXEMPT) and "/playwright/" not in file and name != "LifespanOn.main":
                found.append(
                    f"{name} held the event loop for {seconds * 1e3:.0f} ms of CPU time, and {blocked * 1e3:.0f} ms of "
                    "waiting"
                )

    gc.callbacks.append(on_collection)
    asyncio.Handle._run = measured  # type: ignore[assignment,method-assign]
    try:
        yield found
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        gc.callbacks.remove(on_collection)


def slowness() -> float:
    """Returns how many times as long as usual a fixed piece of work takes at the moment, 1 if it is no longer than
    that.
    """
    began = time.thread_time()
    for _ in range(_TIMES):
        _reference()
    return max((time.thread_time() - began) / _TIMES / _REFERENCE_SECONDS, 1.0)


def _reference() -> int:
    """Makes objects and looks them up, as the service mostly does. None of them is one that the garbage collector walks
    through.
    """
    objects = {f"node-{number}": str(number) for number in range(_OBJECTS)}
    return sum(len(objects[name]) for name in sorted(objects))


def _blocked() -> float:
    """Returns the seconds for which this thread was neither running nor ready to run, from a fixed point in time on."""
    running, ready, _ = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    return time.monotonic() - (int(running) + int(ready)) / 1e9


def _what(callback: Callable[..., object]) -> tuple[str, str]:
    """Returns the name of a callback, or of the coroutine of the task whose step it is, and its file."""
    owner = getattr(callback, "__self__", callback)
    what: Any = owner.get_coro() if isinstance(owner, asyncio.Task) else callback
    code = getattr(what, "cr_code", None) or getattr(what, "__code__", None)
    return getattr(what, "__qualname__", repr(what)), getattr(code, "co_filename", "")
