"""POST /v1/evaluate: all that the scheduler would find out about one pod in a cluster that is described in the request."""

from typing import Any, Final

import orjson
from fastapi import APIRouter, Request, Response

from api.documentation import EVALUATE
from api.face import decoded, face_of, json_response
from api.hang_up import until_hang_up
from api.refusals import RETRY_SOON, Refusal
from extender.config.configuration import ConfigErrors
from extender.golang.json_bytes import read
from extender.golang.json_limits import check_json, check_number_of_values
from extender.objects.decoding import DecodeError

MAX_SCENARIO: Final = 16 * 2**20
"""Bytes: a cluster of some thousand nodes and their pods."""

router: Final = APIRouter(prefix="/v1", tags=["questions"])


@router.post("/evaluate", **EVALUATE)
async def evaluate(request: Request) -> Response:
    """Filter every node, score those that fit, and dry-run preemption on the others. Nothing is written anywhere."""
    face = face_of(request)
    if face is None:
        raise Refusal(503, "the service is starting", RETRY_SOON)
    if face.admitted.locked():
        raise Refusal(503, "too many evaluations at one time", RETRY_SOON)
    try:
        async with face.admitted:
            scenario = await decoded(_read_scenario, await request.body())
            async with until_hang_up(request), face.evaluating:
                answer = await face.backend.evaluate(scenario)
    except (DecodeError, ConfigErrors) as exc:
        raise Refusal(422, str(exc)) from exc
    return json_response(orjson.dumps(answer))


def _read_scenario(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_SCENARIO:
        raise Refusal(413, f"a scenario may have {MAX_SCENARIO} bytes")
    check_number_of_values(body)
    scenario = read(dict[str, Any], body)
    check_json(body)
    config = scenario.get("config")
    if isinstance(config, dict) and not (config.get("apiVersion") and config.get("kind")):
        raise Refusal(422, "config: apiVersion and kind are required")
    return scenario
