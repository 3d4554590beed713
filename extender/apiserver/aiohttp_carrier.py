"""Sockets as a carrier, by aiohttp: connections that are kept for the next request, with TLS, through a proxy."""

import io
import socket
import ssl
import sys
from base64 import b64encode
from functools import lru_cache
from typing import Final, final
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from extender.apiserver.carrier import Answer, Carrier, CutError, Headers, NotSentError

MAX_CONNECTIONS: Final = 200
"""Each watch holds one (about twenty of them); the rest is for requests."""

KEEP_ALIVE_SECONDS: Final = 60.0
"""An API server closes idle connections after 90 s: we are earlier, so that no request meets a connection that is just being closed."""

_NOT_SENT: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ClientProxyConnectionError,
)
_CUT: Final = (aiohttp.ClientError, OSError, EOFError)

_OURS: Final = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
"""Headers that aiohttp is not to make up."""

_LARGE: Final = 2**20
"""Bytes of a body that is handed out piece by piece."""


@final
class AiohttpCarrier(Carrier):
    """State: the session with its connections, opened with the first request."""

    def __init__(self, server: str, trust: ssl.SSLContext, *, server_name: str | None = None, proxy: str | None = None) -> None:
        """Nothing is opened yet.

        Arguments:
            server: URL, http or https.
            trust: for https, and for a proxy that speaks it.
            server_name: that the server's certificate must hold; None for the host.
            proxy: URL, perhaps with user and password.
        """
        self._server = server.rstrip("/")
        self._trust = trust
        self._server_name = server_name
        self._proxy: str | None = None
        self._proxy_headers: dict[str, str] | None = None
        if proxy is not None:
            self._proxy, self._proxy_headers = _without_secret(proxy)
        # A CONNECT brings the proxy's headers with it; a request that the proxy itself reads has to bring them along.
        self._along = tuple((self._proxy_headers or {}).items()) if server.startswith("http:") else ()
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def send(self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float) -> Answer:
        """See `Carrier`. A GET goes out again if the connection turns out to have been closed while it was idle."""
        url = URL(self._server + path, encoded=True)
        try:
            response = await self._opened().request(
                method,
                url,
                data=(io.BytesIO(content) if len(content) > _LARGE else content) if method != "GET" else None,
                headers=_multidict((*headers, *self._along)),
                allow_redirects=False,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                server_hostname=self._server_name,
                timeout=_limited(connect_seconds),
            )
        except _NOT_SENT as exc:
            raise NotSentError(_what(exc, url)) from exc
        except _CUT as exc:
            raise CutError(_what(exc, url)) from exc
        return _AiohttpAnswer(response)

    async def aclose(self) -> None:
        """See `Carrier`."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise NotSentError("the client was closed")
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._trust, limit=MAX_CONNECTIONS, keepalive_timeout=KEEP_ALIVE_SECONDS, socket_factory=_socket, ttl_dns_cache=10
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=_OURS, auto_decompress=False
            )
        return self._session


@final
class _AiohttpAnswer(Answer):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    async def read_some(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (*_CUT, RuntimeError) as exc:  # a RuntimeError: the session was closed meanwhile
            raise CutError(_what(exc, self._response.url)) from exc

    async def aclose(self) -> None:
        # Closed rather than kept, if there is more to come.
        self._response.release()


@lru_cache(maxsize=16)
def _limited(connect_seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)


@lru_cache(maxsize=16)
def _multidict(headers: Headers) -> CIMultiDict[str]:
    return CIMultiDict(headers)


def _without_secret(proxy: str) -> tuple[str, dict[str, str] | None]:
    """The URL, and user and password as a header: in the URL, aiohttp warns of them."""
    parts = urlsplit(proxy)
    if not parts.username and not parts.password:
        return proxy, None
    secret = b64encode(f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()).decode()
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return plain, {"Proxy-Authorization": f"Basic {secret}"}


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


def _what(exc: BaseException, url: URL) -> str:
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        verify = getattr(exc.certificate_error, "verify_message", "") or str(exc.certificate_error)
        return f"{url.authority}: {verify}; check certificate-authority and tls-server-name"
    return str(exc) or type(exc).__name__
