"""Who a caller is, and which pods he may see: the API server is asked, as kube-scheduler asks it about those who call its own endpoints.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go; authorization/authorizerfactory/delegating.go;
webhook caches (v1.36.2).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from extender.apiserver.client import Client
from extender.apiserver.errors import NotKubernetes

SECONDS_KNOWN: Final = 10.0
"""An answer holds for so long: whoever lost a right has it for that much longer."""

MAX_KNOWN: Final = 4096
"""Answers that are remembered of each kind."""

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_SUBJECT_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


@final
class User(msgspec.Struct, frozen=True):
    """Who somebody is, in the API server's words."""

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
    """Asks, and remembers the answers for a while. No token is kept, only what it hashes to."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        """Nothing is asked yet.

        Arguments:
            client: may create token reviews and subject access reviews (the ClusterRole system:auth-delegator).
            now: seconds, from whatever start.
        """
        self._client = client
        self._users: _Known[User | None] = _Known(now)
        self._may_list: _Known[bool] = _Known(now)

    async def user(self, token: str) -> User | None:
        """Who has this token; None if it is nobody's.

        Raises:
            ApiError: the API server could not be asked.
        """
        digest = hashlib.sha256(token.encode()).hexdigest()
        found, user = self._users.get(digest)
        if found:
            return user
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await self._answer(_TOKEN_REVIEWS, review, _TokenReview)).status
        return self._users.put(digest, status.user if status.authenticated else None)

    async def may_list_pods(self, user: User, namespace: str) -> bool:
        """Whether he may list the pods of the namespace.

        Raises:
            ApiError: the API server could not be asked.
        """
        digest = f"{hashlib.sha256(msgspec.json.encode(user, order='deterministic')).hexdigest()}/{namespace}"
        found, may = self._may_list.get(digest)
        if found:
            return bool(may)
        spec: dict[str, Any] = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "resourceAttributes": {"namespace": namespace, "verb": "list", "version": "v1", "resource": "pods"},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await self._answer(_SUBJECT_ACCESS_REVIEWS, review, _AccessReview)).status
        return self._may_list.put(digest, status.allowed and not status.denied)

    async def _answer(self, path: str, review: object, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(await self._client.create(path, review), type=kind)
        except msgspec.DecodeError as exc:
            raise NotKubernetes(f"the answer to a question at {path} is none: {exc}") from exc


class _Known(Generic[T]):
    """Answers of the last seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._answers: OrderedDict[str, tuple[float, T]] = OrderedDict()

    def get(self, question: str) -> tuple[bool, T | None]:
        """(whether it is known, the answer)."""
        known = self._answers.get(question)
        if known is None or known[0] <= self._now():
            return False, None
        return True, known[1]

    def put(self, question: str, answer: T) -> T:
        self._answers.pop(question, None)
        self._answers[question] = self._now() + SECONDS_KNOWN, answer
        if len(self._answers) > MAX_KNOWN:
            self._answers.popitem(last=False)
        return answer
