"""Checks of filter and of prioritize, which are asked about nodes in full or by name, as the configuration says."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import orjson

from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import Filtered, read_filter_result, read_prioritize_result
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY, HostPriority
from reprieve.lab.doctor import Finding, Grade, bad, judged, ok, samples, warning
from reprieve.lab.doctor.every_verb import answered, is_valid
from reprieve.lab.doctor.examined_service import NAMES, ExaminedService, Reply

SUBSET: Final = "passes only nodes that were asked for"
FORM: Final = "answers in the form that was asked"
READABLE: Final = "can be read by kube-scheduler"
SCORES: Final = "gives integers for scores"
RANGE: Final = "gives scores from 0 to 10"


async def filter_checks(service: ExaminedService) -> AsyncIterator[Finding]:
    verb, in_full = service.extender.filter_verb, service.in_full
    body = samples.asked(service.names, in_full=in_full)
    first = await answered(service, verb, body, READABLE)
    yield is_valid(service, "ExtenderFilterResult", first)
    answer = _read(first)
    if isinstance(answer, str):
        advice = "see ExtenderFilterResult: Nodes, NodeNames, FailedNodes, FailedAndUnresolvableNodes, Error"
        yield bad(READABLE, answer, advice)
    else:
        yield ok(READABLE)
        for finding in _of_answer(answer, service.names, in_full=in_full):
            yield finding
        if in_full:
            yield _numbers_survive(first)
        yield _same(first, await service.ask(verb, body))
    without_nodes = await service.ask(verb, samples.asked_without_nodes())
    advice = "null is a value of every list: answer 200 with no node, or with Error"
    yield judged("survives a question without any node", _fault(without_nodes), advice)
    other_form = await service.ask(verb, samples.asked(NAMES, in_full=not in_full))
    advice = "nodeCacheCapable may be changed one day: answer with Error"
    yield judged("survives the form that it is not configured for", _fault(other_form), advice, Grade.WARNING)
    if in_full:
        yield await _many_nodes(service, verb)


def _read(reply: Reply) -> Filtered | str:
    try:
        return read_filter_result(reply.body)
    except ExtenderError as exc:
        return str(exc)


def _fault(reply: Reply) -> str:
    return reply.words if reply.failure or reply.status >= 500 else ""


def _of_answer(answer: Filtered, names: Sequence[str], *, in_full: bool) -> Iterator[Finding]:
    passed = [node.name for node in answer.nodes or ()] if in_full else [*(answer.node_names or ())]
    other = answer.node_names if in_full else answer.nodes
    right_field, wrong_field = ("Nodes", "NodeNames") if in_full else ("NodeNames", "Nodes")
    is_other = (answer.nodes if in_full else answer.node_names) is None and other
    problem = (
        f"{wrong_field} is filled and {right_field} is null: kube-scheduler reads that as no node at all"
        if is_other
        else ""
    )
    yield judged(FORM, problem, f"fill {right_field}, or set nodeCacheCapable: {str(in_full).lower()}")
    strangers = sorted({*passed} - {*names})
    problem = f"{strangers[0]!r} was not asked for: kube-scheduler rejects the whole answer" if strangers else ""
    yield judged(SUBSET, problem, "pass only what was sent")
    both = sorted({*passed} & ({*answer.failed} | {*answer.failed_and_unresolvable}))
    problem = f"{both[0]!r} is in both" if both else ""
    yield judged("does not pass and fail the same node", problem, "a node is in one place", Grade.WARNING)


def _numbers_survive(reply: Reply) -> Finding:
    document: Any = orjson.loads(reply.body)
    nodes = (document.get("Nodes") or document.get("nodes") or {}).get("items") or []
    expected = samples.BEYOND_DOUBLES
    got = [(node.get("metadata") or {}).get("generation", expected) for node in nodes]
    wrong = next((f"a generation of {expected} came back as {number}" for number in got if number != expected), "")
    advice = "read whole numbers as 64-bit integers, not as floats"
    return judged("returns large numbers unchanged", wrong, advice)


def _same(first: Reply, second: Reply) -> Finding:
    differs = _passed(_read(first)) != _passed(_read(second))
    wrong = "another set of nodes passed the second time" if differs else ""
    advice = "filter must have no side effects: kube-scheduler, autoscalers and retries ask again"
    return judged("answers the same question in the same way", wrong, advice)


def _passed(answer: Filtered | str) -> set[str]:
    if isinstance(answer, str):
        return {f"error: {answer}"}
    return {node.name for node in answer.nodes or ()} | {*(answer.node_names or ())}


async def _many_nodes(service: ExaminedService, verb: str) -> Finding:
    check = f"takes {samples.MANY_NODES} nodes in full"
    names = [f"doctor-node-{number}" for number in range(samples.MANY_NODES)]
    body = samples.asked(names, in_full=True, padding=True)
    reply = await service.ask(verb, body)
    size = f"{len(body) / 2**20:.0f} MiB"
    answer = _read(reply) if reply.is_ok else reply.words
    if isinstance(answer, str):
        return bad(check, f"{size}: {answer}", "accept larger bodies, or be nodeCacheCapable")
    if reply.seconds > service.seconds:
        advice = "answer faster, raise httpTimeout, or be nodeCacheCapable"
        return bad(check, f"{size} took {reply.seconds:.1f} s", advice)
    return ok(check, f"{size} in {reply.seconds:.2f} s")


async def prioritize_checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about scores. kube-scheduler counts any integer, and drops an unreadable answer."""
    verb = service.extender.prioritize_verb
    reply = await answered(service, verb, samples.asked(service.names, in_full=service.in_full), SCORES)
    yield is_valid(service, "HostPriorityList", reply)
    try:
        scores = read_prioritize_result(reply.body)
    except ExtenderError as exc:
        advice = "answer a list of {Host, Score} with integers: kube-scheduler drops an answer that it cannot read"
        yield bad(SCORES, str(exc), advice)
        return
    yield ok(SCORES)
    yield _of_range(scores)
    yield _of_scores(scores, service.names)
    empty = await service.ask(verb, samples.asked_without_nodes())
    advice = "null is a value of every list: answer an empty one"
    yield judged("survives a question without any node", empty.failure, advice)
    if service.extender.weight <= 0:
        yield warning("has a weight", "weight is 0: kube-scheduler refuses that", "set weight to 1 or more")


def _of_range(scores: Sequence[HostPriority]) -> Finding:
    beyond = next((priority for priority in scores if not 0 <= priority.score <= MAX_EXTENDER_PRIORITY), None)
    if beyond is None:
        return ok(RANGE)
    outweighs = (
        f"{beyond.score} for {beyond.host!r}: kube-scheduler adds ten times this and the weight to the scores of its "
        "plugins"
    )
    return warning(RANGE, outweighs, "answer 0 to 10, and let weight say how much it counts")


def _of_scores(scores: Sequence[HostPriority], names: Sequence[str]) -> Finding:
    check, hosts = "scores the nodes that were asked for", [score.host for score in scores]
    strangers = sorted({*hosts} - {*names})
    unscored = sorted({*names} - {*hosts})
    if strangers:
        return bad(check, f"{strangers[0]!r} was not asked for", "score what was sent")
    if unscored and hosts:
        return warning(check, f"{unscored[0]!r} has no score", "a node without a score counts as 0")
    if len(hosts) != len({*hosts}):
        return warning(check, "a node has two scores", "kube-scheduler adds them up")
    return ok(check)
