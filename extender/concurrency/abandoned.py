"""Work that nobody waits for any more ends."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar, final

T = TypeVar("T")

IsWanted = Callable[[], bool]
"""Whether somebody still waits for the answer."""


@final
class AbandonedError(Exception):
    """Nobody waits for the answer any more, and so there is none."""


def always_wanted() -> bool:
    """Somebody waits until the end."""
    return True


def check_wanted(is_wanted: IsWanted) -> None:
    """AbandonedError unless somebody still waits: to be asked between two long steps."""
    if not is_wanted():
        raise AbandonedError


async def in_thread(work: Callable[[IsWanted], T]) -> T:
    """What comes of the work, done in a thread. It is told when nobody waits for it any more, and is not begun then.

    Whoever is cancelled here goes on only once the thread has done with the work, so that what he holds for it, such as a place among those
    that may use a processor, is free when it really is.
    """
    is_abandoned: Final = threading.Event()

    def is_wanted() -> bool:
        return not is_abandoned.is_set()

    def unless_abandoned() -> T:
        check_wanted(is_wanted)
        return work(is_wanted)

    working = asyncio.get_running_loop().run_in_executor(None, unless_abandoned)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        is_abandoned.set()
        # Whatever it ends with is nobody's any more. A second cancellation gives up the wait, and the first one says why.
        working.add_done_callback(lambda done: done.cancelled() or done.exception())
        await _ended(working)
        raise


async def _ended(working: asyncio.Future[T]) -> None:
    try:
        await asyncio.wait([working])
    except asyncio.CancelledError:
        return
