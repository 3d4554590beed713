"""The carrier over a transport of httpx, which reaches a server in this process or stands in for one."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Final, cast, final

import httpx

from extender.client.transport.carrier import Carrier, ClientRequest, ClientResponse, CutError, NotSentError, Transport

_NOTHING_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_CUT: Final = (httpx.HTTPError, httpx.StreamError, OSError)


@final
class TransportCarrier(Carrier):
    """Has no state but the transport, which is closed with it."""

    def __init__(self, transport: Transport, server: str) -> None:
        self._transport = transport
        self._server = server

    async def send(
        self, request: ClientRequest, connect_seconds: float | None, deadline: float = math.inf
    ) -> ClientResponse:
        url = self._server + request.path
        forwarded = httpx.Request(request.method, url, headers=request.headers, content=request.content)
        async with asyncio.timeout_at(_end(deadline)):
            try:
                return _TransportResponse(await self._transport.handle_async_request(forwarded), deadline)
            except _NOTHING_SENT as exc:
                raise NotSentError(_what(exc)) from exc
            except httpx.TimeoutException as exc:
                raise TimeoutError(_what(exc)) from exc
            except _CUT as exc:
                raise CutError(_what(exc)) from exc

    async def aclose(self) -> None:
        await self._transport.aclose()


@final
class _TransportResponse(ClientResponse):
    def __init__(self, response: httpx.Response, deadline: float) -> None:
        self.status = response.status_code
        self._response = response
        self._deadline = deadline
        # The response comes from an asynchronous transport.
        self._chunks: AsyncIterator[bytes] = aiter(cast(httpx.AsyncByteStream, response.stream))

    def header(self, name: str) -> str:
        value: str = self._response.headers.get(name, "")
        return value

    async def read_some(self) -> bytes:
        async with asyncio.timeout_at(_end(self._deadline)):
            try:
                async for chunk in self._chunks:
                    if chunk:
                        return chunk
            except _CUT as exc:
                raise CutError(_what(exc)) from exc
        return b""

    def set_deadline(self, deadline: float) -> None:
        self._deadline = deadline

    async def aclose(self) -> None:
        await self._response.aclose()


def _end(deadline: float) -> float | None:
    return None if deadline == math.inf else deadline


def _what(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
