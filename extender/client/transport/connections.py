"""The connections of a `Client` over sockets: kept alive, and replaced when certificates rotate."""

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import Final, final

from extender.client.errors import Unreachable
from extender.client.transport.carrier import Carrier, ClientRequest, ClientResponse, CutError, Headers, NotSentError
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

    def __init__(self, route: Route, *, max_connections: int, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        """Opens nothing yet. Requests beyond so many connections in use wait; idle ones are kept for some seconds."""
        self._route = route
        self._always = head_lines((("Host", route.authority), *route.proxy_headers))
        self._encoded: dict[Headers, bytes] = {}
        self._idle: list[Connection] = []
        """The one that was used last comes last, and is used next."""
        self._in_use: set[Connection] = set()
        self._max_connections = max_connections
        self._num_requests = 0
        """The requests that have a connection, or dial for one."""
        self._fewer_requests = asyncio.Event()
        self._keep_alive = keep_alive
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(
        self, request: ClientRequest, connect_seconds: float | None, deadline: float = math.inf
    ) -> ClientResponse:
        """Sends a GET again if its connection turns out to have been closed while it was idle."""
        try:
            encoded = self._encode(request)
        except ValueError as exc:
            raise NotSentError(str(exc)) from exc
        if self._num_requests >= self._max_connections:
            try:
                async with asyncio.timeout(connect_seconds):
                    while self._num_requests >= self._max_connections:
                        self._fewer_requests.clear()
                        await self._fewer_requests.wait()
            except TimeoutError as exc:
                raise NotSentError(f"all connections were in use for {connect_seconds:g} s") from exc
        self._num_requests += 1
        try:
            while (connection := self._pop_idle()) is not None:
                try:
                    return await self._send_on(connection, encoded, deadline)
                except CutError:
                    # The server may have closed the idle connection. A write is not sent again, because it may have
                    # been performed.
                    if connection.has_received or request.method != "GET":
                        raise
            return await self._send_on(await self._dial(connect_seconds), encoded, deadline)
        except BaseException:
            self._end_request()
            raise

    async def aclose(self) -> None:
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in (*self._idle, *self._in_use):
            connection.abort()
        self._idle.clear()

    async def _send_on(self, connection: Connection, request: bytes, deadline: float) -> ClientResponse:
        self._in_use.add(connection)
        try:
            return await connection.send(request, self._keep_or_close, deadline)
        except BaseException:
            self._in_use.discard(connection)
            raise

    def _keep_or_close(self, connection: Connection) -> None:
        self._in_use.discard(connection)
        self._end_request()
        if self._is_closed or not connection.is_reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(self._keep_alive, self._sweep_idle)

    def _end_request(self) -> None:
        self._num_requests -= 1
        self._fewer_requests.set()

    def _pop_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._is_fresh(connection):
                return connection
            connection.abort()
        return None

    def _sweep_idle(self) -> None:
        stale = [connection for connection in self._idle if not self._is_fresh(connection)]
        for connection in stale:
            self._idle.remove(connection)
            connection.abort()
        oldest = next(iter(self._idle), None)
        self._sweep = None
        if oldest is not None:
            self._sweep = asyncio.get_running_loop().call_at(oldest.idle_since + self._keep_alive, self._sweep_idle)

    def _is_fresh(self, connection: Connection) -> bool:
        return connection.is_open and connection.idle_since > asyncio.get_running_loop().time() - self._keep_alive

    async def _dial(self, seconds: float | None) -> Connection:
        try:
            async with asyncio.timeout(seconds):
                connection = await self._route.dial()
        except TimeoutError as exc:
            raise NotSentError(f"{self._route.authority}: no connection within {seconds:g} s") from exc
        if self._is_closed:
            connection.abort()
            raise NotSentError("the client was closed")
        return connection

    def _encode(self, request: ClientRequest) -> bytes:
        method, path, headers, content = request
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
    """Lends a carrier for each request, with an identity.

    When certificates change on disk, new connections use the new ones; the old connections are closed after their last
    request. Old ones stay in use while the new ones are half written, or with a key that does not belong to them.
    """

    def __init__(self, target: Target, carrier: Carrier | None = None) -> None:
        """Opens nothing yet; uses the carrier, if any, instead of sockets."""
        self._target = target
        self._pool = ConnectionPool(carrier, None) if carrier is not None else None
        self._retired: list[ConnectionPool] = []
        self._key_pair = Identity().key_pair
        self._read_at = 0.0
        self._closed = False

    async def lend(self) -> tuple[ConnectionPool, Identity]:
        """Returns the carrier for the next request, which is given back after it, and the identity.

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

    def refuse(self, identity: Identity) -> None:
        """Lets the next request read credentials and certificates again, after Unauthorized."""
        self._target.credentials.invalidate(identity)
        self._read_at = float("-inf")

    async def give_back(self, pool: ConnectionPool) -> None:
        pool.users -= 1
        if not self._retired:
            return
        for unused in [retired for retired in self._retired if not retired.users]:
            self._retired.remove(unused)
            await unused.carrier.aclose()

    async def aclose(self) -> None:
        """Closes all connections, including those in use."""
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired.clear()
        self._pool = None
        for pool in pools:
            await pool.carrier.aclose()

    def _pool_for(self, identity: Identity, now: float) -> ConnectionPool:
        pool = self._pool
        is_recent = now - self._read_at < REREAD_SECONDS and identity.key_pair == self._key_pair
        if pool is not None and (pool.material is None or is_recent):
            return pool
        self._read_at, self._key_pair = now, identity.key_pair
        try:
            material = self._target.tls.read(identity.key_pair)
            if pool is not None and material == pool.material:
                return pool
            self._pool = new_pool = ConnectionPool(_open(self._target, material), material)
        except TlsError as error:
            if pool is None:
                raise
            log.warning("New certificates for %s cannot be used, and the old ones stay: %s", self._target.server, error)
            return pool
        if pool is not None:
            log.info("Certificates for %s have changed", self._target.server)
            self._retired.append(pool)
        return new_pool


def _open(target: Target, material: TlsMaterial) -> Carrier:
    route = Route(target.server, context(material), server_name=target.tls.server_name, proxy=target.proxy)
    return Http1Carrier(route, max_connections=limits.CONNECTIONS)
