"""Whose names a caller is shown.

Of our own cluster everybody may see everything, as its API lets everybody do everything. In a cluster that is followed, its API server
says who a caller is (TokenReview) and in which namespaces he may list pods (SubjectAccessReview).
"""

import asyncio
from collections.abc import Collection
from typing import Final, Protocol, TypeVar, final

from starlette.requests import HTTPConnection

from api.refusals import RETRY_SOON, Refusal
from extender.answers.redaction import namespaces_in, redacted
from extender.answers.types import Answer
from extender.apiserver.access_review import AccessReview, User
from extender.apiserver.errors import ApiError, Forbidden

TOKEN_COOKIE: Final = "reprieve-token"  # noqa: S105 - the name of a cookie
"""Where the page keeps the token of a person."""

MAX_TOKEN: Final = 16 * 1024

A = TypeVar("A", bound=Answer)


class Sight(Protocol):
    """What one caller may see."""

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        """Those of the namespaces in which he may list pods."""
        ...


class Access(Protocol):
    """Says what callers may see."""

    async def of(self, caller: HTTPConnection) -> Sight:
        """What this caller may see; Refusal 401 if nobody knows who it is."""
        ...


@final
class _SeesAll:
    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        return frozenset(among)


@final
class OpenAccess:
    """Everybody may see everything."""

    async def of(self, caller: HTTPConnection) -> Sight:
        """Everything."""
        return _SeesAll()


@final
class ReviewedAccess:
    """The API server is asked. The token comes as `Authorization: Bearer`, or in the page's cookie."""

    def __init__(self, review: AccessReview) -> None:
        self._review = review

    async def of(self, caller: HTTPConnection) -> Sight:
        """What the API server says that he may see."""
        token = _token(caller)
        if not token:
            raise Refusal(401, "sign in: send a token of the cluster as Authorization: Bearer", {"WWW-Authenticate": "Bearer"})
        try:
            user = await self._review.user(token)
        except ApiError as exc:
            raise _not_asked(exc) from exc
        if user is None:
            raise Refusal(401, "the cluster does not know this token", {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        return _Reviewed(self._review, user)


@final
class _Reviewed:
    def __init__(self, review: AccessReview, user: User) -> None:
        self._review = review
        self._user = user

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        try:
            # One who may list the pods of all namespaces need not be asked about for each.
            if await self._review.may_list_pods(self._user, ""):
                return frozenset(among)
            each = sorted(among)
            answers = await asyncio.gather(*(self._review.may_list_pods(self._user, namespace) for namespace in each))
        except ApiError as exc:
            raise _not_asked(exc) from exc
        return frozenset(namespace for namespace, may in zip(each, answers, strict=True) if may)


async def as_seen_by(sight: Sight, answer: A) -> A:
    """The answer with the names that the caller may see."""
    named = namespaces_in(answer)
    return redacted(answer, await sight.namespaces(named)) if named else answer


def is_signed_in(access: Access, caller: HTTPConnection) -> bool:
    """Whether it is by the page's cookie that the caller is known."""
    return not isinstance(access, OpenAccess) and _bearer(caller) is None and bool(caller.cookies.get(TOKEN_COOKIE))


def _token(caller: HTTPConnection) -> str:
    bearer = _bearer(caller)
    found = caller.cookies.get(TOKEN_COOKIE, "") if bearer is None else bearer
    return found if found.isascii() and len(found) <= MAX_TOKEN else ""


def _bearer(caller: HTTPConnection) -> str | None:
    """The token of the Authorization header; None if there is no such header."""
    scheme, _, token = caller.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _not_asked(exc: ApiError) -> Refusal:
    if isinstance(exc, Forbidden):
        return Refusal(500, "the service may not ask who callers are: bind the ClusterRole system:auth-delegator to its service account")
    return Refusal(503, "the API server did not say who the caller is", RETRY_SOON)
