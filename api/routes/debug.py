"""PUT /debug/flags/v, GET /flagz and /statusz: for people who look into a running process. Their texts may change at any time.

Upstream: apiserver/pkg/server/routes/flags.go; component-base/zpages, flagz and statusz (v1.36.2). There callers are authenticated; here
only callers on this machine may change anything.
"""

import ipaddress
import platform
import time
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from starlette.datastructures import Address

from api.face import face_of
from api.refusals import Refusal
from api.settings import Settings
from extender import __version__
from extender.golang.durations import Duration
from extender.klog.setup import escaped, set_verbosity

router: Final = APIRouter(include_in_schema=False)

EMULATED_VERSION: Final = "1.36"

_HEADER: Final = """
reprieve {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

"""
_STARTED: Final = datetime.now(UTC), time.monotonic()
_LONGEST_NUMBER: Final = 10


@router.put("/debug/flags/v")
async def set_v(request: Request) -> PlainTextResponse:
    """Log as much from now on as the body says, a number."""
    face = face_of(request)
    if face is not None and face.backend.configuration is not None and not face.backend.configuration.enable_profiling:
        raise Refusal(404, "there is nothing at this path while profiling is off")
    if not _is_on_this_machine(request.client):
        raise Refusal(403, "only callers on this machine may change how much is logged")
    text = (await request.body()).decode("utf-8", "replace")
    number = text.strip()
    if not (number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER):
        said = escaped(text)
        return _text(f'failed set klog.logging.verbosity {said}: strconv.ParseInt: parsing "{said}": invalid syntax\n', 400)
    set_verbosity(int(number))
    return _text(f"successfully set klog.logging.verbosity to {number}\n")


@router.get("/flagz")
async def flagz(request: Request) -> PlainTextResponse:
    """What is set, by flags and by the environment."""
    settings: Settings = request.app.state.settings
    lines = {name.replace("_", "-"): _shown(value) for name, value in settings}
    return _text(_HEADER.format(page="flagz") + "".join(f"{name}={value}\n" for name, value in sorted(lines.items())))


@router.get("/statusz")
async def statusz(request: Request) -> PlainTextResponse:
    """Which version runs, and since when."""
    when, began = _STARTED
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    hours, minutes = divmod(minutes, 60)
    lines = {
        "Started": f"{when:%a %b %d %H:%M:%S UTC %Y}",
        "Up": f"{hours} hr {minutes:02} min {seconds:02} sec",
        "Python version": platform.python_version(),
        "Binary version": __version__,
        "Emulation version": EMULATED_VERSION,
        "Paths": "/configz /debug/flags/v /flagz /healthz /livez /metrics /metrics/resources /metrics/slis /readyz /statusz",
    }
    return _text(_HEADER.format(page="statusz") + "".join(f"{name}: {value}\n" for name, value in lines.items()))


def _shown(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else escaped(str(value)) if not isinstance(value, Duration) else str(value)


def _is_on_this_machine(client: Address | None) -> bool:
    try:
        return client is not None and ipaddress.ip_address(client.host).is_loopback
    except ValueError:
        return False


def _text(text: str, code: int = 200) -> PlainTextResponse:
    return PlainTextResponse(text, code, {"X-Content-Type-Options": "nosniff"})
