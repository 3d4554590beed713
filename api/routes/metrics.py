"""GET /metrics and below, which Prometheus scrapes.

Upstream: cmd/kube-scheduler/app/server.go, newHealthEndpointsAndMetricsHandler.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from api.callers.http_refusals import Refusal
from api.service_state import service_of

TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(request: Request) -> Response:
    """Metrics under upstream's names; those that begin with `reprieve_` are our own."""
    service = service_of(request)
    if service is None:
        raise Refusal(503, "not started yet")
    return Response(service.backend.metrics() + service.verb_metrics.text(), media_type=TEXT_FORMAT)


async def resource_metrics(request: Request) -> Response:
    """Requests and limits by pod and resource; empty while another replica leads."""
    service = service_of(request)
    return Response(b"" if service is None else await service.backend.resource_metrics(), media_type=TEXT_FORMAT)


async def sli_metrics(request: Request) -> Response:
    """The last outcome of each health check, and how often each outcome occurred."""
    service = service_of(request)
    return Response(b"" if service is None else service.checks.text(), media_type=TEXT_FORMAT)


ANSWERS: Final = {"/metrics": metrics, "/metrics/resources": resource_metrics, "/metrics/slis": sli_metrics}
SUMMARIES: Final = {
    "/metrics": "Metrics of the scheduler, for Prometheus",
    "/metrics/resources": "Requests and limits of pods, for Prometheus",
    "/metrics/slis": "Outcomes of health checks, for Prometheus",
}
