"""POST /filter, /prioritize, /preempt and /bind, as kube-scheduler calls them.

What cannot be decoded is a 400. What is understood and cannot be answered is a 200 with the text in `Error` where the
answer has such a field, because kube-scheduler drops the body of any other status; prioritize then scores nothing, and
preempt has only the 503.
"""

import logging
from collections.abc import Callable, Coroutine
from itertools import chain
from time import perf_counter
from typing import Any, Final, final

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from api.callers.access import certified_user
from api.callers.http_refusals import RETRY_SOON, Refusal, unreadable_refused
from api.documents.documentation import BIND, FILTER, PREEMPT, PRIORITIZE
from api.service_state import JsonInParts, ServiceState, UntilHangUp, decoded, json_response, service_of
from api.settings.settings import Settings
from api.verb_metrics import Outcome
from extender.client.access_review import User
from extender.values.klog.setup import escaped, report
from extender.values.metrics.tracing import CURRENT
from extender.values.protocol.verb_arguments import (
    AskedNodes,
    read_binding_args,
    read_extender_args,
    read_preemption_args,
)
from extender.values.protocol.verb_results import (
    binding_result,
    filter_error,
    filter_result,
    preemption_result,
    prioritize_result,
)
from extender.verbs import VerbError

_LOGGER: Final = logging.getLogger(__name__)
_NO_NODES: Final = "neither nodes nor nodeNames given"


@final
class MeasuredRoute(APIRoute):
    """The route of a verb. What it answers is counted once the service has started."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        verb = self.path.rsplit("/", 1)[-1]

        async def measured(request: Request) -> Response:
            began, outcome, sent_bytes = perf_counter(), Outcome.REFUSED, 0
            service = getattr(request.app.state, "service", None)
            trace = None if service is None or service.tracer is None else service.tracer.call(verb, request.headers)
            CURRENT.set(trace)
            try:
                response = await handle(request)
                outcome = getattr(request.state, "outcome", Outcome.ANSWERED)
                sent_bytes = int(response.headers.get("content-length", 0))
                return response
            finally:
                if trace is not None:
                    trace.describe(reprieve__result=outcome.value)
                    trace.end()
                if service is not None:
                    received = int(request.headers.get("content-length", 0))
                    service.verb_metrics.answered(verb, outcome, perf_counter() - began, received, sent_bytes)

        return measured


router: Final = APIRouter(tags=["extender"], route_class=MeasuredRoute)


@router.post("/filter", **FILTER)
async def filter_nodes(request: Request) -> Response:
    """Says which of the nodes the pod can run on, and why not on the others."""
    service = _ready_service(request)
    args = await _asked_nodes(request, service)
    if args.names is None:
        request.state.outcome = Outcome.ERROR
        return json_response(filter_error(_NO_NODES))
    service.verb_metrics.asked_about("filter", len(args.names))
    try:
        async with UntilHangUp(request, is_read=True):
            result = await service.backend.verbs.filter(
                args.pod, node_names=args.names, nodes=args.nodes, caller=_caller(request)
            )
        service.verb_metrics.rejected(chain(result.failed.values(), result.failed_and_unresolvable.values()))
        parts = filter_result(args, result.kept, result.failed, result.failed_and_unresolvable)
        return json_response(parts[0]) if len(parts) == 1 else JsonInParts(parts)
    except VerbError as exc:
        request.state.outcome = Outcome.ERROR
        return json_response(filter_error(str(exc)))
    except ClientDisconnect:
        raise
    except Exception as exc:
        request.state.outcome = Outcome.ERROR
        number = report(_LOGGER, f"filter of pod {args.pod.key}", exc)
        return json_response(filter_error(f"internal error, id {number}"))


@router.post("/prioritize", **PRIORITIZE)
async def prioritize_nodes(request: Request) -> Response:
    """Scores each of the nodes from 0 to 10: from the worst to the best, or a tenth where only your plugins score."""
    service = _ready_service(request)
    args = await _asked_nodes(request, service)
    if args.names is None:
        _LOGGER.warning("prioritize of pod %s: %s", args.pod.key, _NO_NODES)
        request.state.outcome = Outcome.ERROR
        return json_response(prioritize_result([], []))
    service.verb_metrics.asked_about("prioritize", len(args.names))
    try:
        async with UntilHangUp(request, is_read=True):
            scores = await service.backend.verbs.prioritize(
                args.pod, node_names=args.names, nodes=args.nodes, caller=_caller(request)
            )
    except VerbError as exc:
        _LOGGER.warning("prioritize of pod %s: %s", args.pod.key, escaped(str(exc)))
        request.state.outcome = Outcome.ERROR
        scores = [0] * len(args.names)
    return json_response(prioritize_result(args.names, scores))


@router.post("/preempt", **PREEMPT)
async def preempt(request: Request) -> Response:
    """Says which pods have to go on each of the nodes; nodes where that does not help are left out. A node without
    victims on which the pod fits is passed on without any, and victims on such a node stay.
    """
    service = _ready_service(request)
    args = decoded(read_preemption_args, await request.body())
    service.verb_metrics.asked_about("preempt", len(args.candidates))
    try:
        async with UntilHangUp(request):
            chosen = await service.backend.verbs.preempt(
                args.pod, args.candidates, victim=args.victim, caller=_caller(request)
            )
    except VerbError as exc:
        _LOGGER.warning("preempt for pod %s: %s", args.pod.key, escaped(str(exc)))
        raise Refusal(503, "preemption cannot be evaluated for this pod; the log has the reason", RETRY_SOON) from exc
    return json_response(preemption_result(chosen))


@router.post("/bind", **BIND)
async def bind(request: Request) -> Response:
    """Binds the pod to the node, if the profile of its schedulerName accepts it there. Served with --serve-bind
    only.
    """
    settings: Settings = request.app.state.settings
    if not settings.serve_bind:
        raise Refusal(
            404,
            "bind is not served: start the service with --serve-bind, or leave bindVerb empty so that kube-scheduler "
            "binds",
        )
    service = _ready_service(request)
    args = decoded(read_binding_args, await request.body())
    try:
        await service.backend.verbs.bind(args.pod_name, args.pod_namespace, args.pod_uid, args.node)
    except VerbError as exc:
        request.state.outcome = Outcome.ERROR
        return json_response(binding_result(str(exc)))
    except Exception as exc:
        request.state.outcome = Outcome.ERROR
        number = report(_LOGGER, f"bind of pod {args.pod_namespace}/{args.pod_name}", exc)
        return json_response(binding_result(f"internal error, id {number}"))
    return json_response(binding_result())


def _caller(request: Request) -> str:
    """Returns who calls, for the records: the user, or where an unknown caller calls from."""
    user: User | None = getattr(request.state, "user", None) or certified_user(request)
    if user is not None:
        return user.username
    return f"anonymous at {request.client.host}" if request.client is not None else "anonymous"


async def _asked_nodes(request: Request, service: ServiceState) -> AskedNodes:
    arriving = service.decoded_nodes.arriving()
    async for part in request.stream():
        arriving.take(part)
    with unreadable_refused():
        async with UntilHangUp(request, is_read=True):
            return await read_extender_args(arriving.finish(), service.decoded_nodes)


def _ready_service(request: Request) -> ServiceState:
    service = service_of(request)
    if service is None or not service.backend.is_ready():
        raise Refusal(503, "the cluster is not known yet", RETRY_SOON)
    return service
