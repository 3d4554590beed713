"""GET /healthz, /livez and /readyz, as the components of Kubernetes answer them.

Upstream: apiserver, server/healthz, healthz.go, handleRootHealth and adaptCheckToHandler.
"""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from api.documentation import health
from api.face import Face, face_of
from api.refusals import Refusal

router: Final = APIRouter(tags=["health"])

Check = Callable[[Face | None], bool]

_LOGGER: Final = logging.getLogger(__name__)


def _ping(face: Face | None) -> bool:
    return True


def _engine(face: Face | None) -> bool:
    return face is not None and face.engine.is_ready


CHECKS: Final[Mapping[str, Mapping[str, Check]]] = {
    "healthz": {"ping": _ping, "engine": _engine},
    "livez": {"ping": _ping},
    "readyz": {"ping": _ping, "engine": _engine},
}


@router.get("/healthz", **health("Whether all is well"))
@router.get("/livez", **health("Whether the process should go on"))
@router.get("/readyz", **health("Whether calls can be answered"))
async def all_checks(request: Request) -> PlainTextResponse:
    """Run the checks; each is listed on failure, or if `verbose` is there, but for those named by `exclude`."""
    name = request.scope["path"].strip("/")
    face = face_of(request)
    excluded = dict.fromkeys(request.query_params.getlist("exclude"))
    lines, failed = [], []
    for check, is_fine in CHECKS[name].items():
        if check in excluded:
            del excluded[check]
            lines.append(f"[+]{check} excluded: ok")
        elif is_fine(face):
            lines.append(f"[+]{check} ok")
        else:
            failed.append(check)
            lines.append(f"[-]{check} failed: reason withheld")
    if excluded:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {','.join(map(json.dumps, sorted(excluded)))}")
    if failed:
        _LOGGER.warning("%s check failed: %s", name, ",".join(failed))
        return _text("".join(f"{line}\n" for line in lines) + f"{name} check failed\n", 500)
    if "verbose" not in request.query_params:
        return _text("ok")
    return _text("".join(f"{line}\n" for line in lines) + f"{name} check passed\n")


@router.get("/healthz/{check}", **health("One of the checks"))
@router.get("/livez/{check}", **health("One of the checks"))
@router.get("/readyz/{check}", **health("One of the checks"))
async def one_check(request: Request, check: str) -> PlainTextResponse:
    """Run one check by name."""
    name = request.scope["path"].strip("/").partition("/")[0]
    is_fine = CHECKS[name].get(check)
    if is_fine is None:
        raise Refusal(404, "there is no check of this name")
    return _text("ok") if is_fine(face_of(request)) else _text(f"internal server error: {check} failed\n", 500)


def _text(text: str, code: int = 200) -> PlainTextResponse:
    return PlainTextResponse(text, code, {"X-Content-Type-Options": "nosniff"})
