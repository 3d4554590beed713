"""/v1: what people ask. Why is a pod pending, who would be evicted, what if, who preempted it, how many fit."""

from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from api import question_documents as documents
from api.caller import caller_of
from api.face import decoded, json_response
from api.refusals import Refusal, cannot_be_done, not_there
from extender.answers.questions import QuestionError
from extender.answers.types import Answer, WhatIfRequest
from extender.config.configuration import ConfigErrors
from extender.golang.json_bytes import read
from extender.golang.json_limits import check_json, check_number_of_values
from extender.objects.decoding import DecodeError

MAX_QUESTION: Final = 16 * 2**20
"""Bytes of a what-if."""

T = TypeVar("T")

router: Final = APIRouter(prefix="/v1", tags=["questions"])

Name = Annotated[str, Path(min_length=1, max_length=253)]
PodKey = Annotated[str | None, Query(pattern=r"^[^/\s]{1,63}/[^/\s]{1,253}$", description="namespace/name of a pod")]
Limit = Annotated[int, Query(ge=1, le=1000, description="how many at most, newest first")]
MaxPods = Annotated[int, Query(ge=1, le=100_000, description="count no further")]
Before = Annotated[int | None, Query(ge=1, le=2**53, description="only those with a smaller id: the next page")]


@router.get("/explain/{namespace}/{pod}", summary="Why is this pod pending?", **documents.EXPLAIN)
async def explain(
    request: Request,
    namespace: Name,
    pod: Name,
    picture: Annotated[bool, Query(description="with every node's verdicts, plugin by plugin")] = False,
) -> Response:
    """What keeps it from every node now, what it waits for, what was tried, and what would help."""
    answer = await (await caller_of(request)).explain(namespace, pod, picture=picture)
    if answer is None:
        raise not_there("pods", "there is no such pod, and no recent decision about one")
    return _told(answer)


@router.post("/whatif", summary="What would happen if?", **documents.WHAT_IF)
async def what_if(request: Request) -> Response:
    """Pods to create, nodes to add, remove or drain, another configuration: tried on a copy of the cluster. Nothing is written."""
    caller = await caller_of(request)
    question = await decoded(_read_what_if, await request.body())
    try:
        return _told(await caller.what_if(question))
    except (DecodeError, ConfigErrors, QuestionError) as exc:
        raise cannot_be_done(exc) from exc


@router.get("/capacity", summary="How many more of this pod fit?", **documents.CAPACITY)
async def capacity(
    request: Request,
    pod: Annotated[str, Query(pattern=r"^[^/\s]{1,63}/[^/\s]{1,253}$", description="namespace/name of a pod")],
    limit: MaxPods = 10_000,
) -> Response:
    """Pods like this one, one after the other, until one does not fit. Nobody is evicted for them."""
    namespace, _, name = pod.partition("/")
    answer = await (await caller_of(request)).capacity(namespace, name, limit)
    if answer is None:
        raise not_there("pods", "there is no such pod")
    return _told(answer)


@router.post("/capacity", summary="How many of such a pod would fit?", **documents.CAPACITY_OF)
async def capacity_of(request: Request, limit: MaxPods = 10_000) -> Response:
    """As GET, for a pod that does not exist, or for those that a workload (Deployment, Job, ...) makes."""
    caller = await caller_of(request)
    pod = await decoded(_read_pod, await request.body())
    try:
        return _told(await caller.capacity_of(pod, limit))
    except QuestionError as exc:
        raise cannot_be_done(exc) from exc


@router.get("/decisions", summary="What was decided recently?", **documents.DECISIONS)
async def decisions(request: Request, pod: PodKey = None, limit: Limit = 100, before: Before = None) -> Response:
    """Attempts to schedule pods, and what kube-scheduler asked of the extender."""
    return _told(await (await caller_of(request)).decisions(limit, pod, before))


@router.get("/decisions/{id}", summary="What was decided then?", **documents.DECISION)
async def decision(
    request: Request,
    number: Annotated[int, Path(alias="id", ge=1, le=2**53, description="as /v1/decisions and /v1/explain give it")],
    picture: Annotated[bool, Query(description="with the plugin that refused each node")] = False,
) -> Response:
    """One attempt. In a crowd of pods not every attempt keeps more than its end."""
    answer = await (await caller_of(request)).decision(number, picture=picture)
    if answer is None:
        raise not_there("decisions", "no such decision is remembered: the oldest go first")
    return _told(answer)


@router.get("/preemptions", summary="Who was preempted, for whom?", **documents.PREEMPTIONS)
async def preemptions(request: Request, pod: PodKey = None, limit: Limit = 100) -> Response:
    """With the nodes that were not chosen, and why. `pod` is a victim or a preemptor."""
    return _told(await (await caller_of(request)).preemptions(limit, pod))


@router.get("/queue", summary="Who waits, where, and for what?", **documents.QUEUE)
async def queue(request: Request) -> Response:
    """The pods that wait, in the order in which they will be tried where there is one."""
    return _told(await (await caller_of(request)).queue())


def _told(answer: Answer) -> Response:
    return json_response(msgspec.json.encode(answer))


def _read_what_if(body: bytes) -> WhatIfRequest:
    return _read(WhatIfRequest, body)


def _read_pod(body: bytes) -> dict[str, object]:
    return _read(dict[str, object], body)


def _read(kind: type[T], body: bytes) -> T:
    if len(body) > MAX_QUESTION:
        raise Refusal(413, f"a question may have {MAX_QUESTION} bytes")
    check_number_of_values(body)
    question = read(kind, body)
    check_json(body)
    return question
