"""Authentication and authorization of callers by the API server, as kube-scheduler delegates them.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go;
authorization/authorizerfactory/delegating.go; webhook caches.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final, final

import msgspec

from extender.client.client import Client
from extender.client.errors import NotKubernetes
from extender.values import limits
from extender.values.caches import ExpiringCache

CACHE_SECONDS: Final = 10.0
"""Seconds for which an answer is cached. A right that was revoked still holds for that long."""

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_SUBJECT_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@final
class User(msgspec.Struct, frozen=True):
    """The identity of a caller, as the API server describes it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct, frozen=True):
    """Of a token review the first two, of a subject access review the others."""

    authenticated: bool = False
    user: User = User()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


@final
class AccessReview:
    """Reviews callers, and caches the answers for a while. Tokens are not kept, only their hashes.

    The client may create token reviews and subject access reviews (the ClusterRole system:auth-delegator). Each
    question raises ApiError if the review failed.
    """

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._users = ExpiringCache[User](CACHE_SECONDS, limits.REVIEWS_KEPT, now)
        # Apart, so that made-up tokens do not make users forgotten.
        self._of_nobody = ExpiringCache[bool](CACHE_SECONDS, limits.REVIEWS_KEPT, now)
        self._rights = ExpiringCache[bool](CACHE_SECONDS, limits.REVIEWS_KEPT, now)

    def is_known(self, token: str) -> bool:
        """Returns whether the token was found to be a user's, however long ago, or to be nobody's just now."""
        digest = _digest(token)
        return digest in self._users.answers or self._of_nobody.get(digest) is not None

    async def user(self, token: str) -> User | None:
        """Returns the user of the token; None if it belongs to no user."""
        digest = _digest(token)
        user = self._users.get(digest)
        if user is not None or self._of_nobody.get(digest) is not None:
            return user
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = await self._answer(_TOKEN_REVIEWS, review)
        if status.authenticated:
            return self._users.put(digest, status.user)
        self._users.answers.pop(digest, None)
        self._of_nobody.put(digest, True)
        return None

    async def may_list(self, user: User, resource: str, namespace: str) -> bool:
        """Returns whether the user may list `pods` or `events` of the namespace, or of all with an empty one."""
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
        may = self._rights.get(digest)
        if may is not None:
            return may
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = await self._answer(_SUBJECT_ACCESS_REVIEWS, review)
        return self._rights.put(digest, status.allowed and not status.denied)

    async def _answer(self, path: str, review: object) -> _Status:
        try:
            return msgspec.json.decode(await self._client.create(path, review), type=_Review).status
        except msgspec.DecodeError as exc:
            raise NotKubernetes(f"the answer to a question at {path} is none: {exc}") from exc


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
