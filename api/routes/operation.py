"""GET /metrics, /metrics/resources, /metrics/slis and /configz: what those who operate a scheduler ask it.

Upstream: cmd/kube-scheduler/app/server.go, newHealthEndpointsAndMetricsHandler; component-base/configz (v1.36.2).
"""

from typing import Final

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.documentation import CONFIGZ, METRICS
from api.face import face_of, json_response
from api.refusals import Refusal
from extender.config import written

router: Final = APIRouter(tags=["operation"])

TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", summary="What the scheduler has done, for Prometheus", **METRICS)
async def metrics(request: Request) -> Response:
    """Under upstream's names; those that begin with `reprieve_` are ours."""
    face = face_of(request)
    if face is None:
        raise Refusal(503, "not started yet")
    return _metrics(face.backend.metrics())


@router.get("/metrics/resources", summary="What every pod asks for, for Prometheus", **METRICS)
async def resource_metrics(request: Request) -> Response:
    """Requests and limits by pod and resource; nothing while another replica leads."""
    face = face_of(request)
    return _metrics(b"" if face is None else face.backend.resource_metrics())


@router.get("/metrics/slis", summary="How health checks have come out, for Prometheus", **METRICS)
async def sli_metrics(request: Request) -> Response:
    """Each check when it was run last, and how often it came out how."""
    face = face_of(request)
    return _metrics(b"" if face is None else face.checks.text())


@router.get("/configz", summary="The configuration that is in force", **CONFIGZ)
async def configz(request: Request) -> Response:
    """With every default spelled out, under `componentconfig`."""
    face = face_of(request)
    if face is None or face.backend.configuration is None:
        raise Refusal(503, "not started yet")
    return json_response(orjson.dumps({"componentconfig": written(face.backend.configuration)}))


def _metrics(text: bytes) -> Response:
    return Response(text, media_type=TEXT_FORMAT, headers={"X-Content-Type-Options": "nosniff"})
