"""Calls of an extender: one POST, over TLS if configured, with failures in the words of Go's client.

Redirects are followed as Go's client follows them, and the proxies of the environment are used. Unlike upstream's
client, ours reads only so much of an answer, and asks for no compression; an answer that comes with gzip all the same
is unpacked.

Upstream: pkg/scheduler/extender.go, HTTPExtender.send, makeTransport; client-go/transport, transport.go, TLSConfigFor
(v1.36.2).
"""

import asyncio
import errno
import logging
import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final, final

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from extender.engine.framework import ExtenderError
from extender.values import limits
from extender.values.config.configuration import Extender, ExtenderTLSConfig
from extender.values.golang.quoting import quoted
from extender.values.targets.proxies import environment_proxy
from extender.values.targets.tls import Pem, Tls, context

_LOGGER: Final = logging.getLogger(__name__)


PIECE: Final = 2**18
"""Bytes of each piece of a long body."""

KEEP_ALIVE_SECONDS: Final = 4.0
"""Many servers close idle connections after 5 s. Closing them earlier avoids calls over a connection that is just being
closed.
"""

_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "reprieve"}

_FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, aiohttp.ClientError, OSError)
"""The exceptions that a transport raises when a call fails."""

_ENDS: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, httpx.RemoteProtocolError, httpx.ReadError)
"""The exceptions for a connection that the other side has ended."""


_PASSWORD: Final = re.compile(r"(?<=//)([^/@:]*):[^/@]*@")

_REDIRECTS_AS_SENT: Final = (httpx.codes.TEMPORARY_REDIRECT, httpx.codes.PERMANENT_REDIRECT)

_REDIRECTS_AS_GET: Final = (httpx.codes.MOVED_PERMANENTLY, httpx.codes.FOUND, httpx.codes.SEE_OTHER)


def without_password(url: str) -> str:
    """Returns the URL as it may be logged and answered."""
    return _PASSWORD.sub(r"\1:***@", url)


def trust_of(extender: Extender) -> ssl.SSLContext:
    """Returns the authorities to trust and our own certificate, for calls that use TLS.

    With `enableHTTPS` and no authority every certificate is trusted. Without `enableHTTPS`, a server whose URL begins
    with https:// is verified against `tlsConfig`, or else the authorities of the system. A certificate without its key,
    or a key without its certificate, is not shown.

    Raises:
        TlsError: a file cannot be read, or is not what it should be; the text contains which.
    """
    config = extender.tls_config or ExtenderTLSConfig()
    tls = Tls(
        ca=_pem(config.ca_file, config.ca_data),
        certificate=_pem(config.cert_file, config.cert_data),
        key=_pem(config.key_file, config.key_data),
        insecure=config.insecure or (extender.enable_https and not config.has_ca),
    )
    return context(tls.read())


def _pem(file: str, text: bytes) -> Pem | None:
    if text:
        return Pem(text=text)
    return Pem(file=Path(file)) if file else None


def open_transport(trust: ssl.SSLContext, url_prefix: str) -> httpx.AsyncBaseTransport:
    """Returns connections to one extender, through the proxy that the environment names for it, kept alive between
    calls.

    Call it where the event loop runs.
    """
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    proxy = environment_proxy(url_prefix, os.environ)
    return AiohttpTransport(verify=trust, client=session, proxy=httpx.Proxy(proxy) if proxy is not None else None)


def post_request(url: str, body: bytes, headers: Mapping[str, str], extensions: Mapping[str, object]) -> httpx.Request:
    """Returns a POST whose body, if it is long, is sent piece by piece: aiohttp warns of long ones that are not."""
    content = body if len(body) <= PIECE else _pieces(body)
    return httpx.Request(
        "POST", url, headers={**headers, "Content-Length": str(len(body))}, content=content, extensions=dict(extensions)
    )


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


@final
class ExtenderClient:
    """Posts to one extender. State: its connections, opened with the first call, and whether a redirect was warned
    of.
    """

    def __init__(
        self,
        url_prefix: str,
        seconds: float,
        *,
        trust: ssl.SSLContext,
        server_name: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens nothing yet.

        Arguments:
            seconds: for a whole exchange, from the connection to the last byte; negative for no limit.
            trust: see `trust_of`.
            server_name: the name that the server's certificate must have; empty for the host of the URL.
            transport: used instead of sockets; closed with this client.
        """
        self._prefix = url_prefix.rstrip("/")
        self._seconds = seconds if seconds >= 0 else None
        self._trust = trust
        self._server_name = server_name
        self._transport = transport
        self._is_redirected = False

    async def post(self, verb: str, body: bytes) -> bytes:
        """Returns the body of an answer with status 200.

        Raises:
            ExtenderError: the call failed, or had another status.
        """
        url = f"{self._prefix}/{verb}"
        shown = without_password(url)
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._followed(url, body)
                if response.status_code != httpx.codes.OK:
                    raise ExtenderError(f"failed {verb} with extender at URL {shown}, code {response.status_code}")
                return await _read(response)
        except TimeoutError as exc:
            if response is not None:
                raise ExtenderError(
                    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
                ) from exc
            # aiohttp's timeout for the connection is a TimeoutError, too. Here the caller need not tell the two apart.
            raise ExtenderError(
                f'Post "{shown}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            ) from exc
        except _FAILURES as exc:
            if response is not None:
                raise ExtenderError("unexpected EOF" if isinstance(_cause(exc), _ENDS) else _words(exc)) from exc
            raise ExtenderError(f'Post "{shown}": {_words(exc)}') from exc
        finally:
            if response is not None:
                await response.aclose()

    async def _followed(self, url: str, body: bytes) -> httpx.Response:
        """Returns the answer to a POST, or that of the place to which redirects lead: POST again for 307 and 308, GET
        for 301 to 303.

        Upstream: net/http, client.go, Client.do, redirectBehavior (Go).
        """
        method, first = "POST", httpx.URL(url)
        for _ in range(limits.REDIRECTS):
            response = await self._send(method, url, body)
            to = response.headers.get("Location")
            if not to or response.status_code not in (*_REDIRECTS_AS_SENT, *_REDIRECTS_AS_GET):
                return response
            await response.aclose()
            target = httpx.URL(url).join(to)
            if target.scheme not in ("http", "https") or not target.host:
                raise ExtenderError(
                    f'Post "{without_password(str(target))}": unsupported protocol scheme {quoted(target.scheme)}'
                )
            if response.status_code in _REDIRECTS_AS_GET and method == "POST":
                method, body = "GET", b""
            if not target.userinfo and _same_host(first, target):
                target = target.copy_with(userinfo=first.userinfo)
            url = str(target)
            self._tell_of_redirect(url)
        raise ExtenderError(f'Post "{without_password(url)}": stopped after {limits.REDIRECTS} redirects')

    def _tell_of_redirect(self, url: str) -> None:
        if not self._is_redirected:
            self._is_redirected = True
            text = (
                "Extender %s redirects calls, which costs each decision another round trip; configure where it leads "
                "to: %s"
            )
            _LOGGER.warning(text, without_password(self._prefix), without_password(url))

    async def _send(self, method: str, url: str, body: bytes) -> httpx.Response:
        if self._transport is None:
            self._transport = open_transport(self._trust, self._prefix)
        extensions: dict[str, object] = {"timeout": {"connect": None, "pool": None, "read": None, "write": None}}
        if self._server_name:
            extensions["sni_hostname"] = self._server_name
        if method == "GET":
            headers = {name: value for name, value in _HEADERS.items() if name != "Content-Type"}
            return await self._transport.handle_async_request(
                httpx.Request("GET", url, headers=headers, extensions=extensions)
            )
        return await self._transport.handle_async_request(post_request(url, body, _HEADERS, extensions))

    async def aclose(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()


async def _read(response: httpx.Response) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() not in ("identity", "gzip"):
        raise ExtenderError(f"the answer is compressed ({encoding[:32]!r}), which was not requested")
    chunks, total = [], 0
    async for chunk in response.aiter_bytes():
        total += len(chunk)
        if total > limits.EXTENDER_ANSWER_BYTES:
            raise ExtenderError(f"the answer is longer than {limits.EXTENDER_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _same_host(first: httpx.URL, other: httpx.URL) -> bool:
    """Whether credentials for the first may be sent to the other: to the same host, or one below it."""
    return other.host == first.host or other.host.endswith(f".{first.host}")


def _cause(exc: Exception) -> BaseException:
    # httpx-aiohttp turns every lost connection into a ConnectTimeout, whose cause is the real error.
    return exc.__cause__ if isinstance(exc.__cause__, aiohttp.ClientError) else exc


def _words(exc: Exception) -> str:
    cause = _cause(exc)
    if isinstance(cause, _ENDS):
        return "EOF"
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return "dial tcp: i/o timeout"
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {_on_one_line(cause.certificate_error)}"
    number = getattr(cause, "errno", None)
    if isinstance(number, int) and number in errno.errorcode:
        return os.strerror(number).lower()
    return _on_one_line(cause)


def _on_one_line(exc: BaseException) -> str:
    return " ".join(str(exc).split()) or type(exc).__name__
