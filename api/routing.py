"""The FastAPI application: all routes, with their documentation."""

from collections.abc import Iterator
from typing import Any, Final, cast

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp

from api.callers.http_refusals import status_body
from api.documents import documentation
from api.routes import docs, extender, health, metrics, operation, page, questions
from api.routes.questions import only_known_parameters, what_is_wrong
from api.settings.settings import Settings
from extender import __version__

_ROUTING: Final = {404: "there is nothing at this path", 405: "this path does not take this method"}

_DESCRIPTION: Final = "A Kubernetes scheduler extender that decides as kube-scheduler 1.36 does."


def _probes() -> Iterator[APIRouter]:
    """Yields routers of what `api.app` answers by itself."""
    checks, scraped = APIRouter(tags=["health"]), APIRouter(tags=["operation"])
    for name, summary in health.SUMMARIES.items():
        checks.get(f"/{name}", **documentation.health(summary))(health.all_checks)
        checks.get(f"/{name}/{{check}}", **documentation.health("One of the checks"))(health.one_check)
    for path, summary in metrics.SUMMARIES.items():
        scraped.get(path, summary=summary, **documentation.plain("All metrics."))(metrics.ANSWERS[path])
    yield from (checks, scraped)


ROUTERS: Final = (
    extender.router,
    questions.router,
    questions.guarded,
    page.open_to_all,
    page.parts,
    page.router,
    *_probes(),
    operation.router,
    docs.router,
)
"""All routes of the application but that of its OpenAPI document."""


def routed(settings: Settings, state: State | None = None) -> FastAPI:
    """Returns the application, for requests that the guards have let through, with the state of a service that runs."""
    app = _Application(
        title="Reprieve",
        version=__version__,
        description=_DESCRIPTION,
        # A redirect would make Go send the whole body again. FastAPI's own pages load scripts from elsewhere; ours is
        # `api.routes.docs`.
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        exception_handlers={HTTPException: _refused, RequestValidationError: _invalid},
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state = state or app.state
    for router in ROUTERS:
        prefix = settings.prefix if router is extender.router else ""
        dependencies = [Depends(only_known_parameters)] if router in (questions.router, questions.guarded) else []
        app.include_router(router, prefix=prefix, dependencies=dependencies)
    return app


class _Application(FastAPI):
    def build_middleware_stack(self) -> ASGIApp:
        """Returns all but the first, which would answer errors; `RequestLimits` does."""
        return cast(ServerErrorMiddleware, super().build_middleware_stack()).app

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = documentation.describe(self)
        return self.openapi_schema


async def _refused(request: Request, exc: Exception) -> Response:
    """What the router refuses, in the form of all other refusals."""
    code, headers = (exc.status_code, exc.headers) if isinstance(exc, HTTPException) else (500, None)
    return Response(status_body(code, _ROUTING.get(code, "the request was refused")), code, headers, "application/json")


async def _invalid(request: Request, exc: Exception) -> Response:
    errors = exc.errors() if isinstance(exc, RequestValidationError) else ()
    return Response(status_body(400, what_is_wrong(request, errors)), 400, media_type="application/json")
