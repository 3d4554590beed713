"""GET /v1/cluster: the nodes and what is on them. GET /v1/stream: news for those who look at it."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response, StreamingResponse

from api.caller import caller_of
from api.face import json_response
from api.refusals import RETRY_SOON, Refusal, not_there
from api.ui.streams import Streams

router: Final = APIRouter(prefix="/v1", tags=["questions"])

Name = Annotated[str, Path(min_length=1, max_length=253)]


def _answers(schema: str, what: str) -> dict[int | str, dict[str, Any]]:
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {200: {"description": what, "content": content}, "default": {"description": "Refused.", "content": refusal}}


@router.get("/cluster", summary="What does the cluster look like?", responses=_answers("ClusterMap", "The nodes, by zone and name."))
async def cluster(request: Request) -> Response:
    """Nodes with what they have and what was promised of it; with their pods while the cluster is small."""
    return json_response(msgspec.json.encode(await (await caller_of(request)).map()))


@router.get("/cluster/{node}", summary="What is on this node?", responses=_answers("NodeOnMap", "The node with its pods."))
async def node(request: Request, node: Name) -> Response:
    """One node with its pods, in a cluster of any size."""
    found = await (await caller_of(request)).node(node)
    if found is None:
        raise not_there("nodes", "there is no such node")
    return json_response(msgspec.json.encode(found))


@router.get("/stream", include_in_schema=False)
async def stream(request: Request) -> Response:
    """Server-sent events: `version`, whenever the cluster, the queue or what was decided is not what it was."""
    caller = await caller_of(request)
    streams: Streams = request.app.state.streams
    if streams.is_full:
        raise Refusal(503, "too many pages follow the cluster at one time", RETRY_SOON)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(streams.follow(caller.questions.version), media_type="text/event-stream", headers=headers)
