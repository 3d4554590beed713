"""Server-sent events for open pages: one whenever something has changed. An event does not say what; the page is
fetched again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final, final

from extender.values import limits

SECONDS_BETWEEN: Final = 1.0
PINGS_EACH: Final = 15
"""The number of looks without news after which a stream sends a sign of life."""


@final
class Streams:
    """All streams of a service. State: how many there are, and whether they should end."""

    def __init__(self) -> None:
        self._closing = asyncio.Event()
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether no further stream may begin."""
        return self._count >= limits.STREAMS

    def close(self) -> None:
        """Ends all streams, since they never end by themselves and the server waits for them. Pages connect again."""
        self._closing.set()

    async def follow(self, version: Callable[[], str]) -> AsyncGenerator[bytes, None]:
        """Yields events: the first one at once, then one whenever the version has changed, until the end of the
        service.
        """
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
