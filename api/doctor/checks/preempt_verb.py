"""Checks of preempt. Its answer has no Error: a node that the extender refuses is left out."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import orjson

from api.doctor import Finding, Grade, bad, judged, ok, samples
from api.doctor.checks.every_verb import is_valid, reached
from api.doctor.examined_service import NAMES, ExaminedService, Reply
from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import read_preemption_result
from extender.values.protocol.wire_types import MetaVictims

READABLE: Final = "can be read by kube-scheduler"
EMPTY: Final = "takes candidates without victims"
NULL: Final = "takes candidates whose victims are null"
KNOWN: Final = "names only nodes and pods that were sent"

Sent = dict[str, list[dict[str, Any]] | None]
Answer = Mapping[str, MetaVictims | None]


async def checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about answers to victims in full or by UID as configured, to no victims, and to null victims."""
    verb = service.extender.preempt_verb
    names = (service.nodes or NAMES)[:2]
    sent: Sent = {name: [samples.running(f"victim-{place}", name)] for place, name in enumerate(names)}
    reply = await service.ask(verb, _question(service, sent))
    wrong = reached(verb, service, reply, READABLE)
    if wrong is not None:
        yield wrong
        return
    yield is_valid(verb, "ExtenderPreemptionResult", reply)
    answer = _read(reply)
    if isinstance(answer, str):
        yield bad(
            verb,
            READABLE,
            answer,
            "see ExtenderPreemptionResult: NodeNameToMetaVictims with UIDs and a whole NumPDBViolations",
        )
    else:
        yield _by_uid(verb, reply, answer)
        yield _known(verb, answer, sent)
        yield _violations(verb, answer)
    yield await _without_victims(service, verb, {names[0]: []}, EMPTY)
    yield await _without_victims(service, verb, {names[0]: None}, NULL)


def _question(service: ExaminedService, sent: Sent) -> bytes:
    form = samples.candidates_by_uid if service.extender.node_cache_capable else samples.candidates_in_full
    return samples.encoded(form(sent))


def _read(reply: Reply) -> Answer | str:
    try:
        return read_preemption_result(reply.body)
    except ExtenderError as exc:
        return str(exc)


def _by_uid(verb: str, reply: Reply, answer: Answer) -> Finding:
    document: Any = orjson.loads(reply.body)
    if not answer and document.get("NodeNameToVictims"):
        detail = (
            "NodeNameToVictims is filled and NodeNameToMetaVictims is not: kube-scheduler takes that for no node at all"
        )
        return bad(verb, READABLE, detail, "answer NodeNameToMetaVictims, in whatever form was asked")
    return ok(verb, READABLE)


def _known(verb: str, answer: Answer, sent: Sent) -> Finding:
    for node, victims in answer.items():
        if node not in sent:
            return bad(
                verb, KNOWN, f"node {node!r} was not sent: kube-scheduler gives up the whole preemption", "leave it out"
            )
        uids = {pod["metadata"]["uid"] for pod in sent[node] or ()}
        if victims is None:
            detail = f"null stands for victims on {node!r}: kube-scheduler follows it, which ends its process"
            return bad(verb, KNOWN, detail, "leave the node out, or name its victims")
        if not victims.uids and uids:
            detail = f'expected at least one victim pod on node "{node}": those that were sent are gone from the answer'
            return bad(verb, KNOWN, detail, "leave the node out, or name its victims")
        # On a node that came without victims it may name any pods that are there.
        strangers = [uid for uid in victims.uids if uids and uid not in uids]
        if strangers:
            detail = (
                f"a pod {strangers[0]!r} on {node!r} was not sent: kube-scheduler gives up when it does not know it "
                "there"
            )
            return bad(verb, KNOWN, detail, "name victims that were sent, or pods that are surely on that node")
    return ok(verb, KNOWN)


def _violations(verb: str, answer: Answer) -> Finding:
    below = {node: gone.num_pdb_violations for node, gone in answer.items() if gone and gone.num_pdb_violations < 0}
    wrong = next((f"{number} on {node!r}: it wins against every honest node" for node, number in below.items()), "")
    return judged(verb, "counts violations from 0 upwards", wrong, "count from 0")


async def _without_victims(service: ExaminedService, verb: str, sent: Sent, check: str) -> Finding:
    reply = await service.ask(verb, _question(service, sent))
    advice = (
        "pass the node on empty if nobody has to go for this extender, name its victims, or leave it out to refuse it "
        "(since 1.38 kube-scheduler asks so about nodes that only extenders refused)"
    )
    if reply.failure or not reply.is_ok:
        return bad(verb, check, reply.words, advice)
    answer = _read(reply)
    if isinstance(answer, str):
        return bad(verb, check, answer, advice)
    known = _known(verb, answer, sent)
    return ok(verb, check) if known.grade is Grade.OK else bad(verb, check, known.detail, known.advice)
