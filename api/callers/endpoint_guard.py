"""EndpointGuard: lets a request through to its endpoint if its caller may call that.

A path is guarded unless it is named here or in --authorization-always-allow-paths. Those below /v1 and /ui are named as
a whole: their routers depend on `api.routes.caller.caller_of`, which asks who the caller is.
"""

import re
from collections.abc import Collection
from typing import Final, final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from api.callers.access import Access
from api.callers.authentication import CERTIFIED, user_of_certificate
from api.callers.browsers import as_response
from api.callers.http_refusals import RETRY_SOON, Refusal

VERBS: Final = ("filter", "prioritize", "preempt", "bind")

_ABOUT_NAMES: Final = re.compile(r"/(ui/.+|v1/(?!evaluate$).+)?")
"""Paths whose routes ask `Access.of` themselves, because a page answers a stranger with a form to sign in. What that
form needs is open: its style sheet and scripts, /ui/sign-in and /ui/sign-out (`api.routes.page.open_to_all`).
"""


def asks_its_caller_itself(path: str) -> bool:
    """Returns whether the route of the path knows its caller without the guard."""
    return _ABOUT_NAMES.fullmatch(path) is not None


@final
class EndpointGuard:
    """An ASGI middleware. It stands before what reads a body or counts requests, so that a stranger takes no place from
    others.
    """

    def __init__(self, app: ASGIApp, prefix: str, always_allowed: Collection[str]) -> None:
        """Stands before the application.

        Arguments:
            prefix: the path before the verbs.
            always_allowed: paths that everyone may call; one that ends in `*` stands for all that begin so.
        """
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
