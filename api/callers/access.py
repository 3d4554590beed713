"""Which names of pods a caller is shown.

The embedded cluster has no users, and shows everything to everyone. For a real cluster, its API server says who a caller is (TokenReview)
and in which namespaces the caller may list pods (SubjectAccessReview).
"""

import asyncio
from collections.abc import Collection
from typing import Final, Protocol, TypeVar, final

from starlette.requests import HTTPConnection

from api.callers.http_refusals import RETRY_SOON, Refusal
from extender.answers.redaction import namespaces_in, redacted
from extender.answers.types import Answer
from extender.apiserver.access_review import AccessReview, User
from extender.apiserver.errors import ApiError, Forbidden

TOKEN_COOKIE: Final = "reprieve-token"  # noqa: S105 - the name of a cookie
"""The cookie in which the page keeps a token."""

MAX_TOKEN: Final = 16 * 1024

A = TypeVar("A", bound=Answer)


class Sight(Protocol):
    """What one caller may see."""

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        """Returns those of the namespaces in which the caller may list pods."""
        ...


class Access(Protocol):
    """Decides what callers may see."""

    async def of(self, caller: HTTPConnection) -> Sight:
        """Returns what a caller may see.

        Raises:
            Refusal: 401 if the caller is not known.
        """
        ...


@final
class _SeesAll:
    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        return frozenset(among)


@final
class OpenAccess:
    """Shows everything to everyone."""

    async def of(self, caller: HTTPConnection) -> Sight:
        return _SeesAll()


@final
class ReviewedAccess:
    """Asks the API server. The token comes as `Authorization: Bearer`, or in the page's cookie."""

    def __init__(self, review: AccessReview) -> None:
        self._review = review

    async def of(self, caller: HTTPConnection) -> Sight:
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
            # A caller who may list the pods of all namespaces costs one review, not one a namespace.
            if await self._review.may_list_pods(self._user, ""):
                return frozenset(among)
            each = sorted(among)
            answers = await asyncio.gather(*(self._review.may_list_pods(self._user, namespace) for namespace in each))
        except ApiError as exc:
            raise _not_asked(exc) from exc
        return frozenset(namespace for namespace, may in zip(each, answers, strict=True) if may)


async def as_seen_by(sight: Sight, answer: A) -> A:
    """Returns the answer with only those names in it that the caller may see."""
    named = namespaces_in(answer)
    return redacted(answer, await sight.namespaces(named)) if named else answer


def is_signed_in(access: Access, caller: HTTPConnection) -> bool:
    """Tells whether the caller has signed in on the page, rather than sent a token with the request."""
    return not isinstance(access, OpenAccess) and _bearer(caller) is None and bool(caller.cookies.get(TOKEN_COOKIE))


def _token(caller: HTTPConnection) -> str:
    bearer = _bearer(caller)
    found = caller.cookies.get(TOKEN_COOKIE, "") if bearer is None else bearer
    return found if found.isascii() and len(found) <= MAX_TOKEN else ""


def _bearer(caller: HTTPConnection) -> str | None:
    """Returns the token of the Authorization header; None without such a header."""
    scheme, _, token = caller.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _not_asked(exc: ApiError) -> Refusal:
    if isinstance(exc, Forbidden):
        return Refusal(500, "the service may not ask who callers are: bind the ClusterRole system:auth-delegator to its service account")
    return Refusal(503, "the API server did not say who the caller is", RETRY_SOON)
