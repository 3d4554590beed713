"""Checks of filter."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import orjson

from api.doctor import samples
from api.doctor.checks.every_verb import is_valid, reached
from api.doctor.examined_service import ExaminedService, Reply
from api.doctor.grades import Finding, bad, ok, warning
from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import Filtered, read_filter_result

NAMES: Final = ("doctor-node-1", "doctor-node-2", "doctor-node-3")

SUBSET: Final = "passes only nodes that were asked for"
FORM: Final = "answers in the form that was asked"
READABLE: Final = "can be read by kube-scheduler"


async def checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about answers to full nodes or to names, as the configuration says."""
    verb = service.extender.filter_verb
    in_full = not service.extender.node_cache_capable
    names = list(NAMES if in_full or not service.nodes else service.nodes)
    body = _question(names, in_full=in_full)
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
    async for finding in _nulls(service, verb):
        yield finding
    async for finding in _other_form(service, verb, in_full=in_full):
        yield finding
    if in_full:
        yield await _many_nodes(service, verb)


def _question(names: Sequence[str], *, in_full: bool) -> bytes:
    return samples.encoded(
        samples.asked_in_full([samples.node(name) for name in names]) if in_full else samples.asked_by_name([*names])
    )


def _read(reply: Reply) -> Filtered | str:
    try:
        return read_filter_result(reply.body)
    except ExtenderError as exc:
        return str(exc)


def _of_answer(verb: str, answer: Filtered, names: Sequence[str], *, in_full: bool) -> list[Finding]:
    passed = [node.name for node in answer.nodes or ()] if in_full else [*(answer.node_names or ())]
    other = answer.node_names if in_full else answer.nodes
    found: list[Finding] = []
    if (answer.nodes if in_full else answer.node_names) is None and other:
        wanted, given = ("Nodes", "NodeNames") if in_full else ("NodeNames", "Nodes")
        advice = f"fill {wanted}, or set nodeCacheCapable: {str(in_full).lower()}"
        found.append(
            bad(
                verb,
                FORM,
                f"{given} is filled and {wanted} is null: kube-scheduler takes that for no node at all",
                advice,
            )
        )
    else:
        found.append(ok(verb, FORM))
    strangers = sorted({*passed} - {*names})
    if strangers:
        found.append(
            bad(
                verb,
                SUBSET,
                f"{strangers[0]!r} was not asked for: kube-scheduler gives up the whole call",
                "pass only what was sent",
            )
        )
    else:
        found.append(ok(verb, SUBSET))
    check = "does not pass and fail the same node"
    both = sorted({*passed} & ({*answer.failed} | {*answer.failed_and_unresolvable}))
    found.append(warning(verb, check, f"{both[0]!r} is in both", "a node is in one place") if both else ok(verb, check))
    return found


def _numbers_survive(verb: str, reply: Reply) -> Finding:
    check = "gives large numbers back as they were"
    document: Any = orjson.loads(reply.body)
    nodes = (document.get("Nodes") or document.get("nodes") or {}).get("items") or []
    sent = samples.BEYOND_DOUBLES
    for node in nodes:
        got = (node.get("metadata") or {}).get("generation", sent)
        if got != sent:
            return bad(
                verb,
                check,
                f"a generation of {sent} came back as {got}",
                "read whole numbers as 64-bit integers, not as floats",
            )
    return ok(verb, check)


def _same(verb: str, first: Reply, second: Reply) -> Finding:
    check = "answers the same question in the same way"
    before, after = _read(first), _read(second)
    same = _passed(before) == _passed(after)
    advice = "filter must have no side effects: kube-scheduler, autoscalers and retries ask again"
    return ok(verb, check) if same else bad(verb, check, "another set of nodes passed the second time", advice)


def _passed(answer: Filtered | str) -> set[str]:
    if isinstance(answer, str):
        return {f"error: {answer}"}
    return {node.name for node in answer.nodes or ()} | {*(answer.node_names or ())}


async def _nulls(service: ExaminedService, verb: str) -> AsyncIterator[Finding]:
    check = "survives a question without any node"
    reply = await service.ask(verb, samples.encoded({"Pod": samples.pod(), "Nodes": None, "NodeNames": None}))
    if reply.failure:
        yield bad(verb, check, reply.failure, "null is a value of every list: answer 200 with no node, or with Error")
    elif reply.status >= 500:
        yield bad(verb, check, reply.words, "null is a value of every list: answer 200 with no node, or with Error")
    else:
        yield ok(verb, check)


async def _other_form(service: ExaminedService, verb: str, *, in_full: bool) -> AsyncIterator[Finding]:
    check = "survives the form that it is not configured for"
    reply = await service.ask(verb, _question([*NAMES], in_full=not in_full))
    advice = "someone will toggle nodeCacheCapable: say so in Error"
    if reply.failure or reply.status >= 500:
        yield warning(verb, check, reply.words, advice)
    else:
        yield ok(verb, check)


async def _many_nodes(service: ExaminedService, verb: str) -> Finding:
    check = f"takes {samples.MANY_NODES} nodes in full"
    names = [f"doctor-node-{number}" for number in range(samples.MANY_NODES)]
    body = samples.encoded(samples.asked_in_full([samples.node(name, padding=True) for name in names]))
    reply = await service.ask(verb, body)
    size = f"{len(body) / 2**20:.0f} MiB"
    if reply.failure or not reply.is_ok:
        return bad(verb, check, f"{size}: {reply.words}", "accept larger bodies, or be nodeCacheCapable")
    answer = _read(reply)
    if isinstance(answer, str):
        return bad(verb, check, f"{size}: {answer}", "accept larger bodies, or be nodeCacheCapable")
    if reply.seconds > service.seconds:
        return bad(
            verb,
            check,
            f"{size} took {reply.seconds:.1f} s",
            "answer faster, raise httpTimeout, or be nodeCacheCapable",
        )
    return ok(verb, check, f"{size} in {reply.seconds:.2f} s")
