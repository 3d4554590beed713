"""Answers that are sent in parts for as long as their caller listens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Final, final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from extender.values import limits

SECONDS_BETWEEN: Final = 1.0
PINGS_EACH: Final = 15
"""The number of looks without news after which a stream sends a sign of life."""


async def send_parts(
    start: Message,
    parts: AsyncGenerator[bytes, None],
    receive: Receive,
    send: Send,
    closing: asyncio.Event | None = None,
) -> None:
    """Sends the parts until they end, the caller goes away, or `closing` is set.

    No TaskGroup is used, whose exceptions refer to the frames that refer to them: callers of streams hang up all the
    time.
    """
    async with aclosing(parts):
        await send(start)
        disconnect = asyncio.create_task(_until_gone(receive))
        ends: list[asyncio.Task[object]] = [asyncio.create_task(_send_each(parts, send)), disconnect]
        if closing is not None:
            ends.append(asyncio.create_task(closing.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)
    for task in ends:
        if not task.cancelled():
            task.result()
    if disconnect.cancelled():
        await send({"type": "http.response.body", "body": b""})


@final
class StreamedResponse(Response):
    """A response of which the parts are yielded one after the other. They are closed when the caller goes away."""

    def __init__(self, parts: AsyncGenerator[bytes, None], headers: dict[str, str], media_type: str) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self._parts = parts
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send_parts(start, self._parts, receive, send)


@final
class Streams:
    """Server-sent events for open pages: one whenever something has changed, upon which the page is fetched again.

    State: how many streams there are, and whether they should end.
    """

    def __init__(self) -> None:
        self._closing = asyncio.Event()
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= limits.STREAMS

    def close(self) -> None:
        """Ends all streams, since they never end by themselves and the server waits for them. Pages connect again."""
        self._closing.set()

    async def follow(self, version: Callable[[], str]) -> AsyncGenerator[bytes, None]:
        """Yields the first event at once, then one whenever the version has changed, until the service ends."""
        self._count += 1
        try:
            last, silent = "", 0
            yield b"retry: 2000\n\n"
            while not self._closing.is_set():
                now = version()
                if now != last:
                    last, silent = now, 0
                    yield f"event: version\ndata: {now}\n\n".encode()
                elif silent >= PINGS_EACH:
                    silent = 0
                    yield b": still here\n\n"
                silent += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(SECONDS_BETWEEN):
                        await self._closing.wait()
        finally:
            self._count -= 1


async def _send_each(parts: AsyncIterator[bytes], send: Send) -> None:
    async for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
