"""Calls of an extender: one POST, over TLS if configured; why one had no answer, in the words of Go's client, is read
off the errors of sockets and of TLS that are the cause.

Redirects are followed as Go's client follows them, and the proxies of the environment are used. Unlike upstream's
client, ours reads only so much of an answer, and asks for no compression; an answer that comes with gzip all the same
is unpacked.

Upstream: pkg/scheduler/extender.go, HTTPExtender.send, makeTransport; client-go/transport, transport.go, TLSConfigFor;
net, dial.go and lookup.go; crypto/tls, alert.go; crypto/x509, verify.go; net/http, transport.go (Go).
"""

import asyncio
import logging
import os
import re
import socket
import ssl
import sys
import zlib
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

from extender.client.transport.carrier import GZIP, Carrier, ClientRequest, ClientResponse, CutError, Headers, Transport
from extender.client.transport.connections import Http1Carrier
from extender.client.transport.dialing import Route
from extender.engine.framework import ExtenderError
from extender.values import limits
from extender.values.config.configuration import Extender, ExtenderTLSConfig
from extender.values.golang.quoting import quoted
from extender.values.reasons import in_one_line
from extender.values.targets.target import basic, environment_proxy
from extender.values.targets.tls import Pem, Tls, context

_DIALLED: Final = re.compile(r"Connect call failed \('([^']+)', (\d+)")
"""What event loops say of a connection that was refused, with the address that the name resolved to."""

_ALERT: Final = re.compile(r"(?:SSLV3|TLSV1|TLSV13)_(?:ALERT_)?(\w+)")

_GO_SAYS: Final = {
    "BAD_RECORD_MAC": "bad record MAC",
    "CERTIFICATE_EXPIRED": "expired certificate",
    "CERTIFICATE_REVOKED": "revoked certificate",
    "CERTIFICATE_UNKNOWN": "unknown certificate",
    "DECODE_ERROR": "error decoding message",
    "DECRYPT_ERROR": "error decrypting message",
    "INSUFFICIENT_SECURITY": "insufficient security level",
    "PROTOCOL_VERSION": "protocol version not supported",
    "UNKNOWN_CA": "unknown certificate authority",
}
"""Alerts for which Go does not use the name in the RFC."""

_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of an answer that is no TLS. Go looks whether it is HTTP, which on a port for extenders it is."""

_UNKNOWN_AUTHORITY: Final = (2, 18, 19, 20, 21)
_NOT_VALID_NOW: Final = (9, 10)
_WRONG_NAME: Final = (62, 64)
"""X509_V_ERR of OpenSSL: for a host, and for an IP address."""

Names = Sequence[tuple[str, str]]
"""The alternative names of a certificate: ("DNS", "a") or ("IP Address", "10.0.0.1")."""


def words(failure: BaseException, host: str, port: int, names: Names | None = None) -> str:
    """Returns why there was no answer: `dial tcp 10.0.0.1:80: connect: connection refused`.

    The host is what was dialled; `names` are those of the server's certificate, where it is for another name.
    """
    causes = list(_causes(failure))
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {_distrust(cause, host, names)}"
        if isinstance(cause, ssl.SSLError) and cause.reason:
            return _of_tls(cause.reason)
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
            return f"dial tcp: lookup {host}: {cause.strerror}"
        if isinstance(cause, socket.gaierror | UnicodeError):
            return f"dial tcp: lookup {host}: no such host"
        if isinstance(cause, ConnectionError) and cause.errno is None:
            return "EOF"
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno is not None:
            dialled = _DIALLED.search(str(cause))
            address = _address(*dialled.groups()) if dialled else _address(host, port)
            is_cut = isinstance(cause, ConnectionResetError | BrokenPipeError)
            doing = f"read tcp {address}: read" if is_cut else f"dial tcp {address}: connect"
            return f"{doing}: {os.strerror(cause.errno).lower()}"
    if isinstance(causes[-1], CutError):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    return in_one_line(causes[-1])


def _causes(failure: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = failure
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _address(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _of_tls(reason: str) -> str:
    if reason in _NOT_TLS:
        return "http: server gave HTTP response to HTTPS client"
    alert = _ALERT.fullmatch(reason)
    if alert is None:
        return f"tls: {reason.lower().replace('_', ' ')}"
    return f"remote error: tls: {_GO_SAYS.get(alert[1]) or alert[1].lower().replace('_', ' ')}"


def _distrust(cause: ssl.SSLCertVerificationError, host: str, names: Names | None) -> str:
    if cause.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if cause.verify_code in _NOT_VALID_NOW:
        return "certificate has expired or is not yet valid"
    if cause.verify_code not in _WRONG_NAME:
        return cause.verify_message
    if names is None:
        return f"certificate is not valid for {host}"
    is_address = cause.verify_code == _WRONG_NAME[1]
    valid = [name for kind, name in names if kind == ("IP Address" if is_address else "DNS")]
    if valid:
        return f"certificate is valid for {', '.join(valid)}, not {host}"
    if is_address:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return f"certificate is not valid for any names, but wanted to match {host}"


_LOGGER: Final = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 4.0
"""Many servers close idle connections after 5 s. Closing them earlier avoids calls over closing ones."""

_HEADERS: Final[Headers] = (("Accept-Encoding", "identity"), ("User-Agent", "reprieve"))
_JSON: Final[Headers] = (("Content-Type", "application/json"),)

_PASSWORD: Final = re.compile(r"(?<=//)([^/@:]*):[^/@]*@")

_REDIRECTS_AS_SENT: Final = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
_REDIRECTS_AS_GET: Final = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER)


def without_password(url: str) -> str:
    """Returns the URL as it may be logged and answered."""
    return _PASSWORD.sub(r"\1:***@", url)


def trust_of(extender: Extender) -> ssl.SSLContext:
    """Returns the authorities to trust and our own certificate, for calls that use TLS.

    With `enableHTTPS` and no authority every certificate is trusted. Without `enableHTTPS`, a server whose URL begins
    with https:// is verified against `tlsConfig`, or else the authorities of the system. A certificate without its key,
    or a key without its certificate, is not shown. Raises TlsError with the file that is wrong.
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


@final
class ExtenderClient:
    """Posts to one extender. State: its connections from the first call on, and whether a redirect was warned of."""

    def __init__(self, config: Extender, transport: Transport | None = None) -> None:
        """Opens nothing yet. `http_timeout` is for a whole exchange; negative for no limit.

        A transport is used instead of sockets, and closed with this client. Raises TlsError.
        """
        self._config = config
        self._prefix = config.url_prefix.rstrip("/")
        self._seconds = config.http_timeout.seconds if config.http_timeout.seconds >= 0 else None
        self._trust = trust_of(config)
        self._server_name = config.tls_config.server_name if config.tls_config is not None else ""
        self._transport = transport
        self._carriers: dict[str, Carrier] = {}
        """By server: that of the extender, and those to which it redirects."""
        self._is_redirected = False

    async def post(self, verb: str, body: bytes) -> bytes:
        """Returns the body of an answer with status 200, perhaps of the place to which redirects lead: with POST for
        307 and 308, with GET for 301 to 303.

        Raises ExtenderError. Upstream: net/http, client.go, Client.do, redirectBehavior (Go).
        """
        method, url, headers = "POST", f"{self._prefix}/{verb}", (*_JSON, *_HEADERS)
        response: ClientResponse | None = None
        try:
            async with asyncio.timeout(self._seconds):
                for _ in range(limits.REDIRECTS):
                    response = await self.send(method, url, headers, body)
                    target = self._redirected(url, response)
                    if not target:
                        break
                    if response.status in _REDIRECTS_AS_GET:
                        method, headers, body = "GET", _HEADERS, b""
                    await response.aclose()
                    response, url = None, target
                if response is None:
                    raise ExtenderError(f"{_post(url)}: stopped after {limits.REDIRECTS} redirects")
                if response.status != HTTPStatus.OK:
                    shown_url = without_password(f"{self._prefix}/{verb}")
                    raise ExtenderError(f"failed {verb} with extender at URL {shown_url}, code {response.status}")
                return await read(response)
        except TimeoutError as exc:
            deadline = "context deadline exceeded (Client.Timeout"
            if response is not None:
                raise ExtenderError(f"{deadline} or context cancellation while reading body)") from exc
            raise ExtenderError(f"{_post(url)}: {deadline} exceeded while awaiting headers)") from exc
        except ExtenderError:
            raise
        except Exception as exc:  # a carrier, an event loop and TLS raise what they like about a call that fails
            is_no_http = isinstance(exc, CutError) and exc.__cause__ is None
            if response is not None and not is_no_http:
                raise ExtenderError("unexpected EOF" if isinstance(exc, CutError) else in_one_line(exc)) from exc
            raise ExtenderError(f"{_post(url)}: {await self._why(exc, url)}") from exc
        finally:
            if response is not None:
                await response.aclose()

    def _redirected(self, url: str, response: ClientResponse) -> str:
        import httpx  # noqa: PLC0415 - as below

        to = response.header("location")
        if not to or response.status not in (*_REDIRECTS_AS_SENT, *_REDIRECTS_AS_GET):
            return ""
        first, target = httpx.URL(self._prefix), httpx.URL(url).join(to)
        if target.scheme not in ("http", "https") or not target.host:
            raise ExtenderError(f"{_post(str(target))}: unsupported protocol scheme {quoted(target.scheme)}")
        # Credentials may be sent to the same host, or to one below it.
        if not target.userinfo and (target.host == first.host or target.host.endswith(f".{first.host}")):
            target = target.copy_with(userinfo=first.userinfo)
        if not self._is_redirected:
            self._is_redirected = True
            text = (
                "Extender %s redirects calls, which costs each decision another round trip; configure where it leads "
                "to: %s"
            )
            _LOGGER.warning(text, without_password(self._prefix), without_password(str(target)))
        return str(target)

    async def _why(self, failure: BaseException, url: str) -> str:
        import httpx  # noqa: PLC0415 - as below

        target = httpx.URL(url)
        host, port = target.host, target.port or (443 if target.scheme == "https" else 80)
        # The server's certificate is trusted, but for another name.
        if any(getattr(cause, "verify_code", None) in _WRONG_NAME for cause in _causes(failure)):
            return words(failure, self._server_name or host, port, await self._names(host, port))
        reason = words(failure, host, port)
        is_proxied = reason.startswith("dial tcp") and environment_proxy(url, os.environ) is not None
        return f"proxyconnect tcp: {reason}" if is_proxied else reason

    async def _names(self, host: str, port: int) -> Names | None:
        """Returns the names in a certificate that is trusted for another name, from a handshake that looks at none."""
        try:
            trust = trust_of(self._config)
            trust.check_hostname = False
            async with asyncio.timeout(self._seconds):
                _, writer = await asyncio.open_connection(host, port, ssl=trust)
        except Exception:  # it is asked only for words
            return None
        names: Names = writer.get_extra_info("peercert").get("subjectAltName", ())
        writer.close()
        return names

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, connect_seconds: float | None = None
    ) -> ClientResponse:
        """Returns the head of the answer to one request, as a carrier does. The caller closes it."""
        import httpx  # noqa: PLC0415 - most schedulers call no extender, and it takes long to load

        target = httpx.URL(url)
        if target.userinfo:
            headers = (*headers, ("Authorization", basic(target.username, target.password)))
        carrier = self._carrier(f"{target.scheme}://{target.netloc.decode()}")
        return await carrier.send(ClientRequest(method, target.raw_path.decode(), headers, body), connect_seconds)

    def _carrier(self, server: str) -> Carrier:
        carrier = self._carriers.get(server)
        if carrier is None:
            if self._transport is not None:
                from extender.client.transport.in_memory import TransportCarrier  # noqa: PLC0415 - as below

                carrier = TransportCarrier(self._transport, server)
            else:
                proxy = environment_proxy(server, os.environ)
                route = Route(server, self._trust, server_name=self._server_name, proxy=proxy)
                # As many connections as there are calls, which are bounded where pods are bound.
                carrier = Http1Carrier(route, max_connections=sys.maxsize, keep_alive=KEEP_ALIVE_SECONDS)
            self._carriers[server] = carrier
            if len(self._carriers) > limits.REDIRECTS:
                # Its connections end when they have been idle.
                del self._carriers[next(iter(self._carriers))]
        return carrier

    async def aclose(self) -> None:
        carriers = [*self._carriers.values()]
        self._carriers.clear()
        for carrier in carriers:
            await carrier.aclose()


async def read(response: ClientResponse) -> bytes:
    """Returns the whole body, unpacked. Raises ExtenderError if it is too long, or compressed as nobody asked for."""
    encoding = response.header("content-encoding") or "identity"
    if encoding.lower() not in ("identity", "gzip"):
        raise ExtenderError(f"the answer is compressed ({encoding[:32]!r}), which was not requested")
    inflater = zlib.decompressobj(GZIP) if encoding.lower() == "gzip" else None
    chunks, total = [], 0
    while chunk := await response.read_some():
        plain = chunk if inflater is None else inflater.decompress(chunk, limits.EXTENDER_ANSWER_BYTES + 1)
        total += max(len(chunk), len(plain))
        if total > limits.EXTENDER_ANSWER_BYTES:
            raise ExtenderError(f"the answer is longer than {limits.EXTENDER_ANSWER_BYTES} bytes")
        chunks.append(plain)
    return b"".join(chunks)


def _post(url: str) -> str:
    # Go names the method of the first request, wherever redirects have led to.
    return f'Post "{without_password(url)}"'
