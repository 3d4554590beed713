"""Work in threads that stops when its caller was cancelled."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar, final

T = TypeVar("T")

IsWanted = Callable[[], bool]
"""Returns whether the result is still wanted."""


@final
class AbandonedError(Exception):
    """The result is no longer wanted, so there is none."""


def always_wanted() -> bool:
    """Returns True, for work that cannot be abandoned."""
    return True


def check_wanted(is_wanted: IsWanted) -> None:
    """Raises AbandonedError if the result is no longer wanted. For calls between two long steps."""
    if not is_wanted():
        raise AbandonedError


async def in_thread(work: Callable[[IsWanted], T]) -> T:
    """Returns the result of the work, which is done in a thread. The work is not begun once the caller was cancelled,
    and can ask for that.

    A caller that is cancelled goes on only when the thread has ended, so that what it holds for the work, such as a
    slot for a processor, is released when it is really free.
    """
    is_abandoned: Final = threading.Event()

    def is_wanted() -> bool:
        return not is_abandoned.is_set()

    # Not the future's result or exception: a future of an executor is part of a cycle, so that a large result, or all
    # that the frames of an exception hold, would stay until the garbage collector finds it.
    results: Final[list[T]] = []
    failures: Final[list[Exception]] = []

    def unless_abandoned() -> None:
        try:
            check_wanted(is_wanted)
            results.append(work(is_wanted))
        except Exception as exc:
            failures.append(exc)

    working = asyncio.get_running_loop().run_in_executor(None, unless_abandoned)
    try:
        await asyncio.shield(working)
        if failures:
            raise failures.pop()
        return results.pop()
    except asyncio.CancelledError:
        is_abandoned.set()
        # Its result or exception is dropped. A second cancellation gives up the wait, and the first one is raised.
        working.add_done_callback(lambda done: done.cancelled() or done.exception())
        await _ended(working)
        raise


async def _ended(working: asyncio.Future[None]) -> None:
    try:
        await asyncio.wait([working])
    except asyncio.CancelledError:
        return
