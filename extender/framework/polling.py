"""Asking again and again, until it is so."""

import asyncio
from collections.abc import Callable

DEADLINE_EXCEEDED = "context deadline exceeded"
"""Go's words for it."""


async def poll(is_done: Callable[[], bool], *, every: float, within: float, at_once: bool = False) -> None:
    """Wait until `is_done()`. What it raises ends the waiting.

    Arguments:
        every: seconds between questions.
        within: seconds for all of it.
        at_once: ask the first time before waiting.

    Raises:
        TimeoutError: it was not done in time.

    Upstream: apimachinery/pkg/util/wait/poll.go, PollUntilContextTimeout (v1.36.2).
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    if at_once and is_done():
        return
    while loop.time() + every <= deadline:
        await asyncio.sleep(every)
        if is_done():
            return
    await asyncio.sleep(max(0.0, deadline - loop.time()))
    raise TimeoutError(DEADLINE_EXCEEDED)
