"""create_app(): the application with a service behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.callers.guards import BrowserGuard, EndpointGuard
from api.kubernetes import KubernetesApi
from api.routes import health, metrics
from api.serving.limits import RequestLimits
from api.settings.settings import Settings, listed
from api.starting import Opens, opens
from extender.values.concurrency.process import loading_modules, rare_collections


def create_app(settings: Settings, opens: Callable[[Settings], Opens] = opens) -> Starlette:
    """Returns the application. The service behind it is opened when it starts."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with opens(settings)() as service:
            app.state.service = service
            async with rare_collections(service.backend.wait_for_sync):
                yield

    app = Starlette(lifespan=lifespan)
    app.state.settings = settings
    routes = _Routes(app, settings)
    app.router.default = routes if settings.schedule else routes.load()
    app.add_middleware(KubernetesApi)
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(EndpointGuard, prefix=settings.prefix, always_allowed=settings.always_allowed_paths)
    app.add_middleware(BrowserGuard, allowed_hosts=listed(settings.allowed_hosts))
    return app


@final
class _Routes:
    """An ASGI application that answers probes and Prometheus. For the first other request FastAPI is loaded with all
    routes, and answers everything from then on: a scheduler has pods to bind when it starts.
    """

    def __init__(self, app: Starlette, settings: Settings) -> None:
        """Stands at the end of the application."""
        self._app: Final = app
        self._settings: Final = settings
        self._loading: Final = asyncio.Lock()

    def load(self) -> ASGIApp:
        """Loads all routes, and returns them."""
        with loading_modules():
            from api.routing import routed  # noqa: PLC0415 - see the class

            return routed(self._settings, self._app.state)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = health.path_of(scope)
        answer = metrics.ANSWERS.get(path) or health.answer_of(path)
        if answer is not None and scope.get("method") == "GET":
            app: ASGIApp = await answer(Request(scope, receive))
        else:
            # Pods are bound meanwhile. Whoever else comes before it is done waits, and tries again if it fails.
            async with self._loading:
                if self._app.router.default is self:
                    self._app.router.default = await asyncio.to_thread(self.load)
            app = self._app.router.default
        await app(scope, receive, send)
