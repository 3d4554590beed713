"""The lines of a watch."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import final

from extender.apiserver.errors import NoAnswer, NotKubernetes
from extender.apiserver.transport.bodies import Body
from extender.apiserver.transport.failures import CARRIER_ERRORS, failure

MAX_LINE_BYTES = 64 << 20
"""Far more than an object may have; an endless line ends the watch before it fills the memory."""


@final
class WatchLines(AsyncIterator[bytes]):
    """One watch event after the other, as they come, each a whole line of JSON without its line feed.

    Ends when the server ends the watch; what came of a line that it did not finish is dropped.

    Raises:
        NoAnswer: when nothing, not even a bookmark, came for `silence` seconds, or the connection was cut.
        NotKubernetes: when a line does not end.
    """

    def __init__(self, request: str, body: Body, silence: float) -> None:
        self._request = request
        self._body = body
        self._silence = silence
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    async def __anext__(self) -> bytes:
        while not self._lines:
            self._split(await self._next_chunk())
        return self._lines.popleft()

    def arrived(self) -> Sequence[bytes]:
        """The further lines that have come already: no waiting, and none of them comes again."""
        lines = tuple(self._lines)
        self._lines.clear()
        return lines

    async def _next_chunk(self) -> bytes:
        try:
            async with asyncio.timeout(self._silence):
                chunk = await self._body.read_some()
        except TimeoutError as error:
            raise NoAnswer(f"{self._request}: not a byte for {self._silence:g} s", timed_out=True) from error
        except CARRIER_ERRORS as error:
            raise failure(self._request, error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def _split(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        self._rest_bytes += len(first)
        if self._rest_bytes > MAX_LINE_BYTES:
            raise NotKubernetes(f"{self._request}: an event of more than {MAX_LINE_BYTES >> 20} MiB")
        if not others:
            return
        *whole, rest = b"".join(self._rest), *others
        self._lines.extend(line for line in whole if line)
        self._rest = [rest]
        self._rest_bytes = len(rest)
