"""What operators ask a scheduler: the configuration, flags, status, and how much is logged.

/flagz, /statusz and /debug/flags/v are for people who look into a running process; their texts may change at any time.
Where callers are not asked who they are, only those on this machine may change anything.

Upstream: cmd/kube-scheduler/app/server.go, newHealthEndpointsAndMetricsHandler; component-base/configz, zpages/flagz,
zpages/statusz; apiserver/pkg/server/routes/flags.go.
"""

import platform
import time
from datetime import UTC, datetime
from typing import Final

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from msgspec.structs import asdict

from api.callers.access import is_loopback
from api.callers.http_refusals import Refusal
from api.documents.documentation import plain
from api.service_state import json_response, service_of
from api.settings.settings import Settings
from extender import __version__
from extender.values.config.completion import written
from extender.values.golang.times import Duration
from extender.values.klog.setup import escaped, set_verbosity

router: Final = APIRouter(tags=["operation"])

_HEADER: Final = """
reprieve {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

"""  # noqa: E501 - kube-scheduler's words
_STARTED: Final = datetime.now(UTC), time.monotonic()
_LONGEST_NUMBER: Final = 10


@router.get("/configz", summary="The configuration in force", **plain("The configuration.", "application/json"))
async def configz(request: Request) -> Response:
    """The configuration with every default, under `componentconfig`; feature gates that are on and off, under
    `featureGates`.
    """
    service = service_of(request)
    if service is None or service.backend.configuration is None:
        raise Refusal(503, "not started yet")
    configuration = service.backend.configuration
    gates = {name: is_on for name, _, is_on in configuration.feature_gates.stages()}
    return json_response(orjson.dumps({"componentconfig": written(configuration), "featureGates": gates}))


@router.put("/debug/flags/v", include_in_schema=False)
async def set_v(request: Request) -> PlainTextResponse:
    """Sets how much is logged from now on to the number in the body."""
    service = service_of(request)
    configuration = None if service is None else service.backend.configuration
    if configuration is not None and not configuration.enable_profiling:
        raise Refusal(404, "there is nothing at this path while profiling is off")
    is_here = request.client is not None and is_loopback(request.client.host)
    if getattr(request.state, "user", None) is None and not is_here:
        raise Refusal(403, "only callers on this machine may change how much is logged")
    text = (await request.body()).decode("utf-8", "replace")
    number = text.strip()
    if not (number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER):
        value = escaped(text)
        return PlainTextResponse(
            f'failed set klog.logging.verbosity {value}: strconv.ParseInt: parsing "{value}": invalid syntax\n', 400
        )
    set_verbosity(int(number))
    return PlainTextResponse(f"successfully set klog.logging.verbosity to {number}\n")


@router.get("/flagz", summary="The settings", **plain("One line for each; the format may change."))
async def flagz(request: Request) -> PlainTextResponse:
    """Lists all settings, from flags and the environment."""
    settings = _settings_if("ComponentFlagz", request)
    lines = {name.replace("_", "-"): _flag_text(value) for name, value in asdict(settings).items()}
    return PlainTextResponse(
        _HEADER.format(page="flagz") + "".join(f"{name}={value}\n" for name, value in sorted(lines.items()))
    )


@router.get("/statusz", summary="The version and the start time", **plain("One line for each; the format may change."))
async def statusz(request: Request) -> PlainTextResponse:
    """Says which version runs, and since when."""
    settings = _settings_if("ComponentStatusz", request)
    when, began = _STARTED
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    hours, minutes = divmod(minutes, 60)
    lines = {
        "Started": f"{when:%a %b %d %H:%M:%S UTC %Y}",
        "Up": f"{hours} hr {minutes:02} min {seconds:02} sec",
        "Python version": platform.python_version(),
        "Binary version": __version__,
        "Emulation version": settings.emulated_version,
        "Paths": "/configz /debug/flags/v /flagz /healthz /livez /metrics /metrics/resources /metrics/slis /readyz "
        "/statusz",
    }
    return PlainTextResponse(
        _HEADER.format(page="statusz") + "".join(f"{name}: {value}\n" for name, value in lines.items())
    )


def _settings_if(gate: str, request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    if not settings.features.enabled(gate):
        raise Refusal(404, f"there is nothing at this path while the feature gate {gate} is off")
    return settings


def _flag_text(value: object) -> str:
    if isinstance(value, bool | Duration):
        return str(value).lower()
    return "" if value is None else escaped(str(value))
