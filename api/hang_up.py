"""Callers who hang up: what is done for nobody ends.

A server of ASGI cancels nothing when a connection closes; it says so to whoever asks it for the next message. Here somebody asks, while a
question waits for its turn or is worked on, and only then: those are the moments that may take long.

Not a layer before the application, because most answers must not be cut short. `bind` and the writes to our own cluster go on to their end,
so that nobody has to guess what became of a pod; `filter`, `prioritize` and `preempt` are worked out in one piece, in which nothing can be
cut, and shall cost nothing more; streams and watches hear of it by themselves.

A caller who only says that he will send no more (a half-closed connection) cannot be told from one who is gone, and counts as such, as in
Go's net/http. One who has sent another request behind this one is heard of only when this one is answered: the server does not read on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect


@asynccontextmanager
async def until_hang_up(request: Request) -> AsyncIterator[None]:
    """Cancel what is awaited in the block as soon as the caller has hung up.

    Raises:
        ClientDisconnect: he has, and the block did not come to its end. Nobody is to be answered.
    """
    await request.body()  # then there is only one thing that can still come
    try:
        async with asyncio.timeout(None) as patience:
            # Not in a TaskGroup, which would wrap whatever the block raises; the task does not outlive the block.
            listening = asyncio.create_task(_hear(request, patience), name="listening for a hang-up")
            try:
                yield
            finally:
                listening.cancel()
                await asyncio.wait([listening])
    except TimeoutError:
        if not patience.expired():
            raise
        raise ClientDisconnect from None


async def _hear(request: Request, patience: asyncio.Timeout) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    patience.reschedule(asyncio.get_running_loop().time())
