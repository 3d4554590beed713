"""Authentication and authorization of callers by the API server, as kube-scheduler delegates them.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go;
authorization/authorizerfactory/delegating.go; webhook caches (v1.36.2).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from extender.client.client import Client
from extender.client.errors import NotKubernetes
from extender.values import limits

CACHE_SECONDS: Final = 10.0
"""Seconds for which an answer is cached. A right that was revoked still holds for that long."""

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_SUBJECT_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


@final
class User(msgspec.Struct, frozen=True):
    """The identity of a caller, as the API server describes it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenReviewStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenReviewStatus = _TokenReviewStatus()


class _AccessReviewStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessReviewStatus = _AccessReviewStatus()


@final
class AccessReview:
    """Reviews callers, and caches the answers for a while. Tokens are not kept, only their hashes.

    The client may create token reviews and subject access reviews (the ClusterRole system:auth-delegator). Each
    question raises ApiError if the review failed.
    """

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._users: _AnswerCache[User] = _AnswerCache(now)
        # Apart, so that made-up tokens do not make users forgotten.
        self._of_nobody: _AnswerCache[None] = _AnswerCache(now)
        self._rights: _AnswerCache[bool] = _AnswerCache(now)

    def is_known(self, token: str) -> bool:
        """Returns whether the token was found to be a user's, however long ago, or to be nobody's just now."""
        digest = _digest(token)
        return self._users.has_had(digest) or self._of_nobody.get(digest)[0]

    async def user(self, token: str) -> User | None:
        """Returns the user of the token; None if it belongs to no user."""
        digest = _digest(token)
        found, user = self._users.get(digest)
        if found or self._of_nobody.get(digest)[0]:
            return user
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await self._answer(_TOKEN_REVIEWS, review, _TokenReview)).status
        if status.authenticated:
            return self._users.put(digest, status.user)
        self._users.drop(digest)
        return self._of_nobody.put(digest, None)

    async def may_list_pods(self, user: User, namespace: str) -> bool:
        """Returns whether the user may list the pods of the namespace."""
        return await self._may_list(user, "pods", namespace)

    async def may_list_events(self, user: User, namespace: str) -> bool:
        """Returns whether the user may list the events of the namespace."""
        return await self._may_list(user, "events", namespace)

    async def _may_list(self, user: User, resource: str, namespace: str) -> bool:
        attributes = {"namespace": namespace, "verb": "list", "version": "v1", "resource": resource}
        return await self._may(user, {"resourceAttributes": attributes})

    async def may_request(self, user: User, path: str, verb: str) -> bool:
        """Returns whether a rule for nonResourceURLs lets the user do this method, in lower case, on our path."""
        return await self._may(user, {"nonResourceAttributes": {"path": path, "verb": verb}})

    async def _may(self, user: User, attributes: dict[str, dict[str, str]]) -> bool:
        spec: dict[str, Any] = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            **attributes,
        }
        digest = hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()
        found, may = self._rights.get(digest)
        if found:
            return bool(may)
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await self._answer(_SUBJECT_ACCESS_REVIEWS, review, _AccessReview)).status
        return self._rights.put(digest, status.allowed and not status.denied)

    async def _answer(self, path: str, review: object, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(await self._client.create(path, review), type=kind)
        except msgspec.DecodeError as exc:
            raise NotKubernetes(f"the answer to a question at {path} is none: {exc}") from exc


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class _AnswerCache(Generic[T]):
    """Answers that have not expired."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._answers: OrderedDict[str, tuple[float, T]] = OrderedDict()

    def get(self, question: str) -> tuple[bool, T | None]:
        """Returns (whether the answer is cached, the answer)."""
        known = self._answers.get(question)
        if known is None or known[0] <= self._now():
            return False, None
        return True, known[1]

    def has_had(self, question: str) -> bool:
        """Returns whether there is an answer, be it too old."""
        return question in self._answers

    def drop(self, question: str) -> None:
        self._answers.pop(question, None)

    def put(self, question: str, answer: T) -> T:
        self._answers.pop(question, None)
        self._answers[question] = self._now() + CACHE_SECONDS, answer
        if len(self._answers) > limits.REVIEWS_KEPT:
            self._answers.popitem(last=False)
        return answer
