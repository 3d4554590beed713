"""Answers that are not 200: an exception that carries one, and its body in the form of the Kubernetes API.

Upstream: apimachinery, meta/v1, types.go, Status and StatusReason.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, final

import msgspec

from extender.values import limits
from extender.values.golang.json import JsonError, TooLargeError

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    421: "MisdirectedRequest",
    422: "Invalid",
    429: "TooManyRequests",
    431: "BadRequest",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
}

RETRY_SOON: Final = {"Retry-After": "1"}
"""Headers of a 503: a service that is overloaded or starting is likely to answer in a second."""


@final
class Refusal(Exception):  # noqa: N818 - an answer, not an error of ours
    """An answer other than 200. The message never repeats what was sent. The details of a 404 name the kind that is
    missing, so that a caller can tell it from a path that does not exist.
    """

    def __init__(
        self,
        code: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code: Final = code
        self.headers: Final = dict(headers or {})
        self.details: Final = dict(details or {})


@contextmanager
def unreadable_refused() -> Iterator[None]:
    """Refuses JSON that cannot be read within the block. Raises Refusal: 400, or 413 for what is too large."""
    try:
        yield
    except JsonError as exc:
        # Its traceback is in a cycle with this block in Python 3.12 and 3.13, and would hold the request and its body.
        raise Refusal(413 if isinstance(exc, TooLargeError) else 400, str(exc)) from exc.with_traceback(None)


def not_there(kind: str, message: str) -> Refusal:
    """Returns a 404 for an object that does not exist, at a path that does; the kind is a plural."""
    return Refusal(404, message, details={"kind": kind})


def cannot_be_done(why: Exception) -> Refusal:
    """Returns a 422 with the text of the error, cut after `limits.REFUSAL_CHARACTERS` characters."""
    words = str(why)
    if len(words) > limits.REFUSAL_CHARACTERS:
        words = f"{words[: limits.REFUSAL_CHARACTERS]}..."
    return Refusal(422, words)


class FailureStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """metav1.Status of a failure."""

    kind: str = "Status"
    api_version: str = "v1"
    metadata: dict[str, str] = {}
    status: str = "Failure"
    message: str
    reason: str
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    code: int


def status_body(code: int, message: str, details: Mapping[str, str] | None = None) -> bytes:
    """Returns a metav1.Status of a failure as JSON."""
    return msgspec.json.encode(
        FailureStatus(
            message=message,
            reason=REASONS.get(code, "Unknown"),
            details=dict(details) if details else msgspec.UNSET,
            code=code,
        )
    )
