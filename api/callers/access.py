"""Who a caller is, which endpoints the caller may call, and which names of pods the caller is shown.

A caller is the user of a verified client certificate, else of a bearer token, else of the page's cookie. Nobody is
anonymous.

An endpoint about names of pods answers every known user, with the names in those namespaces in which the user may list
pods (SubjectAccessReview). Every other endpoint needs a rule for its path and method (SubjectAccessReview of a
nonResourceURL), as those of kube-scheduler do. docs/access.md lists all of them.

Upstream: cmd/kube-scheduler/app/server.go, buildHandlerChain; apiserver/pkg/endpoints/filters/authorization.go;
apiserver/pkg/authentication/request/x509/x509.go, CommonNameUserConversion; authenticatorfactory/delegating.go.
"""

import asyncio
import ipaddress
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, final

from starlette.requests import HTTPConnection
from starlette.types import Receive
from uvicorn.protocols.http import httptools_impl

from api.callers.http_refusals import RETRY_SOON, Refusal
from extender.answers.redaction import SEES_ALL, Visibility
from extender.client.access_review import AccessReview, User
from extender.client.errors import ApiError, Forbidden
from extender.values import limits

TOKEN_COOKIE: Final = "reprieve-token"  # noqa: S105 - the name of a cookie
"""The cookie in which the page keeps a token."""

CERTIFIED: Final = "reprieve.certified"
"""The key of an ASGI scope under which the user of the client certificate is kept."""

UNKNOWN_SECONDS: Final = 2.0
"""The time in which unknown tokens from one address are counted."""

MANY_NAMESPACES: Final = (
    f"names are hidden in an answer about more than {limits.NAMESPACES_REVIEWED} namespaces: ask about one"
)

_MOST_ADDRESSES: Final = 4096
"""Addresses whose unknown tokens are counted; the oldest ones are forgotten first."""


class Access(Protocol):
    """Decides what callers may call and see."""

    async def of(self, caller: HTTPConnection) -> Visibility:
        """Returns what a caller of an endpoint about names of pods may see. Raises Refusal: 401 if unknown."""
        ...

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        """Lets a request of any other endpoint pass; returns the caller, if asked for. Raises Refusal: 401 or 403."""
        ...

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        """Returns whether a token would tell who the caller is."""
        ...


@final
class OpenAccess:
    """Lets everyone do and see everything."""

    async def of(self, caller: HTTPConnection) -> Visibility:
        return SEES_ALL

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        return None

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        return False


@final
class LocalAccess:
    """Lets callers do everything who have reached the service over loopback, and guards it from others.

    A server that was started otherwise than by `reprieve serve` may listen elsewhere than the settings say.
    """

    def __init__(self, guarded: Access, *, hides_names: bool) -> None:
        """Creates the access on loopback; `guarded` decides about others and, with `hides_names`, about names shown."""
        self._guarded: Final = guarded
        self._hides_names: Final = hides_names

    async def of(self, caller: HTTPConnection) -> Visibility:
        return await self._guarded.of(caller) if self._hides_names or not _is_local(caller) else SEES_ALL

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        shows_names = self._hides_names and path == "/metrics/resources"
        if _is_local(caller) and not shows_names:
            return None
        return await self._guarded.admit(caller, path, is_verb=is_verb)

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        return (self._hides_names or not _is_local(caller)) and self._guarded.takes_tokens(caller)


@final
class ReviewedAccess:
    """Asks the API server. State: how many callers are being reviewed, and how many unknown tokens came from where."""

    def __init__(self, review: AccessReview, allowed_names: Collection[str] = ()) -> None:
        """Creates the access to a followed cluster; certificates of these names may call the verbs without rules."""
        self._review: Final = review
        self._allowed: Final = frozenset(allowed_names)
        self._reviewed: Final[Counter[tuple[bool, bool]]] = Counter()
        self._unknown: Final[OrderedDict[str, tuple[float, int]]] = OrderedDict()

    async def of(self, caller: HTTPConnection) -> Visibility:
        async with self._reviewing(caller, is_verb=False):
            caller.state.user = await self._user(caller)
        return _Reviewed(self._review, caller)

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        certified = certified_user(caller)
        if is_verb and certified is not None and certified.username in self._allowed:
            return certified
        verb = caller.scope["method"].lower()
        async with self._reviewing(caller, is_verb=is_verb):
            user = await self._user(caller)
            if not await self._review.may_request(user, path, verb):
                raise Refusal(
                    403, f'user "{user.username}" cannot {verb} this path: no rule for nonResourceURLs allows it'
                )
        return user

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        return certified_user(caller) is None

    async def _user(self, caller: HTTPConnection) -> User:
        certified = certified_user(caller)
        if certified is not None:
            return certified
        token = token_of(caller)
        if not token:
            raise Refusal(
                401, "sign in: send a token of the cluster as Authorization: Bearer", {"WWW-Authenticate": "Bearer"}
            )
        user = await self._review.user(token)
        if user is None:
            raise Refusal(
                401, "the cluster does not know this token", {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        return user

    @asynccontextmanager
    async def _reviewing(self, caller: HTTPConnection, *, is_verb: bool) -> AsyncIterator[None]:
        token = token_of(caller)
        is_known = certified_user(caller) is not None or not token or self._review.is_known(token)
        if not is_known:
            self._count_unknown("" if caller.client is None else caller.client.host)
        kind = is_verb, is_known
        if self._reviewed[kind] >= limits.REVIEWS_AT_ONE_TIME:
            raise Refusal(503, "too many callers are being reviewed at one time", RETRY_SOON)
        self._reviewed[kind] += 1
        try:
            yield
        except ApiError as exc:
            raise _not_reviewed(exc) from exc.with_traceback(None)  # as in `unreadable_refused`
        finally:
            self._reviewed[kind] -= 1

    def _count_unknown(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        began, count = self._unknown.pop(address, (now, 0))
        if now - began >= UNKNOWN_SECONDS:
            began, count = now, 0
        self._unknown[address] = began, count + 1
        if len(self._unknown) > _MOST_ADDRESSES:
            self._unknown.popitem(last=False)
        if count >= limits.UNKNOWN_TOKENS:
            raise Refusal(429, "too many unknown tokens come from this address", RETRY_SOON)


@final
class CertifiedAccess:
    """Lets holders of a client certificate with an allowed name do all: no API server can be asked about others."""

    def __init__(self, allowed_names: Collection[str]) -> None:
        self._allowed: Final = frozenset(allowed_names)

    async def of(self, caller: HTTPConnection) -> Visibility:
        self._check(caller)
        return SEES_ALL

    async def admit(self, caller: HTTPConnection, path: str, *, is_verb: bool) -> User | None:
        return self._check(caller)

    def takes_tokens(self, caller: HTTPConnection) -> bool:
        return False

    def _check(self, caller: HTTPConnection) -> User:
        user = certified_user(caller)
        if user is None:
            raise Refusal(401, "callers of the embedded cluster are known by client certificates only")
        if user.username not in self._allowed:
            raise Refusal(403, f'user "{user.username}" is not among --client-allowed-names')
        return user


@final
class _Reviewed:
    def __init__(self, review: AccessReview, caller: HTTPConnection) -> None:
        self._review = review
        self._state = caller.state
        self._user: User = caller.state.user
        self._named: frozenset[str] = frozenset()

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        try:
            # A caller who may list the pods of all namespaces costs one review, not one a namespace.
            if await self._review.may_list(self._user, "pods", ""):
                return frozenset(among)
            if len(among) > limits.NAMESPACES_REVIEWED:
                self._state.warning = MANY_NAMESPACES
                return self._named.intersection(among)
            sorted_namespaces = sorted(among)
            answers = await asyncio.gather(
                *(self._review.may_list(self._user, "pods", namespace) for namespace in sorted_namespaces)
            )
        except ApiError as exc:
            raise _not_reviewed(exc) from exc
        visible = frozenset(namespace for namespace, may in zip(sorted_namespaces, answers, strict=True) if may)
        self._named |= visible
        return visible

    async def events(self, namespace: str) -> bool:
        try:
            return await self._review.may_list(self._user, "events", namespace)
        except ApiError as exc:
            raise _not_reviewed(exc) from exc


def is_signed_in(access: Access, caller: HTTPConnection) -> bool:
    """Tells whether the caller has signed in on the page, rather than sent a token with the request."""
    return access.takes_tokens(caller) and bearer_of(caller) is None and bool(caller.cookies.get(TOKEN_COOKIE))


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_local(caller: HTTPConnection) -> bool:
    host, _ = caller.scope.get("server") or ("", None)
    return is_loopback(host)


def _not_reviewed(exc: ApiError) -> Refusal:
    if isinstance(exc, Forbidden):
        return Refusal(
            500,
            "the service may not ask who callers are: bind the ClusterRole system:auth-delegator to its service "
            "account",
        )
    return Refusal(503, "the API server did not say who the caller is", RETRY_SOON)


def certified_user(caller: HTTPConnection) -> User | None:
    """Returns the user of the caller's certificate; None without one that was verified."""
    user: User | None = caller.scope.get(CERTIFIED)
    return user


def user_of_certificate(receive: Receive) -> User | None:
    """Returns the user whom the client certificate of a connection names: the common name, in the organizations as
    groups.

    None without a certificate that the server's client CA has verified, or if it has no common name.

    Arguments:
        receive: of the server itself. ASGI has no place for the certificate; uvicorn's `receive` is a method of what
            holds the connection. A server of another kind, or a wrapper around it, leaves all callers without a
            certificate.
    """
    cycle = getattr(receive, "__self__", None)
    if not isinstance(cycle, httptools_impl.RequestResponseCycle):
        from uvicorn.protocols.http import h11_impl  # noqa: PLC0415 - our own server never has it

        if not isinstance(cycle, h11_impl.RequestResponseCycle):
            return None
    certificate: Mapping[str, Any] = cycle.transport.get_extra_info("peercert") or {}
    subject = [attribute for names in certificate.get("subject", ()) for attribute in names]
    common_names = [value for kind, value in subject if kind == "commonName"]
    if not common_names or not common_names[-1]:
        return None
    groups = [value for kind, value in subject if kind == "organizationName"]
    return User(common_names[-1], groups=(*groups, "system:authenticated"))


def token_of(caller: HTTPConnection) -> str:
    """Returns the token of the Authorization header, or without one that of the cookie; empty if there is none."""
    bearer = bearer_of(caller)
    token = caller.cookies.get(TOKEN_COOKIE, "") if bearer is None else bearer
    return token if token.isascii() and len(token) <= limits.TOKEN_CHARACTERS else ""


def bearer_of(caller: HTTPConnection) -> str | None:
    """Returns the token of the Authorization header; None without such a header."""
    scheme, _, token = caller.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
