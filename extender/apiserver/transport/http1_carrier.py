"""Connections to one server that are kept for the next request."""

import asyncio
from typing import Final, final

from extender.apiserver.transport.carrier import Answer, Carrier, CutError, Headers, NotSentError
from extender.apiserver.transport.dialing import Route
from extender.apiserver.transport.http1 import Connection, head_lines

MAX_CONNECTIONS: Final = 200
"""Each watch holds one (about twenty of them); the rest is for requests."""

KEEP_ALIVE_SECONDS: Final = 60.0
"""An API server closes idle connections after 90 s: we are earlier, so that no request meets a connection that is just being closed."""

MAX_ENCODED_HEADERS: Final = 16
"""Sets of request headers that are remembered; a rotated token makes another."""


@final
class Http1Carrier(Carrier):
    """State: the connections, idle or in use."""

    def __init__(self, route: Route, *, max_connections: int = MAX_CONNECTIONS) -> None:
        """Nothing is opened yet.

        Arguments:
            max_connections: in use at a time; whoever comes then waits for one.
        """
        self._route = route
        self._always = head_lines((("Host", route.authority), *route.proxy_headers))
        self._encoded: dict[Headers, bytes] = {}
        self._idle: list[Connection] = []
        """The one that was used last comes last, and is used next."""
        self._in_use: set[Connection] = set()
        self._permits = asyncio.Semaphore(max_connections)
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float) -> Answer:
        """See `Carrier`. A GET goes out again if the connection turns out to have been closed while it was idle."""
        request = self._encode(method, path, headers, content)
        if self._permits.locked():
            try:
                async with asyncio.timeout(connect_seconds):
                    await self._permits.acquire()
            except TimeoutError as exc:
                raise NotSentError(f"all connections were in use for {connect_seconds:g} s") from exc
        else:
            await self._permits.acquire()
        try:
            while (connection := self._pop_idle()) is not None:
                try:
                    return await self._ask(connection, request)
                except CutError:
                    # The server may have hung up while nobody asked; whether a write was done before that nobody knows.
                    if connection.has_heard or method != "GET":
                        raise
            return await self._ask(await self._dial(connect_seconds), request)
        except BaseException:
            self._permits.release()
            raise

    async def aclose(self) -> None:
        """See `Carrier`."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in (*self._idle, *self._in_use):
            connection.abort()
        self._idle.clear()

    async def _ask(self, connection: Connection, request: bytes) -> Answer:
        self._in_use.add(connection)
        try:
            return await connection.ask(request, self._take_back)
        except BaseException:
            self._in_use.discard(connection)
            raise

    def _take_back(self, connection: Connection) -> None:
        self._in_use.discard(connection)
        self._permits.release()
        if self._is_closed or not connection.is_reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(KEEP_ALIVE_SECONDS, self._sweep_idle)

    def _pop_idle(self) -> Connection | None:
        oldest = asyncio.get_running_loop().time() - KEEP_ALIVE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    def _sweep_idle(self) -> None:
        """Hang up where nothing was asked for long; there is another sweep as long as there is anything to sweep."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_ALIVE_SECONDS
        kept = []
        for connection in self._idle:
            if connection.is_open and connection.idle_since > oldest:
                kept.append(connection)
            else:
                connection.abort()
        self._idle = kept
        self._sweep = loop.call_at(kept[0].idle_since + KEEP_ALIVE_SECONDS, self._sweep_idle) if kept else None

    async def _dial(self, seconds: float) -> Connection:
        try:
            async with asyncio.timeout(seconds):
                connection = await self._route.dial()
        except TimeoutError as exc:
            raise NotSentError(f"{self._route.authority}: no connection within {seconds:g} s") from exc
        if self._is_closed:
            connection.abort()
            raise NotSentError("the client was closed")
        return connection

    def _encode(self, method: str, path: str, headers: Headers, content: bytes) -> bytes:
        lines = self._encoded.get(headers)
        if lines is None:
            lines = self._encoded[headers] = self._always + head_lines(headers)
            if len(self._encoded) > MAX_ENCODED_HEADERS:
                del self._encoded[next(iter(self._encoded))]
        target = self._route.prefix + path
        if not target.isascii() or not target.isprintable() or " " in target:
            raise ValueError(f"{target!r} is no quoted path")
        first = f"{method} {target} HTTP/1.1\r\n".encode()
        if method == "GET":
            return b"%b%b\r\n" % (first, lines)
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (first, lines, len(content), content)
