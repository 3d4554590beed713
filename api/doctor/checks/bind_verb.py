"""Checks of bind, for a pod that does not exist, so that nothing is bound."""

from collections.abc import AsyncIterator
from typing import Final

import orjson

from api.doctor import Finding, bad, ok, samples
from api.doctor.checks.every_verb import is_valid, reached
from api.doctor.examined_service import ExaminedService
from extender.engine.framework import ExtenderError
from extender.values.protocol.verb_results import read_binding_result

CHECK: Final = "says in Error that there is no such pod"


async def checks(service: ExaminedService) -> AsyncIterator[Finding]:
    """Yields what is wrong with the answer to a binding that cannot succeed."""
    verb = service.extender.bind_verb
    body = {
        "PodName": "doctor-asks-for-what-is-not-there",
        "PodNamespace": "default",
        "PodUID": samples.UNKNOWN_POD,
        "Node": (service.nodes or ("doctor-node-1",))[0],
    }
    reply = await service.ask(verb, samples.encoded(body))
    wrong = reached(verb, service, reply, CHECK)
    if wrong is not None:
        yield wrong
        return
    yield is_valid(verb, "ExtenderBindingResult", reply)
    try:
        read_binding_result(reply.body)
    except ExtenderError as exc:
        try:
            readable = isinstance(orjson.loads(reply.body), dict)
        except orjson.JSONDecodeError:
            readable = False
        yield ok(verb, CHECK, str(exc)[:120]) if readable else bad(verb, CHECK, str(exc), 'answer {"Error": "..."}')
        return
    advice = "kube-scheduler believes that the pod is bound, and waits for it"
    yield bad(verb, CHECK, "it says that a pod was bound that does not exist", advice)
