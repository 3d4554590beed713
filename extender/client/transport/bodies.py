"""Response bodies, decompressed as they arrive, and the lines of a watch."""

import asyncio
import zlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, final

from extender.client.errors import NoAnswer, NotKubernetes
from extender.client.transport.carrier import CARRIER_ERRORS, ClientResponse, failure
from extender.values import limits

INFLATED_BYTES: Final = 1 << 20
"""The most bytes that are decompressed at a time; the next ones are decompressed when they are read."""

_GZIP: Final = zlib.MAX_WBITS | 16


@final
class Body:
    """The body of a response, which the caller closes.

    Raises NotKubernetes at once for an encoding that was not requested; in `read_some` if it cannot be decompressed.
    """

    def __init__(self, request: str, response: ClientResponse) -> None:
        encoding = response.header("content-encoding").strip().lower()
        if encoding not in ("", "identity", "gzip"):
            raise NotKubernetes(
                f"{request}: the answer cannot be decompressed: it is {encoding[:64]!r}", status=response.status
            )
        self._request = request
        self._response = response
        self._inflater = zlib.decompressobj(_GZIP) if encoding == "gzip" else None

    async def read_some(self) -> bytes:
        """Returns the next bytes; none at the end. Errors of the carrier are passed on."""
        inflater = self._inflater
        if inflater is None:
            return await self._response.read_some()
        while not inflater.eof:
            packed = inflater.unconsumed_tail or await self._response.read_some()
            if not packed:
                raise self._broken("it breaks off")
            try:
                plain = inflater.decompress(packed, INFLATED_BYTES)
            except zlib.error as exc:
                raise self._broken(str(exc)) from exc
            if plain:
                return plain
        # The response is read to its end, so that the connection can be reused.
        while await self._response.read_some():
            pass
        return b""

    async def read(self, cap: int) -> bytes:
        """Returns the whole body. Raises NotKubernetes if it has more than `cap` bytes."""
        parts: list[bytes] = []
        total = 0
        while part := await self.read_some():
            total += len(part)
            if total > cap:
                raise NotKubernetes(
                    f"{self._request}: the answer is longer than {cap} bytes", status=self._response.status
                )
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _broken(self, why: str) -> NotKubernetes:
        return NotKubernetes(f"{self._request}: the answer cannot be decompressed: {why}", status=self._response.status)


@final
class WatchLines(AsyncIterator[bytes]):
    """The events of a watch, each a complete line of JSON without its line feed; an incomplete last one is dropped.

    Raises NoAnswer if nothing came for `silence` seconds, or the connection was cut; NotKubernetes if a line does not
    end.
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
        """Returns the further lines that have already arrived, without waiting. They are not returned again."""
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
        if self._rest_bytes > limits.WATCH_EVENT_BYTES:
            raise NotKubernetes(f"{self._request}: an event of more than {limits.WATCH_EVENT_BYTES >> 20} MiB")
        if not others:
            return
        *whole, rest = b"".join(self._rest), *others
        self._lines.extend(line for line in whole if line)
        self._rest = [rest]
        self._rest_bytes = len(rest)
