"""The connections behind a `Client`: opened with the certificates in force, kept alive, replaced when certificates rotate."""

import asyncio
import base64
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import final

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from extender.apiserver.credentials import REREAD_SECONDS, CredentialsError, Identity, Target
from extender.apiserver.errors import NoAnswer, Unreachable
from extender.apiserver.tls import TlsError, TlsMaterial, context

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 200
"""Each watch holds one (about twenty of them); the rest is for requests."""

KEEP_ALIVE_SECONDS = 60.0
"""An API server closes idle connections after 90 s: we are earlier, so that no request meets a connection that is just being closed."""


@final
@dataclass(slots=True, eq=False)
class _Pool:
    """One transport, and how many are using it."""

    transport: httpx.AsyncBaseTransport
    material: TlsMaterial | None
    """None: not ours to replace."""
    users: int = 0


@final
class Connections:
    """Lends a transport and an identity for each request.

    When certificates change on disk, new connections use the new ones; the old connections end with their last request. A change that can
    not be used (half written, or a key that does not belong to the certificate) is logged, and what was in force stays.
    """

    def __init__(self, target: Target, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._target = target
        self._pool = _Pool(transport, None) if transport is not None else None
        self._retired: list[_Pool] = []
        self._key_pair = Identity().key_pair
        self._read_at = 0.0
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[tuple[httpx.AsyncBaseTransport, Identity]]:
        """A transport, not to be closed, and who we are.

        Raises:
            NoAnswer: when the client is closed meanwhile.
            Unreachable: when credentials or certificates can not be had, and none are in force.
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
        try:
            await self._close_unused()
            yield pool.transport, identity
        except RuntimeError as error:
            if not self._closed:
                raise
            # aiohttp's way of saying that somebody closed the connection under it.
            raise NoAnswer("the client was closed", timed_out=False) from error
        finally:
            pool.users -= 1
            await self._close_unused()

    def doubt(self, refused: Identity) -> None:
        """The server refused this identity: credentials and certificates are read again before the next request."""
        self._target.credentials.doubt(refused)
        self._read_at = float("-inf")

    async def aclose(self) -> None:
        """Ends all connections, those in use too."""
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._retired.clear()
        self._pool = None
        for pool in pools:
            await pool.transport.aclose()

    async def _close_unused(self) -> None:
        for pool in [retired for retired in self._retired if not retired.users]:
            self._retired.remove(pool)
            await pool.transport.aclose()

    def _pool_for(self, identity: Identity, now: float) -> _Pool:
        pool = self._pool
        if pool is not None:
            if pool.material is None or (now - self._read_at < REREAD_SECONDS and identity.key_pair == self._key_pair):
                return pool
            self._read_at = now
            self._key_pair = identity.key_pair
            try:
                material = self._target.tls.read(identity.key_pair)
                replacement = _Pool(_open(self._target, context(material)), material) if material != pool.material else pool
            except TlsError as error:
                log.warning("New certificates for %s can not be used, and the old ones stay: %s", self._target.server, error)
                return pool
            if replacement is not pool:
                log.info("Certificates for %s have changed", self._target.server)
                self._retired.append(pool)
                self._pool = replacement
            return replacement
        material = self._target.tls.read(identity.key_pair)
        self._read_at = now
        self._key_pair = identity.key_pair
        self._pool = _Pool(_open(self._target, context(material)), material)
        return self._pool


def _open(target: Target, trust: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    proxy = _proxy(target.proxy) if target.proxy is not None else None
    session = aiohttp.ClientSession(
        # A CONNECT brings the proxy's headers with it; a request that the proxy itself reads has to bring them along.
        headers=proxy.headers if proxy is not None and target.server.startswith("http:") else None,
        connector=aiohttp.TCPConnector(
            ssl=trust, limit=MAX_CONNECTIONS, keepalive_timeout=KEEP_ALIVE_SECONDS, socket_factory=_socket, ttl_dns_cache=10
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return AiohttpTransport(verify=trust, client=session, proxy=proxy)


def _proxy(url: str) -> httpx.Proxy:
    """User and password go into a header: as `auth`, aiohttp warns of them."""
    parts = httpx.URL(url)
    if not parts.userinfo:
        return httpx.Proxy(parts)
    secret = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    return httpx.Proxy(parts.copy_with(username=None, password=None), headers={"Proxy-Authorization": f"Basic {secret}"})


def _socket(address: tuple[int, int, int, str, object]) -> socket.socket:
    """A socket on which a peer that vanished is found out after about a minute, whether we wait (probes) or send (user timeout)."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
    return made
