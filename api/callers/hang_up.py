"""Work for a caller who has hung up ends.

An ASGI server cancels nothing when a connection closes; it says so when it is asked for the next message.
`until_hang_up` asks, while a question waits for its turn or is worked on, and only then: those are the moments that may
take long.

It is not a middleware, because most answers must not be cut short. `bind` and the writes to the embedded cluster go on
to their end, so that what became of a pod is never in doubt; `filter`, `prioritize` and `preempt` are worked out
without a pause in which they could be cancelled; streams and watches notice by themselves.

A half-closed connection cannot be told from a closed one, and counts as closed, as in Go's net/http. The hang-up of a
caller who has sent another request behind this one is noticed only when this one is answered: the server does not read
on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect


@asynccontextmanager
async def until_hang_up(request: Request) -> AsyncIterator[None]:
    """Cancels what is awaited in the block as soon as the caller has hung up.

    Raises:
        ClientDisconnect: the caller has hung up before the block came to its end. No answer is sent.
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
