"""/v1: the questions of the catalogue; /v1/stream, and /v1/evaluate.

Every route of `router` knows its caller. `guarded` has what `EndpointGuard` lets nobody reach without a rule.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import msgspec
import orjson
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.routing import APIRoute

from api.callers.http_refusals import RETRY_SOON, Refusal, not_there, unreadable_refused
from api.callers.streaming import StreamedResponse
from api.documents.documentation import EVALUATE, MEANINGS, STATUS, body_of, reference
from api.routes.caller import Caller, KnownCaller, caller_of
from api.service_state import json_response, service_of
from extender.answers.catalogue import QUESTIONS, FindQuestion, Question
from extender.answers.phrases import guess
from extender.answers.what_if import capacity, what_if  # noqa: F401 - loaded once, and not in each child process
from extender.rules import trial_registry  # noqa: F401 - as above
from extender.values import limits
from extender.values.config.configuration import ConfigErrors
from extender.values.golang.json_bytes import check_json, check_number_of_values, read
from extender.values.objects.decoding import DecodeError
from reprieve.lab.plan import plan  # noqa: F401 - as above
from reprieve.lab.plan.plan_question import PlanQuestion  # noqa: F401 - enters the catalogue

F = TypeVar("F", bound=Callable[..., Awaitable[Response]])

router: Final = APIRouter(prefix="/v1", tags=["questions"], dependencies=[Depends(caller_of)])
guarded: Final = APIRouter(prefix="/v1", tags=["questions"])

_MEANINGS: Final = MEANINGS | {
    400: "The path, the query or the body is invalid.",
    401: "The caller is not authenticated: send a token of the cluster as Authorization: Bearer.",
    403: "The caller may not list pods in this namespace.",
    404: "There is no such pod, or decision, or shadow.",
    413: "The body is too large, or the answer takes too much memory.",
    422: "The question can be read, but a value in it is wrong.",
}


def _add(kind: type[Question[Any]]) -> None:
    row = kind.row
    method, _, path = row.request.partition(" ")
    summary, description = kind.words()

    async def answer(request: Request, caller: KnownCaller, **parameters: Any) -> Response:
        if row.body:
            body = await request.body()
            result = await caller.simulate(lambda: kind(**parameters, **{row.body: _read(kind.body_type(), body)}))
        else:
            result = await caller.ask(kind(**parameters))
        if result is None:
            resource, words = row.lacking
            raise not_there(resource, f"{words}{await _likely_name(caller, resource.removesuffix('s'), parameters)}")
        return json_response(msgspec.json.encode(result))

    router.add_api_route(
        path,
        taking(kind, answer),
        methods=[method],
        name=row.method,
        summary=summary,
        description=description,
        responses=_responses(kind),
        openapi_extra=body_of(_schema(kind.body_type()), row.examples) if row.body else None,
    )


async def _likely_name(caller: Caller, kind: str, parameters: Mapping[str, Any]) -> str:
    """Returns the end of a sentence with the pod or node that a question is likely to mean; empty if none is near."""
    if kind not in parameters:
        return ""
    namespace, _, name = f"{parameters.get('namespace', '')}/{parameters[kind]}".strip("/").rpartition("/")
    return guess(await caller.ask(FindQuestion(query=name)), kind, namespace, name)


def taking(kind: type[Question[Any]], answer: F) -> F:
    """Returns the function of a route with the fields of a question instead of its last parameter, `**parameters`."""
    *parameters, _ = inspect.signature(answer).parameters.values()
    vars(answer)["__signature__"] = inspect.Signature([*parameters, *_fields_of(kind)])
    return answer


def _fields_of(kind: type[Question[Any]]) -> Iterator[inspect.Parameter]:
    """Yields the fields of a question that are no body, as FastAPI takes them."""
    for field in msgspec.structs.fields(kind):
        if field.name == kind.row.body:
            continue
        annotation, meta = field.type, msgspec.Meta()
        if get_origin(annotation) is Annotated:
            annotation, meta = get_args(annotation)
        names = ("ge", "le", "pattern", "min_length", "max_length", "description")
        bounds = {name: value for name in names if (value := getattr(meta, name)) is not None}
        place = Path if f"{{{field.encode_name}}}" in kind.row.request else Query
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.required else field.default,
            annotation=Annotated[annotation, place(alias=field.encode_name, **bounds)],
        )


def _responses(kind: type[Question[Any]]) -> dict[int | str, dict[str, Any]]:
    row = kind.row
    content = {"application/json": {"schema": _schema(kind.answer_type())}}
    answers: dict[int | str, dict[str, Any]] = {200: {"description": row.answer, "content": content}}
    codes = {400, 401, 500, 503}
    codes |= {408, 413, 415, 422} if row.body else set()
    codes |= {code for code, may_be in ((403, row.about), (404, any(row.lacking)), (422, row.may_be_wrong)) if may_be}
    for code in () if row.is_brief else sorted(codes):
        answers[code] = {"description": _MEANINGS[code], "content": STATUS}
    # What the limits refuse before the question is read: a method, a head, a body where there should be none.
    answers["default"] = {"description": "Refused.", "content": STATUS}
    return answers


def _schema(kind: Any) -> dict[str, str]:
    """Returns a reference to the schema of a type, or of one that may be None; a body of any form is a pod."""
    types = [struct_type for struct_type in get_args(kind) or (kind,) if isinstance(struct_type, msgspec.StructMeta)]
    return reference(types[0].__name__ if types else "Pod")


def _read(kind: Any, body: bytes) -> Any:
    check_number_of_values(body)
    question = read(kind, body)
    check_json(body)
    return question


for _kind in QUESTIONS:
    _add(_kind)


@router.get("/stream", include_in_schema=False)
async def stream(caller: KnownCaller) -> Response:
    """Sends the event `version` whenever the cluster, the queue or the recent decisions change."""
    streams = caller.service.streams
    if streams.is_full:
        raise Refusal(503, "too many pages follow the cluster at one time", RETRY_SOON)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamedResponse(streams.follow(caller.questions.version), headers, "text/event-stream")


@guarded.post("/evaluate", **EVALUATE)
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


def _read_scenario(body: bytes) -> dict[str, Any]:
    scenario: dict[str, Any] = _read(dict[str, Any], body)
    config = scenario.get("config")
    if isinstance(config, dict) and not (config.get("apiVersion") and config.get("kind")):
        raise DecodeError("config: apiVersion and kind are required")
    return scenario


async def only_known_parameters(request: Request) -> None:
    """A dependency that refuses unknown parameters; asynchronous, since others run in a thread. Raises Refusal: 400."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    parameter_names = [parameter.alias for parameter in route.dependant.query_params]
    for name in request.query_params:
        if name not in parameter_names:
            takes, strange = ", ".join(parameter_names) or "none", name[: limits.REFUSED_NAME_CHARACTERS]
            raise Refusal(400, f"query: there is no parameter {strange!r}; this path takes {takes}")


def what_is_wrong(request: Request, errors: Sequence[Any]) -> str:
    """Returns a sentence that names each parameter that cannot be read, by FastAPI's errors, and what is allowed."""
    described = {(parameter["in"], parameter["name"]): parameter for parameter in _parameters(request)}
    return "; ".join(dict.fromkeys(_error_words(error, described) for error in errors))


def _parameters(request: Request) -> Iterator[Mapping[str, Any]]:
    route = request.scope.get("route")
    if isinstance(route, APIRoute):
        operations = request.app.openapi()["paths"].get(route.path_format, {})
        yield from operations.get(request.method.lower(), {}).get("parameters", ())


def _error_words(error: Mapping[str, Any], described: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    where, name = (*map(str, error["loc"]), "")[:2]
    parameter = described.get((where, name), {})
    allowed = _allowed(parameter.get("schema", {}), parameter.get("description", ""))
    if error["type"] == "missing":
        return f"{where}: {name} is required{f': {allowed}' if allowed else ''}"
    return f"{where}: {name} has to be {allowed}" if allowed else f"{where}: {name} is not valid"


def _allowed(schema: Mapping[str, Any], description: str) -> str:
    """Returns what a value may be, in words; empty if that is not known."""
    schema = next((alternative for alternative in schema.get("anyOf", ()) if alternative.get("type") != "null"), schema)
    if schema.get("type") == "integer":
        bounds = f" from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
        return f"a whole number{bounds}"
    if schema.get("type") == "boolean":
        return "true or false"
    if "pattern" in schema:
        return description
    if "maxLength" in schema:
        return f"{schema.get('minLength', 0)} to {schema['maxLength']} characters"
    return ""
