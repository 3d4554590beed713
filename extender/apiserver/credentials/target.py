"""Where the API server is, and who we are to it.

No secret shows in a repr. What lies on disk is read again while we run: tokens and certificates rotate.
"""

import base64
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from extender.apiserver.credentials.tls import KeyPair, Tls

log = logging.getLogger(__name__)

REREAD_SECONDS = 30.0
"""How long what was read from disk is believed. Upstream believes a token for a minute."""


class CredentialsError(Exception):
    """We can not say who we are, or where the server is; the text says what to do, in one line."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """Who we are, for one request."""

    authorization: str | None = field(default=None, repr=False)
    """The Authorization header."""
    key_pair: KeyPair | None = None
    """A client certificate that came with the credentials; None: the one of `Target.tls`, if any."""


class Credentials(ABC):
    """Says who we are, again and again."""

    @abstractmethod
    async def identity(self, now: float) -> Identity:
        """Who we are at `now` (seconds of the event loop).

        Raises:
            CredentialsError: when it can not be found out.
        """

    @abstractmethod
    def doubt(self, refused: Identity) -> None:
        """The server refused this identity: if it is the one that is remembered, it is read again at the next call."""


@final
@dataclass(frozen=True, slots=True)
class Fixed(Credentials):
    """Always the same: nobody, a token, or a user and a password."""

    authorization: str | None = field(default=None, repr=False)

    async def identity(self, now: float) -> Identity:
        """The same as ever."""
        return Identity(self.authorization)

    def doubt(self, refused: Identity) -> None:
        """Changes nothing."""


def nobody() -> Credentials:
    """No Authorization header: anonymous, or whoever the client certificate says."""
    return Fixed()


def token(text: str) -> Credentials:
    """A bearer token that does not change."""
    return Fixed(bearer(text, "the token"))


def basic_auth(user: str, password: str) -> Credentials:
    """A user and a password; API servers know no such thing, proxies before them do."""
    return Fixed("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


@final
class TokenFile(Credentials):
    """A bearer token in a file, which the kubelet replaces every now and then. While it can not be read, the last one is used.

    Upstream: client-go/transport/token_source.go, fileTokenSource (v1.36.2).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: Identity | None = None
        self._due = 0.0

    async def identity(self, now: float) -> Identity:
        """The token of the file as it was half a minute ago at most."""
        if self._identity is None or now >= self._due:
            try:
                self._identity = Identity(self._read())
            except CredentialsError as error:
                if self._identity is None:
                    raise
                log.warning("The last token stays in use: %s", error)
            self._due = now + REREAD_SECONDS
        return self._identity

    def doubt(self, refused: Identity) -> None:
        """The file is read again at the next call, unless it has been since."""
        if self._identity is refused:
            self._due = 0.0

    def _read(self) -> str:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise CredentialsError(f"token file {self._path} can not be read ({reason}): check that it is mounted") from error
        return bearer(text, f"the token in {self._path}")

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def bearer(text: str, what: str) -> str:
    """The Authorization header for a token.

    Arguments:
        what: the token, in an error; its text is never quoted.

    Raises:
        CredentialsError: when no header can hold it.
    """
    stripped = text.strip()
    if not stripped:
        raise CredentialsError(f"{what} is empty")
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise CredentialsError(f"{what} holds characters that no HTTP header may hold")
    return f"Bearer {stripped}"


@final
@dataclass(frozen=True, slots=True)
class Target:
    """One API server as seen by one user."""

    server: str
    """Base URL: http or https, host, port, perhaps a path; no slash at the end, no user in it."""
    namespace: str = "default"
    """Where things are that do not say where they are."""
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=nobody)
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    """URL of an HTTP proxy."""
