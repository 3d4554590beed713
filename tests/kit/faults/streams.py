"""Response bodies in pieces: cut, delayed, or with other lines than those of the server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, final

import httpx

T = TypeVar("T")

Lines = AsyncIterator[bytes]
"""Whole lines of a watch, line feeds included."""


def connection_reset() -> httpx.ReadError:
    """Returns the error of a read from a connection that the peer has reset."""
    return httpx.ReadError("connection reset by peer")


@final
class IteratedStream(httpx.AsyncByteStream):
    """A body from an iterator.

    Arguments:
        closes: another stream that is closed with this one.
    """

    def __init__(self, chunks: AsyncIterator[bytes], closes: httpx.AsyncByteStream | None = None) -> None:
        self._chunks = chunks
        self._closes = closes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        if self._closes is not None:
            await self._closes.aclose()


@final
class CuttableStream(httpx.AsyncByteStream):
    """A body that can be ended from outside."""

    def __init__(self, inner: httpx.AsyncByteStream, open_ones: dict["CuttableStream", None]) -> None:
        self._inner = inner
        self._open = open_ones
        self._cut = asyncio.Event()
        self._error: Exception | None = None
        open_ones[self] = None

    def cut(self, error: Exception | None) -> None:
        """Ends the body now, with an error or without one."""
        self._error = error
        self._cut.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                following = asyncio.ensure_future(_following(chunks))
                try:
                    await asyncio.wait((following, cut), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not following.done():
                        await _cancelled(following)
                if self._cut.is_set() and (following.cancelled() or following.exception() is None):
                    if self._error is not None:
                        raise self._error
                    return
                chunk = following.result()
                if chunk is None:
                    return
                yield chunk
        finally:
            await _cancelled(cut)

    async def aclose(self) -> None:
        self._open.pop(self, None)
        await self._inner.aclose()


def edited(response: httpx.Response, edit: Callable[[Lines], Lines]) -> httpx.Response:
    """Returns the same watch with edited lines."""
    if response.status_code != 200 or not isinstance(response.stream, httpx.AsyncByteStream):
        return response
    stream = IteratedStream(edit(_lines(response.stream)), response.stream)
    return httpx.Response(response.status_code, headers=response.headers, stream=stream)


async def _lines(chunks: httpx.AsyncByteStream) -> Lines:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"


async def _following(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _cancelled(future: asyncio.Future[T]) -> None:
    future.cancel()
    # Not `await future`, in which a cancellation of this task could not be told from that of the future.
    await asyncio.wait((future,))
    if not future.cancelled():
        future.exception()
