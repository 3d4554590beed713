"""What stands before all routes: EndpointGuard and BrowserGuard.

EndpointGuard lets a request through to its endpoint if its caller may call that. A path is guarded unless it is named
here or in --authorization-always-allow-paths. Those below /v1 and /ui are named as a whole: their routers depend on
`api.routes.caller.caller_of`, which asks who the caller is.

BrowserGuard keeps pages of other sites from calling, but for links to what is read, and from reading answers by DNS
rebinding.

A browser lets any page send requests to any address that it reaches, even on the user's own machine. Such a page may
send what an HTML form could send, and reads no answer, but one that takes long, or that does not end, keeps a place
from others. `Sec-Fetch-Site` and `Origin` tell of it. A page whose own name has been made to resolve to the service's
address (DNS rebinding) reads answers, too; its requests carry that name in `Host`.

Upstream: Go, net/http, csrf.go, CrossOriginProtection.Check. RFC 9112, section 3.2, has the rules for Host.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final, final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.callers.access import CERTIFIED, Access, user_of_certificate
from api.callers.http_refusals import RETRY_SOON, Refusal, status_body

_READING: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_OWN_SITE: Final = ("same-origin", "none")
"""Values of Sec-Fetch-Site for requests of our own pages, and for those of a user: a bookmark, or a typed address."""

_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::\d{0,5})?")

_NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""Browsers must not guess content types."""


VERBS: Final = ("filter", "prioritize", "preempt", "bind")

_ABOUT_NAMES: Final = re.compile(r"/(ui/.+|v1/(?!evaluate$).+)?")
"""Paths whose routes ask `Access.of` themselves, because a page answers a stranger with a form to sign in. What that
form needs is open: its style sheet and scripts, /ui/sign-in and /ui/sign-out (`api.routes.page.open_to_all`).
"""


@final
class BrowserGuard:
    """An ASGI middleware. Refuses what another site's page causes, and forbids guessing the type of an answer."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str]) -> None:
        """Stands before the application, which is reached by the allowed hosts, besides those of loopback.

        Addresses need not be named: a page is known to its browser by a name that was resolved, or by an address that
        it really came from.
        """
        self._app: Final = app
        self._allowed: Final = frozenset(name.lower().rstrip(".") for name in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        app: ASGIApp = self._app
        try:
            self._check(scope)
        except Refusal as refusal:
            app = as_response(refusal)

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                warning = scope.get("state", {}).get("warning")
                warning_headers = [(b"warning", f'299 - "{warning}"'.encode())] if warning else []
                message = {**message, "headers": [*message.get("headers", ()), _NO_SNIFFING, *warning_headers]}
            await send(message)

        await app(scope, receive, send_marked)

    def _check(self, scope: Scope) -> None:
        """Checks the head. Raises Refusal: 400 without a proper Host, 421 or 403 for other sites, 415 for no type."""
        headers = Headers(scope=scope)
        host = _host(scope, headers)
        if host and not _is_address(host) and not _is_loopback_name(host) and host not in self._allowed:
            raise Refusal(
                421, "this service is not known by the name in Host: use an address, or start it with --allowed-hosts"
            )
        is_read = scope["method"] in _READING
        if not (is_read and _is_link(headers)):
            _check_origin(headers)
        if is_read:
            return
        # Scripts may send a body without a type to any site. Before one of a type that is not a form's, browsers ask
        # the site, and so they do before a script sends a User-Agent of its own. `kubectl create --raw` names no type.
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        if has_body and "content-type" not in headers and not headers.get("user-agent", "").startswith("kubectl/"):
            raise Refusal(415, "the body needs a Content-Type")


def _host(scope: Scope, headers: Headers) -> str:
    """Returns the host in lower case; empty for HTTP/1.0 without one, which no browser sends. Raises Refusal: 400."""
    hosts = headers.getlist("host")
    if not hosts and scope["http_version"] == "1.0":
        return ""
    authority = _AUTHORITY.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if authority is None:
        raise Refusal(400, "a request needs exactly one Host header, with a host and perhaps a port")
    return authority["host"].lower().rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _is_loopback_name(host: str) -> bool:
    """RFC 6761, section 6.3: these names never leave the machine."""
    return host == "localhost" or host.endswith(".localhost")


def _is_link(headers: Headers) -> bool:
    """Tells whether a browser's tab goes here, be it from a page of another site: no frame, and nothing in advance."""
    is_of_tab = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return is_of_tab and "sec-purpose" not in headers


def _check_origin(headers: Headers) -> None:
    """Refuses what a page of another origin causes. Only browsers send either of the two headers."""
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
    if site in _OWN_SITE or (not site and not origin):
        return
    # Some browsers, and all of them over plain HTTP to another machine, send only the second one.
    if site or origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise Refusal(403, "a page of another origin may only link to what is here")


def as_response(refusal: Refusal) -> Response:
    """Returns the refusal of a request whose body is not read, so that its connection cannot be used again."""
    body = status_body(refusal.code, str(refusal), refusal.details)
    return Response(body, refusal.code, {**refusal.headers, "Connection": "close"}, "application/json")


def asks_its_caller_itself(path: str) -> bool:
    """Returns whether the route of the path knows its caller without the guard."""
    return _ABOUT_NAMES.fullmatch(path) is not None


@final
class EndpointGuard:
    """An ASGI middleware, before what reads bodies or counts requests: strangers take no place from others."""

    def __init__(self, app: ASGIApp, prefix: str, always_allowed: Collection[str]) -> None:
        """Stands before the application; all may call the always allowed paths, and those below a final `*`."""
        self._app: Final = app
        self._verbs: Final = frozenset(f"{prefix}/{verb}" for verb in VERBS)
        self._allowed: Final = frozenset(path for path in always_allowed if not path.endswith("*"))
        self._allowed_prefixes: Final = tuple(path[:-1] for path in always_allowed if path.endswith("*"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._app
        if scope["type"] == "http":
            scope[CERTIFIED] = user_of_certificate(receive)
            try:
                await self._admit(HTTPConnection(scope))
            except Refusal as refusal:
                app = as_response(refusal)
        await app(scope, receive, send)

    async def _admit(self, caller: HTTPConnection) -> None:
        path = caller.scope["path"].removeprefix(caller.scope.get("root_path", ""))
        is_verb = path in self._verbs
        if (
            path in self._allowed
            or path.startswith(self._allowed_prefixes)
            or (not is_verb and asks_its_caller_itself(path))
        ):
            return
        service = getattr(caller.app.state, "service", None)
        if service is None:
            raise Refusal(503, "the service is starting", RETRY_SOON)
        access: Access = service.access
        caller.state.user = await access.admit(caller, path, is_verb=is_verb)
