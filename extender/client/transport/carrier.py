"""Carrier: sends requests to an API server, over sockets (`connections`) or to a transport of httpx in memory.

Failures on the way are raised as one of the errors in this module.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final, cast, final

import httpx

from extender.client.errors import ApiError, NoAnswer, Unreachable

Headers = tuple[tuple[str, str], ...]
"""Names and values, without line breaks."""


@final
class NotSentError(Exception):
    """There was no connection, so that nothing was sent."""


@final
class CutError(Exception):
    """The request was (perhaps) sent, but the connection was lost, or the response is not HTTP."""


class ClientResponse(ABC):
    """The head of a response, whose body is still to be read."""

    status: int

    @abstractmethod
    def header(self, name: str) -> str:
        """Returns the value of the header, its name in lower case; empty if there is none."""

    @abstractmethod
    async def read_some(self) -> bytes:
        """Returns the next bytes, compressed if the head says so; none at the end. Raises CutError."""

    @abstractmethod
    async def aclose(self) -> None:
        """Stops reading. Must be called once, in any case."""


class Carrier(ABC):
    """Carries requests to one server, many at a time."""

    @abstractmethod
    async def send(
        self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float
    ) -> ClientResponse:
        """Returns the response as soon as its head has arrived. Only the connection has a time limit, in seconds.

        The path, below the server's URL, is quoted, perhaps with a query.

        Raises:
            NotSentError: there was no connection.
            CutError: no head came.
            TimeoutError: a time limit of the carrier has passed.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Closes all connections, including those in use."""


CARRIER_ERRORS = (NotSentError, CutError)


def failure(request: str, error: NotSentError | CutError) -> ApiError:
    """Returns the `ApiError` for an error of a carrier; `request` is method and path."""
    if isinstance(error, NotSentError):
        return Unreachable(f"{request}: {error}")
    return NoAnswer(f"{request}: no answer: {error}", timed_out=False)


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

    def __init__(self, transport: httpx.AsyncBaseTransport, server: str) -> None:
        self._transport = transport
        self._server = server

    async def send(
        self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float
    ) -> ClientResponse:
        request = httpx.Request(method, self._server + path, headers=headers, content=content)
        try:
            return _TransportResponse(await self._transport.handle_async_request(request))
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
    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self._response = response
        # The response comes from an asynchronous transport.
        self._chunks: AsyncIterator[bytes] = aiter(cast(httpx.AsyncByteStream, response.stream))

    def header(self, name: str) -> str:
        value: str = self._response.headers.get(name, "")
        return value

    async def read_some(self) -> bytes:
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except _CUT as exc:
            raise CutError(_what(exc)) from exc
        return b""

    async def aclose(self) -> None:
        await self._response.aclose()


def _what(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
