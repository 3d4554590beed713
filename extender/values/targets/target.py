"""The address of the API server, the credentials for it, and the proxy to it, of the kubeconfig or the environment.

No secret appears in a repr. Files are read again while we run, because tokens and certificates rotate.
"""

import base64
import ipaddress
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final
from urllib.parse import SplitResult, urlsplit

from extender.values.reasons import InputError
from extender.values.targets.tls import KeyPair, Tls

log = logging.getLogger(__name__)

REREAD_SECONDS = 30.0
"""Seconds for which the contents of a file are used. Upstream uses a token for a minute."""


class CredentialsError(InputError):
    """The credentials or the server's address cannot be found out. The text is one line that helps to correct it."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """The credentials of one request."""

    authorization: str | None = field(default=None, repr=False)
    """The Authorization header."""
    key_pair: KeyPair | None = None
    """A client certificate that came with the credentials; None for that of `Target.tls`, if any."""


class Credentials(ABC):
    """Returns the identity for each request."""

    @abstractmethod
    async def identity(self, now: float) -> Identity:
        """Returns the identity at `now` (the event loop's time). Raises CredentialsError."""

    @abstractmethod
    def invalidate(self, refused: Identity) -> None:
        """Drops the identity that was refused, so that the next call reads another, unless one was since."""


@final
@dataclass(frozen=True, slots=True)
class Fixed(Credentials):
    """Credentials that never change: none, as with a client certificate, a token, or a user and a password."""

    fixed: Identity = Identity()

    async def identity(self, now: float) -> Identity:
        return self.fixed

    def invalidate(self, refused: Identity) -> None:
        """Does nothing, because there is nothing to read again."""


def token(text: str) -> Credentials:
    return Fixed(Identity(bearer(text, "the token")))


def basic_auth(user: str, password: str) -> Credentials:
    """Returns a user and a password. API servers do not support them, but proxies in front of them may."""
    return Fixed(Identity(basic(user, password)))


def basic(user: str, password: str) -> str:
    """Returns the Authorization header for a user and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@final
class TokenFile(Credentials):
    """A bearer token in a file, which the kubelet replaces; the last one is used while it cannot be read.

    Upstream: client-go/transport/token_source.go, fileTokenSource.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: Identity | None = None
        self._due = 0.0

    async def identity(self, now: float) -> Identity:
        if self._identity is None or now >= self._due:
            try:
                self._identity = Identity(self._read())
            except CredentialsError as error:
                if self._identity is None:
                    raise
                log.warning("The last token stays in use: %s", error)
            self._due = now + REREAD_SECONDS
        return self._identity

    def invalidate(self, refused: Identity) -> None:
        if self._identity is refused:
            self._due = 0.0

    def _read(self) -> str:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise CredentialsError(
                f"token file {self._path} cannot be read ({reason}): check that it is mounted"
            ) from error
        return bearer(text, f"the token in {self._path}")

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def bearer(text: str, what: str) -> str:
    """Returns the Authorization header for a token. Raises CredentialsError, without its text, if it fits none."""
    stripped = text.strip()
    if not stripped:
        raise CredentialsError(f"{what} is empty")
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise CredentialsError(f"{what} holds characters that no HTTP header may hold")
    return f"Bearer {stripped}"


@final
@dataclass(frozen=True, slots=True)
class Target:
    """One API server with the credentials of one user."""

    server: str
    """The base URL: http or https, host, port, perhaps a path; without a slash at the end and without a user."""
    namespace: str = "default"
    """The namespace of objects for which none is given."""
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=Fixed)
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    """URL of an HTTP proxy."""


def check_proxy(url: str) -> str:
    """Returns the URL of a proxy that can be used. CredentialsError quotes the scheme only: it may hold a password."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise CredentialsError("proxy-url is no URL with a host: write http://host:port")
    if parts.scheme not in ("http", "https"):
        raise CredentialsError(f"proxy-url: a {parts.scheme} proxy is not supported: only http and https are")
    return url


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """Returns the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (also in lower case) name for a server.

    Upstream: golang.org/x/net/http/httpproxy, which client-go uses when no proxy-url is set.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = environ.get(f"{parts.scheme}_proxy".upper()) or environ.get(f"{parts.scheme}_proxy")
    address = _address(host)
    if not proxy or host == "localhost" or (address is not None and address.is_loopback):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_is_excepted(parts, exception.strip().lower()) for exception in exceptions.split(",")):
        return None
    return check_proxy(proxy if "://" in proxy else f"http://{proxy}")


def _is_excepted(server: SplitResult, exception: str) -> bool:
    if exception in ("", "*"):
        return exception == "*"
    host = (server.hostname or "").lower()
    if "/" in exception:
        address = _address(host)
        try:
            return address is not None and address in ipaddress.ip_network(exception, strict=False)
        except ValueError:
            return False
    name, port = exception, ""
    if exception.count(":") == 1:
        name, _, port = exception.partition(":")
    if port and port != str(server.port or (443 if server.scheme == "https" else 80)):
        return False
    address = _address(name.strip("[]"))
    if address is not None:
        return address == _address(host)
    suffix = name.removeprefix("*")
    return host.endswith(suffix) if suffix.startswith(".") else host == suffix or host.endswith(f".{suffix}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
