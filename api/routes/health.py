"""GET /healthz, /livez and /readyz, as the components of Kubernetes answer them.

Upstream: apiserver, server/healthz, healthz.go, handleRootHealth and adaptCheckToHandler.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Scope

from api.callers.http_refusals import Refusal
from api.service_state import ServiceState, service_of
from extender.client.informers.reflector_state import Health
from extender.values.klog.setup import escaped

Check = Callable[[ServiceState | None], str]
"""What is wrong; empty if nothing is."""

_LOGGER: Final = logging.getLogger(__name__)


def _ping(service: ServiceState | None) -> str:
    return ""


def _informer_sync(service: ServiceState | None) -> str:
    if service is None:
        return "not started yet"
    if service.backend.is_ready():
        return ""
    waiting = [
        f"{informer.resource} ({informer.last_error or 'being listed'})"
        for informer in service.backend.health()
        if not informer.synced
    ]
    if waiting or not service.backend.health():
        return f"{len(waiting)} informers not synced yet: {', '.join(waiting)}"
    stale = [
        f"{informer.resource} (for {informer.failing_for:.0f} s: {informer.last_error})"
        for informer in service.backend.health()
        if informer.failing_for
    ]
    return f"{len(stale)} informers receive nothing: {', '.join(stale)}"


def _handler_sync(service: ServiceState | None) -> str:
    if service is not None:
        health = service.backend.health()
        if service.backend.is_ready() or (health and all(informer.synced for informer in health)):
            return ""
    return "handlers are not fully synchronized"


def _leader_election(service: ServiceState | None) -> str:
    return service.backend.leadership() if service is not None and service.backend.leadership is not None else ""


ELECTION: Final = "leaderElection"
"""The check while replicas elect a leader. Upstream: client-go/tools/leaderelection, healthzadaptor.go."""

CHECKS: Final[Mapping[str, Mapping[str, Check]]] = {
    "healthz": {"ping": _ping, ELECTION: _leader_election},
    "livez": {"ping": _ping, ELECTION: _leader_election},
    "readyz": {
        "ping": _ping,
        ELECTION: _leader_election,
        "sched-handler-sync": _handler_sync,
        "informer-sync": _informer_sync,
    },
}


def _plugins(service: ServiceState | None) -> str:
    return "" if service is None else "; ".join(service.backend.quarantined())


_ASKED_BY_NAME: Final[Mapping[str, dict[str, Check]]] = {"healthz": {"plugins": _plugins}}
"""Checks that do not count for the path above them: to restart the process would not help."""

SUMMARIES: Final = {"healthz": "Overall health", "livez": "Liveness", "readyz": "Readiness"}
_CODES: Final = {"healthz": 500, "livez": 500, "readyz": 503}


def path_of(scope: Scope) -> str:
    """Returns the path as the service knows it, without what a proxy puts before it (`--root-path` of uvicorn)."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def answer_of(path: str) -> Callable[[Request], Awaitable[Response]] | None:
    """Returns what answers a request for this path; None if it is not one of these."""
    name, slash, check = path[1:].partition("/")
    if name not in CHECKS or "/" in check or bool(slash) != bool(check):
        return None
    return partial(one_check, check=check) if check else all_checks


def _checks(name: str, service: ServiceState | None) -> dict[str, Check]:
    is_elected = service is not None and service.backend.leadership is not None
    return {check: ask for check, ask in CHECKS[name].items() if is_elected or check != ELECTION}


async def all_checks(request: Request) -> PlainTextResponse:
    """Runs the checks but for those that `exclude` names. They are listed on failure, and with `verbose`."""
    name = path_of(request.scope).strip("/")
    service = service_of(request)
    excluded = dict.fromkeys(request.query_params.getlist("exclude"))
    lines, failed = [], []
    for check, wrong_with in _checks(name, service).items():
        if check in excluded:
            del excluded[check]
            lines.append(f"[+]{check} excluded: ok")
        elif not _wrong(name, check, wrong_with, service):
            lines.append(f"[+]{check} ok")
        else:
            failed.append(check)
            lines.append(f"[-]{check} failed: reason withheld")
    if excluded:
        lines.append(
            f"warn: some health checks cannot be excluded: no matches for {','.join(map(json.dumps, sorted(excluded)))}"
        )
    if failed:
        _LOGGER.warning("%s check failed: %s", name, ",".join(failed))
        return PlainTextResponse("".join(f"{line}\n" for line in lines) + f"{name} check failed\n", _CODES[name])
    if "verbose" not in request.query_params:
        return PlainTextResponse("ok")
    return PlainTextResponse("".join(f"{line}\n" for line in lines) + f"{name} check passed\n")


async def one_check(request: Request, check: str) -> PlainTextResponse:
    """Runs one check by name."""
    name = path_of(request.scope).strip("/").partition("/")[0]
    service = service_of(request)
    wrong_with = (_checks(name, service) | _ASKED_BY_NAME.get(name, {})).get(check)
    if wrong_with is None:
        raise Refusal(404, "there is no check of this name")
    wrong = _wrong(name, check, wrong_with, service)
    if wrong:
        return PlainTextResponse(f"internal server error: {escaped(wrong, 4096)}\n", _CODES[name])
    if check == "informer-sync" and service is not None and "verbose" in request.query_params:
        return PlainTextResponse("".join(f"{_described(resource)}\n" for resource in service.backend.health()) or "ok")
    return PlainTextResponse("ok")


def _wrong(name: str, check: str, wrong_with: Check, service: ServiceState | None) -> str:
    wrong = wrong_with(service)
    if service is not None:
        service.checks.note(check, name, is_well=not wrong)
    return wrong


def _described(resource: Health) -> str:
    parts = [resource.resource, "synced" if resource.synced else "not synced"]
    if not resource.is_served:
        parts.append("not served by the API server, so treated as empty")
    if resource.silent_for is not None:
        parts.append(f"last heard of {resource.silent_for:.0f} s ago")
    parts += [f"{namespace}/{name} cannot be read: {why}" for (namespace, name), why in resource.unreadable.items()]
    if resource.last_error:
        parts.append(resource.last_error)
    return escaped(", ".join(parts), 4096)
