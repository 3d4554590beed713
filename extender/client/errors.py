"""The errors of requests to an API server, by what the caller does next.

Only `Client` raises an `ApiError`. The first question after a failed write is whether it was performed all the same,
which `may_have_happened` answers.
"""
# ruff: noqa: N818 - upstream's reasons, which read well after `except`

import json
from collections.abc import Mapping
from typing import Any, ClassVar, final

import msgspec


class ApiError(Exception):
    """The API server refused, or did not answer, or the answer did not come from an API server.

    Upstream: apimachinery/pkg/api/errors/errors.go, StatusError.
    """

    may_have_happened: ClassVar[bool] = False
    """Whether a write that failed with this error may have been performed. If False, it certainly was not."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        """The server's message, or ours when there is none."""
        self.status = status
        """The HTTP status; 0 without an answer."""
        self.reason = reason
        """The reason of the Status object; empty without one."""
        self.details: Mapping[str, Any] = details or {}
        """The details of the Status object: name, kind, uid, causes."""
        self.retry_after = retry_after
        """Seconds that the server wants to pass before the next try; None if it did not say."""


class BadRequest(ApiError):
    """The request would be refused again: a 4xx for which there is no other class."""


@final
class Unauthorized(ApiError):
    """The credentials are not accepted, even after they were read again."""


@final
class Forbidden(ApiError):
    """The permission is missing, or admission refused the object."""


@final
class NotFound(ApiError):
    """The object does not exist."""


@final
class NotServed(ApiError):
    """The server does not know the API, or is another server. This says nothing about the object."""


@final
class AlreadyExists(ApiError):
    """An object of that name exists."""


@final
class Conflict(ApiError):
    """The object is not as the request assumes (resource version, uid, already bound). Read it again, then decide."""


@final
class Gone(ApiError):
    """The history since that resource version is no longer available (410, reasons Expired and Gone). List again."""


@final
class Invalid(ApiError):
    """The object is invalid; `details["causes"]` names the fields."""


@final
class TooManyRequests(ApiError):
    """The server is overloaded, and wants no request before `retry_after` seconds."""


@final
class TooLargeResourceVersion(ApiError):
    """The server has not reached that resource version yet. Try again a little later, or without one."""


@final
class ServerTimeout(ApiError):
    """The server did not finish in time (reasons Timeout and ServerTimeout)."""

    may_have_happened = True


@final
class ServerError(ApiError):
    """The server is broken or overloaded (5xx)."""

    may_have_happened = True


@final
class Unreachable(ApiError):
    """There was no connection, so that nothing was sent and a write was certainly not performed."""


@final
class Fenced(ApiError):
    """This process may not write any more, so that nothing was sent. Raised by the client itself."""


@final
class NoAnswer(ApiError):
    """The request was (perhaps) sent, and no complete answer came: it timed out, or the connection was cut."""

    may_have_happened = True

    def __init__(self, message: str, *, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        """True for a timeout, False if the connection was cut."""


@final
class NotKubernetes(ApiError):
    """The answer is not that of a Kubernetes API: a login page, a `kind: Status` instead of a list, an endless body."""

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

# For answers without a Status, which may come from a proxy or a login page. They must not count as answers about an
# object.
_WITHOUT_STATUS: Mapping[int, type[ApiError]] = {
    **_BY_CODE,
    404: NotServed,
    **dict.fromkeys((409, 410, 422), NotKubernetes),
}


class _Status(msgspec.Struct):
    kind: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


_read_status = msgspec.json.Decoder(_Status)


def from_status(status: Mapping[str, Any]) -> ApiError:
    """Returns the error for a Status object, by its reason, or by its code if the reason is unknown."""
    return _from_status(msgspec.convert(status, _Status, strict=False), 0, None)


def from_response(request: str, status: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """Returns the error for an answer with a status of 300 or more, with a Status or a proxy's words as its body."""
    try:
        answer = _read_status.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = _Status()
    if answer.kind == "Status":
        return _from_status(answer, status, retry_after)
    if status < 400:
        return NotKubernetes(f"{request}: answered {status}, which an API server does not", status=status)
    kind = _WITHOUT_STATUS.get(status) or (ServerError if status >= 500 else BadRequest)
    return kind(f"{request}: answered {status}: {_excerpt(body)}", status=status, retry_after=retry_after)


def _from_status(answer: _Status, status: int, retry_after: float | None) -> ApiError:
    code = status or answer.code
    details = answer.details or {}
    causes = details.get("causes")
    if isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "ResourceVersionTooLarge" for cause in causes
    ):
        kind: type[ApiError] = TooLargeResourceVersion
    else:
        kind = _BY_REASON.get(answer.reason) or _BY_CODE.get(code) or (BadRequest if 400 <= code < 500 else ServerError)
    if kind is NotFound and not details.get("name"):
        kind = NotServed  # a Status about a missing object names the object
    if retry_after is None:
        seconds = details.get("retryAfterSeconds")
        retry_after = seconds if isinstance(seconds, int) and seconds > 0 else None
    message = answer.message or answer.reason or f"answered {code}"
    return kind(message, status=code, reason=answer.reason, details=details, retry_after=retry_after)


def _excerpt(body: bytes) -> str:
    """Returns the beginning of the body on one line without control characters, for logs."""
    text = body[:256].decode("utf-8", "replace").strip()
    return json.dumps(text, ensure_ascii=False) if text else "nothing"
