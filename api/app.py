"""create_app(): the FastAPI application with a service behind it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.callers.guards import BrowserGuard, EndpointGuard
from api.callers.http_refusals import status_body
from api.documents.documentation import describe
from api.kubernetes import KubernetesApi
from api.routes import docs, extender, health, operation, page, questions
from api.routes.questions import only_known_parameters, what_is_wrong
from api.serving.limits import RequestLimits
from api.settings.settings import Settings, listed
from api.starting import Opens, opens
from extender import __version__
from extender.values.concurrency.process import rare_collections

ROUTERS: Final = (
    extender.router,
    questions.router,
    questions.guarded,
    page.open_to_all,
    page.parts,
    page.router,
    health.router,
    operation.router,
    docs.router,
)
"""All routes of the application but that of its OpenAPI document."""

_ROUTING: Final = {404: "there is nothing at this path", 405: "this path does not take this method"}

_DESCRIPTION: Final = "A Kubernetes scheduler extender that decides as kube-scheduler 1.36 does."


def create_app(settings: Settings, opens: Callable[[Settings], Opens] = opens) -> FastAPI:
    """Returns the application. The service behind it is opened when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opens(settings)() as service:
            app.state.service = service
            async with rare_collections(service.backend.wait_for_sync):
                yield

    app = _Application(
        title="Reprieve",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        # A redirect would make Go send the whole body again. FastAPI's own pages load scripts from elsewhere; ours is
        # `api.routes.docs`.
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        exception_handlers={HTTPException: _refused, RequestValidationError: _invalid},
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.settings = settings
    app.add_middleware(KubernetesApi)
    app.add_middleware(RequestLimits, settings=settings)
    app.add_middleware(EndpointGuard, prefix=settings.prefix, always_allowed=settings.always_allowed_paths)
    app.add_middleware(BrowserGuard, allowed_hosts=listed(settings.allowed_hosts))
    for router in ROUTERS:
        prefix = settings.prefix if router is extender.router else ""
        dependencies = [Depends(only_known_parameters)] if router in (questions.router, questions.guarded) else []
        app.include_router(router, prefix=prefix, dependencies=dependencies)
    return app


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = describe(self)
        return self.openapi_schema


async def _refused(request: Request, exc: Exception) -> Response:
    """What the router refuses, in the form of all other refusals."""
    code, headers = (exc.status_code, exc.headers) if isinstance(exc, HTTPException) else (500, None)
    return Response(status_body(code, _ROUTING.get(code, "the request was refused")), code, headers, "application/json")


async def _invalid(request: Request, exc: Exception) -> Response:
    errors = exc.errors() if isinstance(exc, RequestValidationError) else ()
    return Response(status_body(400, what_is_wrong(request, errors)), 400, media_type="application/json")
