"""The connections of a `Client` over sockets: kept alive, and replaced when certificates rotate."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, final

from extender.client.errors import Unreachable
from extender.client.transport.carrier import Carrier, ClientResponse, CutError, Headers, NotSentError
from extender.client.transport.dialing import Route
from extender.client.transport.http1 import Connection, head_lines
from extender.values import limits
from extender.values.targets.target import REREAD_SECONDS, CredentialsError, Identity, Target
from extender.values.targets.tls import TlsError, TlsMaterial, context

KEEP_ALIVE_SECONDS: Final = 60.0
"""An API server closes idle connections after 90 s. Ours are closed earlier, so that no request meets a connection that
is just being closed.
"""

KEPT_HEADERS: Final = 16
"""The most sets of request headers that are cached; a rotated token makes another."""


@final
class Http1Carrier(Carrier):
    """Sends requests over kept connections. State: the connections, idle or in use."""

    def __init__(self, route: Route, *, max_connections: int = limits.CONNECTIONS) -> None:
        """Opens nothing yet. Requests beyond so many connections in use wait."""
        self._route = route
        self._always = head_lines((("Host", route.authority), *route.proxy_headers))
        self._encoded: dict[Headers, bytes] = {}
        self._idle: list[Connection] = []
        """The one that was used last comes last, and is used next."""
        self._in_use: set[Connection] = set()
        self._permits = asyncio.Semaphore(max_connections)
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(
        self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float
    ) -> ClientResponse:
        """Sends a GET again if its connection turns out to have been closed while it was idle."""
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
                    return await self._send_on(connection, request)
                except CutError:
                    # The server may have closed the idle connection. A write is not sent again, because it may have
                    # been performed.
                    if connection.has_received or method != "GET":
                        raise
            return await self._send_on(await self._dial(connect_seconds), request)
        except BaseException:
            self._permits.release()
            raise

    async def aclose(self) -> None:
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in (*self._idle, *self._in_use):
            connection.abort()
        self._idle.clear()

    async def _send_on(self, connection: Connection, request: bytes) -> ClientResponse:
        self._in_use.add(connection)
        try:
            return await connection.send(request, self._keep_or_close)
        except BaseException:
            self._in_use.discard(connection)
            raise

    def _keep_or_close(self, connection: Connection) -> None:
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
            if len(self._encoded) > KEPT_HEADERS:
                del self._encoded[next(iter(self._encoded))]
        target = self._route.prefix + path
        if not target.isascii() or not target.isprintable() or " " in target:
            raise ValueError(f"{target!r} is no quoted path")
        first = f"{method} {target} HTTP/1.1\r\n".encode()
        if method == "GET":
            return b"%b%b\r\n" % (first, lines)
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (first, lines, len(content), content)


log = logging.getLogger(__name__)


@final
@dataclass(slots=True, eq=False)
class ConnectionPool:
    """A carrier, and the number of requests that use it."""

    carrier: Carrier
    material: TlsMaterial | None
    """None if the carrier is never replaced."""
    users: int = 0


@final
class Connections:
    """Lends a carrier and an identity for each request.

    When certificates change on disk, new connections use the new ones; the old connections are closed after their last
    request. New certificates that cannot be used (half written, or with a key that does not belong to them) are logged,
    and the old ones stay in use.
    """

    def __init__(self, target: Target, carrier: Carrier | None = None) -> None:
        """Opens nothing yet; uses the carrier, if any, instead of sockets."""
        self._target = target
        self._pool = ConnectionPool(carrier, None) if carrier is not None else None
        self._retired: list[ConnectionPool] = []
        self._key_pair = Identity().key_pair
        self._read_at = 0.0
        self._closed = False

    async def borrow(self) -> tuple[ConnectionPool, Identity]:
        """Returns the pool for the next request, which must be given back, and the identity.

        Raises Unreachable if credentials or certificates cannot be read, and no earlier ones can be used.
        """
        if self._closed:
            raise RuntimeError("the client is closed")
        now = asyncio.get_running_loop().time()
        try:
            identity = await self._target.credentials.identity(now)
            pool = self._pool_for(identity, now)
        except (CredentialsError, TlsError) as error:
            raise Unreachable(str(error)) from error
        pool.users += 1
        return pool, identity

    async def give_back(self, pool: ConnectionPool) -> None:
        """Ends the use of a pool. A pool that was replaced is closed after its last request."""
        pool.users -= 1
        if self._retired:
            await self._close_unused()

    def invalidate(self, refused: Identity) -> None:
        """Reads credentials and certificates again, because the server refused this identity."""
        self._target.credentials.invalidate(refused)
        self._read_at = float("-inf")

    async def aclose(self) -> None:
        """Closes all connections, including those in use."""
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired.clear()
        self._pool = None
        for pool in pools:
            await pool.carrier.aclose()

    async def _close_unused(self) -> None:
        for pool in [retired for retired in self._retired if not retired.users]:
            self._retired.remove(pool)
            await pool.carrier.aclose()

    def _pool_for(self, identity: Identity, now: float) -> ConnectionPool:
        pool = self._pool
        if pool is not None:
            if pool.material is None or (now - self._read_at < REREAD_SECONDS and identity.key_pair == self._key_pair):
                return pool
            self._read_at = now
            self._key_pair = identity.key_pair
            try:
                material = self._target.tls.read(identity.key_pair)
                replacement = (
                    ConnectionPool(_open(self._target, material), material) if material != pool.material else pool
                )
            except TlsError as error:
                log.warning(
                    "New certificates for %s cannot be used, and the old ones stay: %s", self._target.server, error
                )
                return pool
            if replacement is not pool:
                log.info("Certificates for %s have changed", self._target.server)
                self._retired.append(pool)
                self._pool = replacement
            return replacement
        material = self._target.tls.read(identity.key_pair)
        self._read_at = now
        self._key_pair = identity.key_pair
        self._pool = ConnectionPool(_open(self._target, material), material)
        return self._pool


def _open(target: Target, material: TlsMaterial) -> Carrier:
    route = Route(target.server, context(material), server_name=target.tls.server_name, proxy=target.proxy)
    return Http1Carrier(route)
