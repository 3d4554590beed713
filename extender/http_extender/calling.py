"""Calls of an extender: one POST, over TLS if configured, with failures in the words of Go's client.

Unlike upstream's client, ours follows no redirects, uses no proxy, reads at most `MAX_ANSWER_BYTES` and accepts no compression.

Upstream: pkg/scheduler/extender.go, HTTPExtender.send, makeTransport; client-go/transport, transport.go, TLSConfigFor (v1.36.2).
"""

import asyncio
import errno
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final, final

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from extender.apiserver.credentials.tls import Pem, Tls, context
from extender.config.configuration import Extender, ExtenderTLSConfig
from extender.framework import ExtenderError

MAX_ANSWER_BYTES: Final = 64 * 2**20

MAX_CONNECT_SECONDS: Final = 1.0

PIECE: Final = 2**18
"""Bytes of a body that are sent at once."""

KEEP_ALIVE_SECONDS: Final = 4.0
"""Many servers close idle connections after 5 s. Closing them earlier avoids calls over a connection that is just being closed."""

_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "reprieve"}

_FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, aiohttp.ClientError, OSError)
"""The exceptions that a transport raises when a call fails."""

_ENDS: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, httpx.RemoteProtocolError, httpx.ReadError)
"""The exceptions for a connection that the other side has ended."""


def trust_of(extender: Extender) -> ssl.SSLContext | None:
    """Returns the trusted authorities and our own certificate; None without TLS.

    Raises:
        TlsError: a file cannot be read, or is not what it should be; the text contains which.
    """
    if not extender.enable_https:
        return None
    config = extender.tls_config or ExtenderTLSConfig()
    tls = Tls(
        ca=_pem(config.ca_file, config.ca_data),
        certificate=_pem(config.cert_file, config.cert_data),
        key=_pem(config.key_file, config.key_data),
        insecure=config.insecure,
    )
    return context(tls.read())


def _pem(file: str, text: bytes) -> Pem | None:
    if text:
        return Pem(text=text)
    return Pem(file=Path(file)) if file else None


def open_transport(trust: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    """Returns connections to one extender, kept alive between calls. Call it where the event loop runs."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust if trust is not None else False, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return AiohttpTransport(verify=trust if trust is not None else False, client=session)


def post_request(url: str, body: bytes, headers: Mapping[str, str], extensions: Mapping[str, object]) -> httpx.Request:
    """Returns a POST whose body, if it is long, is sent piece by piece, so that other tasks run in between."""
    content = body if len(body) <= PIECE else _pieces(body)
    return httpx.Request("POST", url, headers={**headers, "Content-Length": str(len(body))}, content=content, extensions=dict(extensions))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


@final
class ExtenderClient:
    """Posts to one extender. State: its connections, opened with the first call."""

    def __init__(
        self,
        url_prefix: str,
        seconds: float,
        *,
        trust: ssl.SSLContext | None = None,
        server_name: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens nothing yet.

        Arguments:
            seconds: for a whole exchange, from the connection to the last byte.
            server_name: the name that the server's certificate must have; empty for the host of the URL.
            transport: used instead of sockets; closed with this client.
        """
        self._prefix = url_prefix.rstrip("/")
        self._seconds = seconds
        self._trust = trust
        self._server_name = server_name
        self._transport = transport

    async def post(self, verb: str, body: bytes) -> bytes:
        """Returns the body of an answer with status 200.

        Raises:
            ExtenderError: the call failed, or had another status.
        """
        url = f"{self._prefix}/{verb}"
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._send(url, body)
                if response.status_code != httpx.codes.OK:
                    raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status_code}")
                return await _read(response)
        except TimeoutError as exc:
            if response is not None:
                raise ExtenderError("context deadline exceeded (Client.Timeout or context cancellation while reading body)") from exc
            # aiohttp's timeout for the connection is a TimeoutError, too. Here the caller need not tell the two apart.
            raise ExtenderError(f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)') from exc
        except _FAILURES as exc:
            if response is not None:
                raise ExtenderError("unexpected EOF" if isinstance(_cause(exc), _ENDS) else _words(exc)) from exc
            raise ExtenderError(f'Post "{url}": {_words(exc)}') from exc
        finally:
            if response is not None:
                await response.aclose()

    async def _send(self, url: str, body: bytes) -> httpx.Response:
        if self._transport is None:
            self._transport = open_transport(self._trust)
        connect = min(MAX_CONNECT_SECONDS, self._seconds)
        extensions: dict[str, object] = {"timeout": {"connect": connect, "pool": None, "read": None, "write": None}}
        if self._server_name:
            extensions["sni_hostname"] = self._server_name
        return await self._transport.handle_async_request(post_request(url, body, _HEADERS, extensions))

    async def aclose(self) -> None:
        """Closes the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()


async def _read(response: httpx.Response) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise ExtenderError(f"the answer is compressed ({encoding[:32]!r}), which was not requested")
    chunks, total = [], 0
    async for chunk in response.aiter_bytes():
        total += len(chunk)
        if total > MAX_ANSWER_BYTES:
            raise ExtenderError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


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
