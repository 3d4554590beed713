"""Checks of prioritize: scores are 0 to 10. kube-scheduler counts any integer, and drops an unreadable answer."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from api.doctor import Finding, bad, judged, ok, samples, warning
from api.doctor.checks.every_verb import is_valid, reached
from api.doctor.examined_service import ExaminedService
from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import read_prioritize_result
from extender.values.protocol.wire_types import MAX_EXTENDER_PRIORITY, HostPriority

SCORES: Final = "gives integers for scores"

RANGE: Final = "gives scores from 0 to 10"


async def checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about scores, asked for in the form that is configured."""
    verb = service.extender.prioritize_verb
    reply = await service.ask(verb, samples.asked(service.names, in_full=service.in_full))
    wrong = reached(verb, service, reply, SCORES)
    if wrong is not None:
        yield wrong
        return
    yield is_valid(verb, "HostPriorityList", reply)
    try:
        scores = read_prioritize_result(reply.body)
    except ExtenderError as exc:
        yield bad(
            verb,
            SCORES,
            str(exc),
            "answer a list of {Host, Score} with integers: kube-scheduler drops an answer that it cannot read",
        )
        return
    yield ok(verb, SCORES)
    yield _of_range(verb, scores)
    for finding in _of_scores(verb, scores, service.names):
        yield finding
    empty = await service.ask(verb, samples.asked_without_nodes())
    advice = "null is a value of every list: answer an empty one"
    yield judged(verb, "survives a question without any node", empty.failure, advice)
    if service.extender.weight <= 0:
        yield warning(verb, "has a weight", "weight is 0: kube-scheduler refuses that", "set weight to 1 or more")


def _of_range(verb: str, scores: Sequence[HostPriority]) -> Finding:
    beyond = next((each for each in scores if not 0 <= each.score <= MAX_EXTENDER_PRIORITY), None)
    if beyond is None:
        return ok(verb, RANGE)
    outweighs = (
        f"{beyond.score} for {beyond.host!r}: kube-scheduler adds ten times this and the weight to the scores of its "
        "plugins"
    )
    return warning(verb, RANGE, outweighs, "answer 0 to 10, and let weight say how much it counts")


def _of_scores(verb: str, scores: Sequence[HostPriority], names: Sequence[str]) -> list[Finding]:
    check, hosts = "scores the nodes that were asked for", [score.host for score in scores]
    strangers = sorted({*hosts} - {*names})
    missing = sorted({*names} - {*hosts})
    if strangers:
        return [bad(verb, check, f"{strangers[0]!r} was not asked for", "score what was sent")]
    if missing and hosts:
        return [warning(verb, check, f"{missing[0]!r} has no score", "a node without a score counts as 0")]
    if len(hosts) != len({*hosts}):
        return [warning(verb, check, "a node has two scores", "kube-scheduler adds them up")]
    return [ok(verb, check)]
