"""Opens connections to a server: to the first of its addresses that answers, with TLS, through a proxy."""

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import Coroutine, Iterator, Set
from contextlib import contextmanager
from http.client import responses
from itertools import zip_longest
from typing import Any, Final, final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from extender.client.transport.carrier import CutError, NotSentError
from extender.client.transport.http1 import Connection, head_lines
from extender.values.targets.target import basic

ATTEMPT_DELAY: Final = 0.25
"""Seconds after which the next address is tried, too. RFC 8305, Connection Attempt Delay."""

_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
"""Asks for the text of an address, with the scope of a link-local one, and for no name."""


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
        self._port = parts.port if parts.port is not None else 443 if is_secure else 80
        self._trust = trust
        self._tls = trust if is_secure else None
        self._server_name = server_name or self._host.rstrip(".")
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
        headers = head_lines((("Host", destination), *proxy.headers))
        request = b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (destination.encode(), headers)
        try:
            response = await connection.send(request, Connection.abort)
        except CutError as exc:
            raise NotSentError(f"{proxy}: the proxy does not connect us: {exc}") from exc
        if response.status // 100 != 2:
            await response.aclose()
            refusal = OSError(responses.get(response.status, str(response.status)))
            raise NotSentError(f"{proxy}: the proxy does not connect us: it answered {response.status}") from refusal
        inner = Connection()
        try:
            with _nothing_sent(destination):
                transport = await asyncio.get_running_loop().start_tls(
                    connection.transport, inner, tls, server_hostname=self._server_name
                )
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
            secret = basic(unquote(parts.username or ""), unquote(parts.password or ""))
            self.headers = (("Proxy-Authorization", secret),)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def _host_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode("ascii")


async def _dial(host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> Connection:
    """Returns a connection to the address of the host that answers first.

    The loop makes each socket: uvloop closes one of ours twice if it is reset in the handshake, and by then the
    descriptor may be somebody else's.
    """
    loop = asyncio.get_running_loop()

    async def attempt(address: str, service: str) -> Connection:
        try:
            _, connection = await loop.create_connection(
                Connection, address, int(service), ssl=tls, server_hostname=server_name if tls is not None else None
            )
        except OSError as exc:
            if not isinstance(exc, ssl.SSLError | ConnectionResetError):
                # As asyncio says it; uvloop leaves the address out.
                exc.strerror = f"Connect call failed {address, int(service)}"
            raise
        if connection.is_open:
            _set_keepalive(connection.transport.get_extra_info("socket"))
        return connection

    with _nothing_sent(f"{host}:{port}"):
        families: dict[int, list[tuple[str, str]]] = {}
        for family, *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            families.setdefault(family, []).append(socket.getnameinfo(address, _NUMERIC))
        in_turn = [
            address for addresses in zip_longest(*families.values()) for address in addresses if address is not None
        ]
        return await _first(attempt(*address) for address in in_turn)


async def _first(attempts: Iterator[Coroutine[Any, Any, Connection]]) -> Connection:
    """Returns the first connection that is made; an attempt begins when the one before has failed, or takes long.

    Raises OSError with all reasons, and the first failure as its cause. RFC 8305, section 5.
    """
    tasks = list[asyncio.Task[Connection]]()
    pending: Set[asyncio.Task[Connection]] = set()
    first: asyncio.Task[Connection] | None = None
    try:
        while (attempt := next(attempts, None)) is not None or pending:
            if attempt is not None:
                tasks.append(asyncio.create_task(attempt, name="dialling"))
                pending |= {tasks[-1]}
            patience = None if attempt is None else ATTEMPT_DELAY
            done, pending = await asyncio.wait(pending, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            first = next((task for task in done if task.exception() is None), None)
            if first is not None:
                return first.result()
        failures = [task.exception() for task in tasks]
        raise OSError("; ".join(dict.fromkeys(map(_reason, failures)))) from failures[0]
    finally:
        for task in tasks:
            if task is not first:
                task.cancel()
                task.add_done_callback(_hang_up)


def _hang_up(late: asyncio.Task[Connection]) -> None:
    if not late.cancelled() and late.exception() is None:
        late.result().abort()


def _set_keepalive(opened: socket.socket) -> None:
    """Makes the kernel notice within about a minute that the peer has vanished, in reading and in sending."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


@contextmanager
def _nothing_sent(where: str) -> Iterator[None]:
    """Raises whatever goes wrong as NotSentError: no event loop and no parser raises anything else to a caller."""
    try:
        yield
    except NotSentError:
        raise
    except Exception as exc:
        raise NotSentError(f"{where}: {_reason(exc)}") from exc


def _reason(exc: BaseException | None) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"{exc.verify_message}; check certificate-authority and tls-server-name"
    if isinstance(exc, ssl.SSLError) and exc.reason:
        if exc.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "what it says is not TLS; should the address begin with http://?"
        return f"TLS failed: {exc.reason.lower().replace('_', ' ')}"
    if isinstance(exc, socket.gaierror):
        is_passing = exc.errno == socket.EAI_AGAIN
        return "its name cannot be looked up at the moment" if is_passing else "there is no host of this name"
    if isinstance(exc, OSError) and exc.errno is not None:
        return os.strerror(exc.errno).lower()  # what asyncio says repeats the address
    return " ".join(str(exc).split()) or type(exc).__name__
