"""Checks of preempt and of bind. The pods do not exist, so that nothing is bound."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import orjson

from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import read_binding_result, read_preemption_result
from extender.values.protocol.wire_types import MetaVictims
from reprieve.lab.doctor import Finding, Grade, bad, judged, ok, samples, skipped
from reprieve.lab.doctor.every_verb import answered, is_valid
from reprieve.lab.doctor.examined_service import NAMES, ExaminedService, Reply

READABLE: Final = "can be read by kube-scheduler"
EMPTY: Final = "takes candidates without victims"
NULL: Final = "takes candidates whose victims are null"
ASSUMED: Final = "keeps nodes whose victims are not bound yet"
KNOWN: Final = "names only nodes and pods that were sent"
NO_SUCH_POD: Final = "says in Error that there is no such pod"

PodsOfNode = dict[str, list[dict[str, Any]] | None]
Answer = Mapping[str, MetaVictims | None]


async def preempt_checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields findings about answers to victims in full or by UID as configured, bound and not, to none, and to null.

    An answer has no Error: a node that the extender refuses is left out.
    """
    verb = service.extender.preempt_verb
    names = (service.nodes or NAMES)[:2]
    pods_of_node: PodsOfNode = {name: [samples.running(f"victim-{place}", name)] for place, name in enumerate(names)}
    reply = await answered(service, verb, samples.candidates(pods_of_node, by_uid=not service.in_full), READABLE)
    yield is_valid(service, "ExtenderPreemptionResult", reply)
    answer = _read(reply)
    if isinstance(answer, str):
        advice = "see ExtenderPreemptionResult: NodeNameToMetaVictims with UIDs and a whole NumPDBViolations"
        yield bad(READABLE, answer, advice)
    else:
        yield _by_uid(reply, answer)
        yield _known(answer, pods_of_node, may_add=bool(service.nodes))
        yield _violations(answer)
    yield await _assumed(service, verb)
    yield await _without_victims(service, verb, {names[0]: []}, EMPTY)
    yield await _without_victims(service, verb, {names[0]: None}, NULL)


def _read(reply: Reply) -> Answer | str:
    try:
        return read_preemption_result(reply.body)
    except ExtenderError as exc:
        return str(exc)


def _by_uid(reply: Reply, answer: Answer) -> Finding:
    document: Any = orjson.loads(reply.body)
    if not answer and document.get("NodeNameToVictims"):
        detail = (
            "NodeNameToVictims is filled and NodeNameToMetaVictims is not: kube-scheduler reads that as no node at all"
        )
        return bad(READABLE, detail, "answer NodeNameToMetaVictims, whichever form was asked")
    return ok(READABLE)


def _known(answer: Answer, pods_of_node: PodsOfNode, *, may_add: bool = False) -> Finding:
    for node, victims in answer.items():
        if node not in pods_of_node:
            detail = f"node {node!r} was not sent: kube-scheduler gives up the whole preemption"
            return bad(KNOWN, detail, "leave it out")
        uids = {pod["metadata"]["uid"] for pod in pods_of_node[node] or ()}
        if victims is None:
            detail = f"the victims on {node!r} are null: kube-scheduler crashes on that"
            return bad(KNOWN, detail, "leave the node out, or name its victims")
        if not victims.uids and uids:
            detail = f'expected at least one victim pod on node "{node}": those that were sent are gone from the answer'
            return bad(KNOWN, detail, "leave the node out, or name its victims")
        # On a node that came without victims it may name any pods that are there, and so on a node that exists.
        strangers = [uid for uid in victims.uids if uids and uid not in uids]
        if strangers and not may_add:
            detail = (
                f"a pod {strangers[0]!r} on {node!r} was not sent: kube-scheduler gives up when it does not know it "
                "there"
            )
            return bad(KNOWN, detail, "name victims that were sent, or pods that are surely on that node")
    return ok(KNOWN)


def _violations(answer: Answer) -> Finding:
    below = {
        node: victims.num_pdb_violations
        for node, victims in answer.items()
        if victims and victims.num_pdb_violations < 0
    }
    wrong = next(
        (
            f"{number} on {node!r}: it would win against every node with a correct count"
            for node, number in below.items()
        ),
        "",
    )
    return judged("counts violations from 0 upwards", wrong, "count from 0")


async def _assumed(service: ExaminedService, verb: str) -> Finding:
    if not service.nodes:
        return skipped(ASSUMED, "this cannot be checked with nodes that do not exist: name some with --nodes")
    pods_of_node: PodsOfNode = {
        name: [samples.assumed(f"assumed-{number}", name)] for number, name in enumerate(service.nodes[:2])
    }
    reply = await answered(service, verb, samples.candidates(pods_of_node, by_uid=not service.in_full), ASSUMED)
    answer = _read(reply)
    left_out = [] if isinstance(answer, str) else sorted(pods_of_node.keys() - answer.keys())
    wrong = f"{left_out[0]!r} is left out, on which kube-scheduler has assumed its victim" if left_out else ""
    advice = (
        "keep a victim that is not known: kube-scheduler names pods that wait at Permit or in PreBind, for minutes; "
        "leave a node out only if evicting its victims does not help"
    )
    return judged(ASSUMED, wrong, advice, Grade.WARNING)


async def _without_victims(service: ExaminedService, verb: str, pods_of_node: PodsOfNode, check: str) -> Finding:
    reply = await service.ask(verb, samples.candidates(pods_of_node, by_uid=not service.in_full))
    advice = (
        "return the node without victims if this extender needs no eviction, name its victims, or leave it out to "
        "refuse it (since 1.38 kube-scheduler sends nodes that only extenders refused without victims)"
    )
    answer = _read(reply) if reply.is_ok else reply.words
    if isinstance(answer, str):
        return bad(check, answer, advice)
    finding = _known(answer, pods_of_node)
    return ok(check) if finding.grade is Grade.OK else bad(check, finding.detail, finding.advice)


async def bind_checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields what is wrong with the answer to a binding that cannot succeed."""
    body = {
        "PodName": "doctor-asks-for-what-is-not-there",
        "PodNamespace": "default",
        "PodUID": samples.UNKNOWN_POD,
        "Node": (service.nodes or ("doctor-node-1",))[0],
    }
    reply = await answered(service, service.extender.bind_verb, samples.encoded(body), NO_SUCH_POD)
    yield is_valid(service, "ExtenderBindingResult", reply)
    try:
        read_binding_result(reply.body)
    except ExtenderError as exc:
        try:
            readable = isinstance(orjson.loads(reply.body), dict)
        except orjson.JSONDecodeError:
            readable = False
        yield ok(NO_SUCH_POD, str(exc)[:120]) if readable else bad(NO_SUCH_POD, str(exc), 'answer {"Error": "..."}')
        return
    advice = "kube-scheduler believes that the pod is bound, and waits for it"
    yield bad(NO_SUCH_POD, "it says that a pod was bound that does not exist", advice)
