"""Checks of every verb: it exists, answers in time and in JSON, does not redirect, and survives a broken request."""

import copy
from collections.abc import AsyncIterator
from functools import cache
from typing import Final, final

import jsonschema_rs
import orjson

from reprieve.lab import limits
from reprieve.lab.doctor import Finding, Grade, bad, judged, ok, skipped, warning
from reprieve.lab.doctor.examined_service import ExaminedService, ProtocolSchema, Reply

SERVED: Final = "is served"
VALID: Final = "is valid by the schema of the protocol"
IN_TIME: Final = "answers within httpTimeout"
KEPT_OPEN: Final = "keeps the connection open"

IS_IT_RUNNING: Final = "is it running, and is the port right?"
"""Advice where a connection was refused."""

_BROKEN: Final = b'{"Pod": {"metadata": {"name":'


@final
class NoAnswerError(Exception):
    """No answer has content to judge; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding: Final = finding


async def answered(service: ExaminedService, verb: str, body: bytes, check: str) -> Reply:
    """Returns the answer to a question, which has status 200. Raises NoAnswerError, where `check` is what fails."""
    reply = await service.ask(verb, body)
    wrong = _wrong(service, verb, reply, check)
    if wrong is not None:
        raise NoAnswerError(wrong)
    return reply


def _wrong(service: ExaminedService, verb: str, reply: Reply, check: str) -> Finding | None:
    """Returns a finding about status and connection of a reply; None if they are right."""
    if reply.failure:
        advice = "see the extender's log" if reply.seconds < service.seconds else "answer faster, or raise httpTimeout"
        if reply.failure.endswith("connection refused"):
            advice = IS_IT_RUNNING
        return bad(check, reply.failure, advice)
    if reply.status in (401, 403):
        advice = "set tlsConfig.certFile and keyFile, which is all that kube-scheduler can show, or let it call without"
        return bad(check, f"status {reply.status}: it refuses this caller", advice)
    if reply.status in (404, 405) and service.may_lack_verbs:
        switch = " (Reprieve serves it with --serve-bind)" if verb == service.extender.bind_verb else ""
        return skipped(SERVED, f"no, which is fine unless your configuration names the verb{switch}")
    if reply.status in (404, 405):
        nothing = f"status {reply.status}: nothing answers at {service.url(verb)}"
        return bad(check, nothing, "register the route, or leave the verb empty")
    if 300 <= reply.status < 400:
        elsewhere = f"status {reply.status}, a redirect: Go may repeat the call with GET"
        return bad(check, elsewhere, "answer at the path that is configured")
    if reply.status == 413:
        advice = "accept larger bodies, or be nodeCacheCapable"
        return bad(check, "status 413: the body is too large for it", advice)
    if not reply.is_ok:
        lost = f"{reply.words}; kube-scheduler shows only the number"
        return bad(check, lost, "answer 200 and say what is wrong in Error")
    return None


def is_valid(service: ExaminedService, result: str, reply: Reply) -> Finding:
    """Returns whether an answer's body is valid by the schema's definition `result`."""
    advice = f"see {result} at /schemas/extender/v1"
    try:
        answer = orjson.loads(reply.body)
    except orjson.JSONDecodeError as exc:
        return warning(VALID, f"it is not JSON: {exc}", advice)
    error = next(_validator(service.schema, result).iter_errors(answer), None)
    if error is None:
        return ok(VALID)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path).lstrip(".")
    problem = f"{where}: {error.message}" if where else error.message
    if len(problem) > limits.SCHEMA_ERROR_CHARACTERS:
        problem = f"{problem[: limits.SCHEMA_ERROR_CHARACTERS]}..."
    return warning(VALID, problem, advice)


@cache
def _validator(schema: ProtocolSchema, result: str) -> jsonschema_rs.Draft202012Validator:
    """Returns a validator of answers of a type, which refuses unknown fields."""
    definitions = copy.deepcopy(schema()["$defs"])
    for name in (result, "HostPriority"):
        if definitions[name].get("type") == "object":
            definitions[name]["additionalProperties"] = False
    return jsonschema_rs.Draft202012Validator({"$defs": definitions, "$ref": f"#/$defs/{result}"})


async def checks(service: ExaminedService, verb: str, body: bytes) -> AsyncIterator[Finding]:
    """Yields findings about a verb, asked with a question in `body` that it understands. Raises NoAnswerError."""
    reply = await answered(service, verb, body, "is reached")
    yield ok("is reached", f"{reply.seconds * 1000:.0f} ms")
    yield _in_time(service, reply)
    wrong = "the answer says Connection: close" if reply.closes else ""
    yield judged(KEPT_OPEN, wrong, "every call pays for a new connection (and TLS handshake)", Grade.WARNING)
    check = "survives a body that is not JSON"
    broken = await service.ask(verb, _BROKEN)
    if broken.failure:
        yield bad(check, broken.failure, "answer with status 400, or 200 and Error")
        return
    fault = f"status {broken.status}: it looks like a fault of the extender" if broken.status >= 500 else ""
    yield judged(check, fault, "answer with status 400", Grade.WARNING)
    repeated = await service.ask(verb, body)
    wrong = "" if repeated.is_ok else repeated.words
    yield judged("answers after that as before", wrong, "no request may harm the next one")


def _in_time(service: ExaminedService, reply: Reply) -> Finding:
    took = f"{reply.seconds:.2f} s of {service.seconds:g} s"
    if reply.seconds > service.seconds:
        return bad(IN_TIME, took, "answer faster, or raise httpTimeout")
    if reply.seconds > service.seconds / 2:
        return warning(IN_TIME, took, "it will be too slow under load")
    return ok(IN_TIME)
