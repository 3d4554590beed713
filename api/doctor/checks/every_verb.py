"""Checks of every verb: it exists, answers in time and in JSON, does not redirect, and survives a broken request."""

from collections.abc import AsyncIterator
from functools import cache
from typing import Final

import jsonschema_rs
import orjson

from api.doctor import Finding, Grade, bad, judged, ok, skipped, warning
from api.doctor.examined_service import ExaminedService, Reply
from api.documents.extender_schema import extender_schema
from api.settings.settings import Settings
from extender.values import limits

SERVED: Final = "is served"
VALID: Final = "is valid by the schema of the protocol"


def is_valid(verb: str, result: str, reply: Reply) -> Finding:
    """Returns whether an answer's body is valid by the schema's definition `result`."""
    try:
        answer = orjson.loads(reply.body)
    except orjson.JSONDecodeError as exc:
        return warning(verb, VALID, f"it is not JSON: {exc}", f"see {result} at /schemas/extender/v1")
    error = next(_validator(result).iter_errors(answer), None)
    if error is None:
        return ok(verb, VALID)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path).lstrip(".")
    said = f"{where}: {error.message}" if where else error.message
    return warning(
        verb,
        VALID,
        said if len(said) <= limits.SCHEMA_ERROR_CHARACTERS else f"{said[: limits.SCHEMA_ERROR_CHARACTERS]}...",
        f"see {result} at /schemas/extender/v1",
    )


@cache
def _validator(result: str) -> jsonschema_rs.Draft202012Validator:
    """Returns what finds errors in answers of a type, of whose fields none may be unknown."""
    from api.app import create_app  # noqa: PLC0415 - the commands begin sooner without the service

    definitions = extender_schema(create_app(Settings()).openapi())["$defs"]
    for name in (result, "HostPriority"):
        if definitions[name].get("type") == "object":
            definitions[name]["additionalProperties"] = False
    return jsonschema_rs.Draft202012Validator({"$defs": definitions, "$ref": f"#/$defs/{result}"})


_BROKEN: Final = b'{"Pod": {"metadata": {"name":'

IN_TIME: Final = "answers within httpTimeout"
KEPT_OPEN: Final = "keeps the connection open"

IS_IT_RUNNING: Final = "is it running, and is the port right?"
"""Advice where a connection was refused."""


def reached(verb: str, service: ExaminedService, reply: Reply, check: str) -> Finding | None:
    """Returns what is wrong with a reply before its content is looked at; None if nothing is."""
    if reply.failure:
        advice = (
            "look into the extender's log" if reply.seconds < service.seconds else "answer faster, or raise httpTimeout"
        )
        if reply.failure.endswith("connection refused"):
            advice = IS_IT_RUNNING
        return bad(verb, check, reply.failure, advice)
    if reply.status in (401, 403):
        advice = "set tlsConfig.certFile and keyFile, which is all that kube-scheduler can show, or let it call without"
        return bad(verb, check, f"status {reply.status}: it does not let this caller in", advice)
    if reply.status in (404, 405) and service.may_lack_verbs:
        switch = " (Reprieve serves it with --serve-bind)" if verb == service.extender.bind_verb else ""
        return skipped(verb, SERVED, f"no, which is fine unless your configuration names it{switch}")
    if reply.status in (404, 405):
        return bad(
            verb,
            check,
            f"status {reply.status}: nothing answers at {service.url(verb)}",
            "register the route, or leave the verb empty",
        )
    if 300 <= reply.status < 400:
        return bad(
            verb,
            check,
            f"status {reply.status}, a redirect: Go may ask again with GET",
            "answer at the path that is configured",
        )
    if reply.status == 413:
        return bad(
            verb, check, "status 413: the body is too large for it", "accept larger bodies, or be nodeCacheCapable"
        )
    if not reply.is_ok:
        return bad(
            verb,
            check,
            f"{reply.words}; kube-scheduler keeps only the number",
            "answer 200 and say what is wrong in Error",
        )
    return None


async def checks(service: ExaminedService, verb: str, body: bytes) -> AsyncIterator[Finding]:
    """Yields findings about a verb, asked with a question in `body` that it understands."""
    reply = await service.ask(verb, body)
    wrong = reached(verb, service, reply, "is reached")
    if wrong is not None:
        yield wrong
        return
    yield ok(verb, "is reached", f"{reply.seconds * 1000:.0f} ms")
    yield _in_time(service, verb, reply)
    yield _kept_open(verb, reply)
    check = "survives a body that is not JSON"
    broken = await service.ask(verb, _BROKEN)
    if broken.failure:
        yield bad(verb, check, broken.failure, "answer with status 400, or 200 and Error")
        return
    fault = f"status {broken.status}: it looks like a fault of the extender" if broken.status >= 500 else ""
    yield judged(verb, check, fault, "answer with status 400", Grade.WARNING)
    check = "answers after that as before"
    again = await service.ask(verb, body)
    yield judged(verb, check, "" if again.is_ok else again.words, "no request may harm the next one")


def _in_time(service: ExaminedService, verb: str, reply: Reply) -> Finding:
    took = f"{reply.seconds:.2f} s of {service.seconds:g} s"
    if reply.seconds > service.seconds:
        return bad(verb, IN_TIME, took, "answer faster, or raise httpTimeout")
    if reply.seconds > service.seconds / 2:
        return warning(verb, IN_TIME, took, "a busy minute will be too slow")
    return ok(verb, IN_TIME)


def _kept_open(verb: str, reply: Reply) -> Finding:
    closes = reply.headers.get("connection", "").lower() == "close"
    wrong = "the answer says Connection: close" if closes else ""
    return judged(verb, KEPT_OPEN, wrong, "every call pays for a new connection (and TLS handshake)", Grade.WARNING)
