"""What can go wrong between us and an API server, by what the caller does next.

An `ApiError` is raised by `Client` and by nobody else. The first question after a failed write is whether it happened all the same:
`may_have_happened` answers it.
"""
# ruff: noqa: N818 - upstream's words: they say what happened, and read well after `except`

import json
from collections.abc import Mapping
from typing import Any, ClassVar, final

import msgspec


class ApiError(Exception):
    """The API server refused, or did not answer, or what answered was no API server.

    Upstream: apimachinery/pkg/api/errors/errors.go, StatusError (v1.36.2).
    """

    may_have_happened: ClassVar[bool] = False
    """Whether a write that ended like this may have been done; it was certainly not done when False."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: Mapping[str, Any] | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        """The server's words, or ours when it said nothing."""
        self.status = status
        """The HTTP status; 0 when there was no answer."""
        self.reason = reason
        """The machine-readable word of the Status object; empty when the answer was none."""
        self.details: Mapping[str, Any] = details or {}
        """Of the Status object: name, kind, uid, causes."""
        self.retry_after = retry_after
        """Seconds that the server asks us to wait before the next try; None when it did not ask."""


class BadRequest(ApiError):
    """The same request would be refused again: a 4xx for which there is no other class."""


@final
class Unauthorized(ApiError):
    """We are not who we say we are, even after the credentials were read again."""


@final
class Forbidden(ApiError):
    """We may not, until somebody grants it; admission refuses with this too."""


@final
class NotFound(ApiError):
    """The object is gone, says the API server."""


@final
class NotServed(ApiError):
    """Nobody at this path: the server does not know the API (or is not the one we meant). It says nothing about the object."""


@final
class AlreadyExists(ApiError):
    """An object of that name is there."""


@final
class Conflict(ApiError):
    """The object is not as we thought (resource version, uid, already bound): look again, then decide."""


@final
class Gone(ApiError):
    """The history from that resource version on is no longer there (410, reasons Expired and Gone): list again."""


@final
class Invalid(ApiError):
    """The object breaks the rules of its kind; `details["causes"]` names the fields."""


@final
class TooManyRequests(ApiError):
    """Slower, please: not before `retry_after` seconds."""


@final
class TooLargeResourceVersion(ApiError):
    """The server has not yet seen that resource version: ask again a little later, or without one."""


@final
class ServerTimeout(ApiError):
    """The server could not finish in its time (reasons Timeout and ServerTimeout)."""

    may_have_happened = True


@final
class ServerError(ApiError):
    """The server is broken or overloaded (5xx)."""

    may_have_happened = True


@final
class Unreachable(ApiError):
    """No connection, so that nothing was sent: the write has certainly not happened."""


@final
class Fenced(ApiError):
    """We may not write any more, so that nothing was sent. Said by ourselves, not by the server."""


@final
class NoAnswer(ApiError):
    """The request was (perhaps) sent, and no whole answer came: it timed out, or the connection was cut."""

    may_have_happened = True

    def __init__(self, message: str, *, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        """Nothing came for too long; otherwise the connection was cut."""


@final
class NotKubernetes(ApiError):
    """What answered does not speak as a Kubernetes API does: a login page, a `kind: Status` for a list, an endless body."""

    may_have_happened = True


_BY_REASON: Mapping[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "Timeout": ServerTimeout,
    "ServerTimeout": ServerTimeout,
}

_BY_CODE: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    504: ServerTimeout,
}

# What a proxy or a login page may say on its own account. It must not pass for a word about an object.
_WITHOUT_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotServed,
    409: NotKubernetes,
    410: NotKubernetes,
    422: NotKubernetes,
    429: TooManyRequests,
    504: ServerTimeout,
}


class _Status(msgspec.Struct):
    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


_read_status = msgspec.json.Decoder(_Status)


def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> ApiError:
    """The error that a Status object means, such as the one in the ERROR event of a watch.

    Its reason decides; its code only where the reason is none that we know.
    """
    return _from_status(msgspec.convert(status, _Status, strict=False), 0, retry_after)


def from_answer(request: str, status: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error that an answer of 300 or more means.

    Arguments:
        request: method and path, for the message.
        body: a Status object, or whatever a proxy in between has to say.
        retry_after: seconds, of the header of that name.
    """
    try:
        said = _read_status.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = _Status()
    if said.kind == "Status":
        return _from_status(said, status, retry_after)
    if status < 400:
        return NotKubernetes(f"{request}: answered {status}, which an API server does not", status=status)
    kind = _WITHOUT_STATUS.get(status) or (ServerError if status >= 500 else BadRequest)
    return kind(f"{request}: answered {status}: {_excerpt(body)}", status=status, retry_after=retry_after)


def _from_status(said: _Status, status: int, retry_after: float | None) -> ApiError:
    code = status or said.code
    details = said.details or {}
    causes = details.get("causes")
    if isinstance(causes, list) and any(isinstance(cause, dict) and cause.get("reason") == "ResourceVersionTooLarge" for cause in causes):
        kind: type[ApiError] = TooLargeResourceVersion
    else:
        kind = _BY_REASON.get(said.reason) or _BY_CODE.get(code) or (BadRequest if 400 <= code < 500 else ServerError)
    if kind is NotFound and not details.get("name"):
        kind = NotServed  # an object that is not there would be named
    if retry_after is None:
        seconds = details.get("retryAfterSeconds")
        retry_after = float(seconds) if isinstance(seconds, int) and seconds > 0 else None
    message = said.message or said.reason or f"answered {code}"
    return kind(message, status=code, reason=said.reason, details=details, retry_after=retry_after)


def _excerpt(body: bytes) -> str:
    """The beginning on one line, without control characters: it goes to logs."""
    text = body[:256].decode("utf-8", "replace").strip()
    return json.dumps(text, ensure_ascii=False) if text else "nothing"
