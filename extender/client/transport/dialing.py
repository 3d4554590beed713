"""Opens connections to a server: to the first of its addresses that answers, with TLS, through a proxy."""

import asyncio
import base64
import errno
import os
import socket
import ssl
import sys
from typing import Final, final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from aiohappyeyeballs import start_connection

from extender.client.transport.carrier import CutError, NotSentError
from extender.client.transport.http1 import Connection

_REFUSALS: Final = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)

ATTEMPT_DELAY: Final = 0.25
"""Seconds after which the next address is tried, too. RFC 8305, Connection Attempt Delay."""


@final
class Route:
    """The way to a server."""

    def __init__(
        self, server: str, trust: ssl.SSLContext, *, server_name: str | None = None, proxy: str | None = None
    ) -> None:
        """Opens nothing yet. `trust` is for https, also of a proxy; `server_name` takes the host's place."""
        parts = urlsplit(server)
        is_secure = parts.scheme == "https"
        self._host = _host_of(parts)
        self._port = parts.port or (443 if is_secure else 80)
        self._trust = trust
        self._tls = trust if is_secure else None
        self._server_name = server_name or self._host
        self._proxy = _Proxy(proxy) if proxy is not None else None
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.authority = host if parts.port is None else f"{host}:{parts.port}"
        """The Host header."""
        path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
        is_read_by_proxy = self._proxy is not None and not is_secure
        self.prefix = f"http://{self.authority}{path}" if is_read_by_proxy else path
        """The beginning of the request target. A proxy that reads the request itself needs the whole URL."""
        self.proxy_headers = self._proxy.headers if self._proxy is not None and is_read_by_proxy else ()
        """The headers for such a proxy in each request."""

    async def dial(self) -> Connection:
        """Returns a connection to the server. Raises NotSentError."""
        proxy = self._proxy
        if proxy is None:
            return await _dial(self._host, self._port, self._tls, self._server_name)
        connection = await _dial(proxy.host, proxy.port, self._trust if proxy.is_secure else None, proxy.host)
        return connection if self._tls is None else await self._tunnelled(connection, proxy, self._tls)

    async def _tunnelled(self, connection: Connection, proxy: "_Proxy", tls: ssl.SSLContext) -> Connection:
        destination = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        lines = [
            f"CONNECT {destination} HTTP/1.1",
            f"Host: {destination}",
            *(f"{name}: {value}" for name, value in proxy.headers),
            "",
            "",
        ]
        try:
            response = await connection.send("\r\n".join(lines).encode(), Connection.abort)
        except CutError as exc:
            raise NotSentError(f"{proxy}: the proxy does not connect us: {exc}") from exc
        if response.status // 100 != 2:
            await response.aclose()
            raise NotSentError(f"{proxy}: the proxy does not connect us: it answered {response.status}")
        inner = Connection()
        try:
            transport = await asyncio.get_running_loop().start_tls(
                connection.transport, inner, tls, server_hostname=self._server_name
            )
        except OSError as exc:
            connection.abort()
            raise NotSentError(f"{destination}: {_reason(exc)}") from exc
        except BaseException:
            connection.abort()
            raise
        if transport is None:
            raise NotSentError(f"{destination}: the connection was closed during the TLS handshake")
        inner.connection_made(transport)
        return inner


@final
class _Proxy:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.is_secure = parts.scheme == "https"
        self.host = _host_of(parts)
        self.port = parts.port or (443 if self.is_secure else 80)
        self.headers: tuple[tuple[str, str], ...] = ()
        if parts.username or parts.password:
            secret = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
            self.headers = (("Proxy-Authorization", f"Basic {base64.b64encode(secret).decode()}"),)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def _host_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode("ascii")


async def _dial(host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> Connection:
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        connected = await start_connection(addresses, happy_eyeballs_delay=ATTEMPT_DELAY)
        _set_keepalive(connected)
        _, connection = await loop.create_connection(
            Connection, sock=connected, ssl=tls, server_hostname=server_name if tls is not None else None
        )
    except OSError as exc:
        raise NotSentError(f"{host}:{port}: {_reason(exc)}") from exc
    return connection


def _set_keepalive(made: socket.socket) -> None:
    """Makes the kernel notice within about a minute that the peer has vanished, in reading and in sending."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


def _reason(exc: OSError) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"{exc.verify_message}; check certificate-authority and tls-server-name"
    # What asyncio says about a refused connection repeats the address.
    return os.strerror(exc.errno).lower() if exc.errno in _REFUSALS else str(exc) or type(exc).__name__
