"""KubernetesFace: requests for the paths of the Kubernetes API go to our own cluster, if we have one; all others go on."""

from typing import Final, final

from starlette.types import ASGIApp, Receive, Scope, Send

_ROOTS: Final = frozenset(("api", "apis", "version", "openapi"))


@final
class KubernetesFace:
    """An ASGI application around another.

    It stands before the limits of the extender's routes: a watch is a request that never ends, and patches have content types of their own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        chosen = self._app
        if scope["type"] == "http" and scope["path"].lstrip("/").partition("/")[0] in _ROOTS:
            chosen = getattr(scope["app"].state, "kubernetes", None) or self._app
        await chosen(scope, receive, send)
