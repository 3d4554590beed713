"""Checks of filter."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import orjson

from api.doctor import Finding, Grade, bad, judged, ok, samples
from api.doctor.checks.every_verb import is_valid, reached
from api.doctor.examined_service import NAMES, ExaminedService, Reply
from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import Filtered, read_filter_result

SUBSET: Final = "passes only nodes that were asked for"
FORM: Final = "answers in the form that was asked"
READABLE: Final = "can be read by kube-scheduler"


async def checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about answers to full nodes or to names, as the configuration says."""
    verb = service.extender.filter_verb
    names, in_full = service.names, service.in_full
    body = samples.asked(names, in_full=in_full)
    first = await service.ask(verb, body)
    wrong = reached(verb, service, first, READABLE)
    if wrong is not None:
        yield wrong
        return
    yield is_valid(verb, "ExtenderFilterResult", first)
    answer = _read(first)
    if isinstance(answer, str):
        yield bad(
            verb,
            READABLE,
            answer,
            "see ExtenderFilterResult: Nodes, NodeNames, FailedNodes, FailedAndUnresolvableNodes, Error",
        )
    else:
        yield ok(verb, READABLE)
        for finding in _of_answer(verb, answer, names, in_full=in_full):
            yield finding
        if in_full:
            yield _numbers_survive(verb, first)
        second = await service.ask(verb, body)
        yield _same(verb, first, second)
    yield await _nulls(service, verb)
    yield await _other_form(service, verb)
    if in_full:
        yield await _many_nodes(service, verb)


def _read(reply: Reply) -> Filtered | str:
    try:
        return read_filter_result(reply.body)
    except ExtenderError as exc:
        return str(exc)


def _of_answer(verb: str, answer: Filtered, names: Sequence[str], *, in_full: bool) -> Iterator[Finding]:
    passed = [node.name for node in answer.nodes or ()] if in_full else [*(answer.node_names or ())]
    other = answer.node_names if in_full else answer.nodes
    wanted, given = ("Nodes", "NodeNames") if in_full else ("NodeNames", "Nodes")
    is_other = (answer.nodes if in_full else answer.node_names) is None and other
    said = f"{given} is filled and {wanted} is null: kube-scheduler takes that for no node at all" if is_other else ""
    yield judged(verb, FORM, said, f"fill {wanted}, or set nodeCacheCapable: {str(in_full).lower()}")
    strangers = sorted({*passed} - {*names})
    said = f"{strangers[0]!r} was not asked for: kube-scheduler gives up the whole call" if strangers else ""
    yield judged(verb, SUBSET, said, "pass only what was sent")
    both = sorted({*passed} & ({*answer.failed} | {*answer.failed_and_unresolvable}))
    said = f"{both[0]!r} is in both" if both else ""
    yield judged(verb, "does not pass and fail the same node", said, "a node is in one place", Grade.WARNING)


def _numbers_survive(verb: str, reply: Reply) -> Finding:
    document: Any = orjson.loads(reply.body)
    nodes = (document.get("Nodes") or document.get("nodes") or {}).get("items") or []
    sent = samples.BEYOND_DOUBLES
    got = [(node.get("metadata") or {}).get("generation", sent) for node in nodes]
    wrong = next((f"a generation of {sent} came back as {each}" for each in got if each != sent), "")
    advice = "read whole numbers as 64-bit integers, not as floats"
    return judged(verb, "gives large numbers back as they were", wrong, advice)


def _same(verb: str, first: Reply, second: Reply) -> Finding:
    differs = _passed(_read(first)) != _passed(_read(second))
    wrong = "another set of nodes passed the second time" if differs else ""
    advice = "filter must have no side effects: kube-scheduler, autoscalers and retries ask again"
    return judged(verb, "answers the same question in the same way", wrong, advice)


def _passed(answer: Filtered | str) -> set[str]:
    if isinstance(answer, str):
        return {f"error: {answer}"}
    return {node.name for node in answer.nodes or ()} | {*(answer.node_names or ())}


async def _nulls(service: ExaminedService, verb: str) -> Finding:
    reply = await service.ask(verb, samples.asked_without_nodes())
    wrong = reply.words if reply.failure or reply.status >= 500 else ""
    advice = "null is a value of every list: answer 200 with no node, or with Error"
    return judged(verb, "survives a question without any node", wrong, advice)


async def _other_form(service: ExaminedService, verb: str) -> Finding:
    reply = await service.ask(verb, samples.asked(NAMES, in_full=not service.in_full))
    wrong = reply.words if reply.failure or reply.status >= 500 else ""
    advice = "someone will toggle nodeCacheCapable: say so in Error"
    return judged(verb, "survives the form that it is not configured for", wrong, advice, Grade.WARNING)


async def _many_nodes(service: ExaminedService, verb: str) -> Finding:
    check = f"takes {samples.MANY_NODES} nodes in full"
    names = [f"doctor-node-{number}" for number in range(samples.MANY_NODES)]
    body = samples.asked(names, in_full=True, padding=True)
    reply = await service.ask(verb, body)
    size = f"{len(body) / 2**20:.0f} MiB"
    answer = _read(reply) if reply.is_ok else reply.words
    if isinstance(answer, str):
        return bad(verb, check, f"{size}: {answer}", "accept larger bodies, or be nodeCacheCapable")
    if reply.seconds > service.seconds:
        advice = "answer faster, raise httpTimeout, or be nodeCacheCapable"
        return bad(verb, check, f"{size} took {reply.seconds:.1f} s", advice)
    return ok(verb, check, f"{size} in {reply.seconds:.2f} s")
