"""/v1: questions about the cluster. Why is a pod pending, what if, who was preempted, how many fit, what runs where;
and /v1/evaluate.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec
import orjson
from fastapi import APIRouter, Path, Query, Request, Response

from api.callers.http_refusals import RETRY_SOON, Refusal, cannot_be_done, not_there, unreadable_refused
from api.callers.streaming import StreamedResponse
from api.documents import question_documents as documents
from api.documents.documentation import EVALUATE
from api.routes.caller import caller_of
from api.service_state import json_response, service_of
from api.ui.streams import Streams
from api.ui.timeline import HistoryFilter, HistoryFilterError
from extender import __version__
from extender.answers.overviews import OutcomeWanted
from extender.answers.plan.answer import PlanRequest
from extender.answers.questions import QuestionError, read_selector
from extender.answers.types import AboutService, Answer, WhatIfRequest
from extender.values.config.configuration import ConfigErrors
from extender.values.golang.json_bytes import read
from extender.values.golang.json_limits import check_json, check_number_of_values
from extender.values.objects.decoding import DecodeError

T = TypeVar("T")

router: Final = APIRouter(prefix="/v1", tags=["questions"])

Name = Annotated[str, Path(min_length=1, max_length=253)]
PodKey = Annotated[str | None, Query(pattern=r"^[^/\s]{1,63}/[^/\s]{1,253}$", description="namespace/name of a pod")]
Limit = Annotated[int, Query(ge=1, le=1000, description="how many at most, newest first")]
MaxPods = Annotated[
    int | None,
    Query(
        ge=1,
        le=100_000,
        description="stop counting here; by default at 100000, or 1000 of pods that are placed one by one",
    ),
]
Moment = Annotated[str, Query(max_length=32, description="a time such as 2026-01-31T12:00:00Z")]
Before = Annotated[int | None, Query(ge=1, le=2**53, description="only those with a smaller id: the next page")]


@router.get("/about", summary="Who answers, and for which cluster?", **documents.ABOUT)
async def about(request: Request) -> Response:
    """Says which version of Reprieve this is, and which cluster its answers are about."""
    caller = await caller_of(request)
    nodes, pods = caller.questions.size
    return _answered(AboutService(version=__version__, cluster=caller.service.cluster, nodes=nodes, pods=pods))


@router.get("/explain/{namespace}/{pod}", summary="Why is this pod pending?", **documents.EXPLAIN)
async def explain(
    request: Request,
    namespace: Name,
    pod: Name,
    picture: Annotated[bool, Query(description="with every node's verdicts, plugin by plugin")] = False,
) -> Response:
    """Says what keeps the pod from every node now, what it waits for, its last attempts, and what would help."""
    answer = await (await caller_of(request)).explain(namespace, pod, picture=picture)
    if answer is None:
        raise not_there("pods", "there is no such pod, and no recent decision about one")
    return _answered(answer)


@router.post("/explain", summary="Why would this pod be pending?", **documents.EXPLAIN_OF)
async def explain_of(
    request: Request,
    picture: Annotated[bool, Query(description="with every node's verdicts, plugin by plugin")] = False,
) -> Response:
    """Does as GET for a pod that does not exist, or for the first pod of a workload (Deployment, Job, ...)."""
    caller = await caller_of(request)
    return await _answer_to(request, dict[str, object], partial(caller.explain_of, picture=picture))


@router.post("/whatif", summary="What would happen if?", **documents.WHAT_IF)
async def what_if(request: Request) -> Response:
    """Tries pods to create, nodes to add, remove or drain, or another configuration on a copy of the cluster. Nothing
    is written.
    """
    return await _answer_to(request, WhatIfRequest, (await caller_of(request)).what_if)


@router.post("/plan", summary="Which pods would have to move, so that it fits?", **documents.PLAN)
async def plan(request: Request) -> Response:
    """Looks for the fewest moves of running pods after which new pods fit, budgets kept and nobody lost. Nothing is
    written.
    """
    return await _answer_to(request, PlanRequest, (await caller_of(request)).plan)


@router.get("/capacity", summary="How many more of this pod fit?", **documents.CAPACITY)
async def capacity(
    request: Request,
    pod: Annotated[str, Query(pattern=r"^[^/\s]{1,63}/[^/\s]{1,253}$", description="namespace/name of a pod")],
    limit: MaxPods = None,
) -> Response:
    """Places pods like this one, one after the other, until one does not fit. No pod is evicted for them."""
    namespace, _, name = pod.partition("/")
    answer = await (await caller_of(request)).capacity(namespace, name, limit)
    if answer is None:
        raise not_there("pods", "there is no such pod")
    return _answered(answer)


@router.post("/capacity", summary="How many of such a pod would fit?", **documents.CAPACITY_OF)
async def capacity_of(request: Request, limit: MaxPods = None) -> Response:
    """Does as GET for a pod that does not exist, or for the pods of a workload (Deployment, Job, ...)."""
    caller = await caller_of(request)
    return await _answer_to(request, dict[str, object], partial(caller.capacity_of, limit=limit))


@router.get("/decisions", summary="What was decided recently?", **documents.DECISIONS)
async def decisions(request: Request, pod: PodKey = None, limit: Limit = 100, before: Before = None) -> Response:
    """Lists attempts to schedule pods, and calls of kube-scheduler to the extender."""
    return _answered(await (await caller_of(request)).decisions(limit, pod, before))


@router.get("/decisions/{id}", summary="What was decided then?", **documents.DECISION)
async def decision(
    request: Request,
    number: Annotated[int, Path(alias="id", ge=1, le=2**53, description="as /v1/decisions and /v1/explain give it")],
    picture: Annotated[bool, Query(description="with the plugin that refused each node")] = False,
) -> Response:
    """Shows one attempt. With many pods at once, only the outcome of some attempts is kept."""
    answer = await (await caller_of(request)).decision(number, picture=picture)
    if answer is None:
        raise not_there("decisions", "no such decision is kept (any more): the oldest go first")
    return _answered(answer)


@router.get("/history", summary="What was decided in this time, for these pods?", **documents.HISTORY)
async def history(
    request: Request,
    outcome: Annotated[OutcomeWanted, Query(description="how the attempts ended; nothing for any")] = "",
    name: Annotated[str, Query(max_length=317, description="a part of namespace/name")] = "",
    namespace: Annotated[str, Query(max_length=63)] = "",
    node: Annotated[str, Query(max_length=253, description="a part of the node's name")] = "",
    plugin: Annotated[str, Query(max_length=253, description="one that refused a node")] = "",
    within: Annotated[
        str, Query(alias="range", max_length=8, description="the last 15m, 1h, 6h, 24h, 7d, or all")
    ] = "",
    since: Moment = "",
    until: Moment = "",
    before: Before = None,
) -> Response:
    """Lists attempts, those that ended alike together, and preemptions, by what is known of them, as the page's history
    does.
    """
    asked = HistoryFilter(
        outcome=outcome,
        name=name,
        namespace=namespace,
        node=node,
        plugin=plugin,
        range=within,
        since=since,
        until=until,
        before=before,
    )
    caller = await caller_of(request)
    try:
        query = asked.query(caller.now)
    except HistoryFilterError as exc:
        raise Refusal(422, str(exc)) from exc
    return _answered(await caller.past(query))


@router.get("/preemptions", summary="Which pods were preempted, and for which?", **documents.PREEMPTIONS)
async def preemptions(request: Request, pod: PodKey = None, limit: Limit = 100) -> Response:
    """Lists preemptions with the nodes that were not chosen, and why. `pod` is a victim or a preemptor."""
    return _answered(await (await caller_of(request)).preemptions(limit, pod))


@router.get("/agreement", summary="Would this configuration decide the same?", **documents.AGREEMENT)
async def agreement(request: Request, limit: Limit = 100) -> Response:
    """Says how often the shadow decides as the scheduler of the cluster does, and about which pods it does not, and
    why.
    """
    answer = await (await caller_of(request)).agreement(limit)
    if answer is None:
        raise not_there("agreements", "nothing is compared: start the service with --shadow")
    return _answered(answer)


@router.get("/queue", summary="Which pods wait, and for what?", **documents.QUEUE)
async def queue(request: Request) -> Response:
    """Lists the pods that wait, in the order in which they will be tried where there is one."""
    return _answered(await (await caller_of(request)).queue())


@router.get("/pending", summary="Why do pods wait?", **documents.PENDING)
async def pending(request: Request) -> Response:
    """Groups the pods that wait by reason and workload, and says which resources they lack."""
    return _answered(await (await caller_of(request)).pending())


@router.get("/find", summary="What has this name?", **documents.FIND)
async def find(
    request: Request,
    query: Annotated[
        str, Query(alias="q", max_length=253, description="words that the name contains, with its namespace before it")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=100, description="how many at most")] = 20,
) -> Response:
    """Finds pods, nodes, workloads, namespaces and pod groups by parts of their names."""
    return _answered(await (await caller_of(request)).find(query, limit))


@router.get("/pods", summary="Which pods are there?", **documents.PODS)
async def pods(
    request: Request,
    namespace: Annotated[str, Query(max_length=63, description="without one, the namespaces are listed")] = "",
    workload: Annotated[
        str, Query(max_length=320, description="only those of this Kind/name, such as Deployment/web")
    ] = "",
    group: Annotated[str, Query(max_length=253, description="only those of this pod group")] = "",
    selector: Annotated[str, Query(max_length=2048, description="only those with these labels, such as app=web")] = "",
    limit: Limit = 500,
) -> Response:
    """Lists the pods of a namespace, a workload or a pod group, pending ones first."""
    try:
        selected = read_selector(selector)
    except QuestionError as exc:
        raise cannot_be_done(exc) from exc
    return _answered(await (await caller_of(request)).pods(namespace, workload, group, limit, selected))


@router.get("/cluster", summary="What does the cluster look like?", **documents.CLUSTER)
async def cluster(request: Request) -> Response:
    """Lists nodes with what they have and what is requested of it, and with their pods while the cluster is small."""
    return json_response(msgspec.json.encode(await (await caller_of(request)).map()))


@router.get("/cluster/{node}", summary="What is on this node?", **documents.NODE)
async def node(request: Request, node: Name) -> Response:
    """Shows one node with its pods, in a cluster of any size."""
    found = await (await caller_of(request)).node(node)
    if found is None:
        raise not_there("nodes", "there is no such node")
    return json_response(msgspec.json.encode(found))


@router.get("/stream", include_in_schema=False)
async def stream(request: Request) -> Response:
    """Sends the event `version` whenever the cluster, the queue or the recent decisions change."""
    caller = await caller_of(request)
    streams: Streams = request.app.state.streams
    if streams.is_full:
        raise Refusal(503, "too many pages follow the cluster at one time", RETRY_SOON)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamedResponse(streams.follow(caller.questions.version), headers, "text/event-stream")


@router.post("/evaluate", **EVALUATE)
async def evaluate(request: Request) -> Response:
    """Filters every node, scores those that fit, and dry-runs preemption on the others. Nothing is written."""
    service = service_of(request)
    if service is None:
        raise Refusal(503, "the service is starting", RETRY_SOON)
    body = await request.body()

    def evaluated() -> bytes:
        return orjson.dumps(asyncio.run(service.backend.evaluate(_read_scenario(body))))

    try:
        with unreadable_refused():
            return json_response(await service.worker.answer(request, evaluated))
    except (DecodeError, ConfigErrors) as exc:
        raise Refusal(422, str(exc)) from exc


def _answered(answer: Answer) -> Response:
    return json_response(msgspec.json.encode(answer))


async def _answer_to(request: Request, kind: type[T], ask: Callable[[Callable[[], T]], Awaitable[Answer]]) -> Response:
    """Returns the answer to a question in the body.

    Arguments:
        kind: the type of the question.
        ask: called with what reads the question.
    """
    body = await request.body()
    try:
        return _answered(await ask(partial(_read, kind, body)))
    except (DecodeError, ConfigErrors, QuestionError) as exc:
        raise cannot_be_done(exc) from exc


def _read(kind: type[T], body: bytes) -> T:
    check_number_of_values(body)
    question = read(kind, body)
    check_json(body)
    return question


def _read_scenario(body: bytes) -> dict[str, Any]:
    scenario = _read(dict[str, Any], body)
    config = scenario.get("config")
    if isinstance(config, dict) and not (config.get("apiVersion") and config.get("kind")):
        raise DecodeError("config: apiVersion and kind are required")
    return scenario
