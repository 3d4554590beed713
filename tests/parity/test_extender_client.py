"""HTTPExtender against servers that say what the real client was told: the same requests, the same answers, the same
failures.
"""

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from extender.client.http_extender import HTTPExtender
from extender.engine.framework import Candidate, ExtenderError
from extender.testing import make_cache
from extender.values.config.configuration import Extender, ExtenderManagedResource
from extender.values.golang.times import Duration
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.extender.client.http_extender.serving import Served, Writes, answer, closes, hangs, raw, says, serving
from tests.kit.many_cases import each_case
from tests.parity.cases import component_cases


@each_case(lambda: component_cases("extender-client"))
def test_extenders_are_asked_and_understood_as_upstream_does(case: dict[str, Any]) -> None:
    """The difference that is meant: numbers of violations are not taken at their word."""
    expected = with_named_differences(case)

    outcome, served = in_time(case["input"], expected)

    assert outcome["properties"] == expected["properties"]
    assert [request.path for request in served.requests] == [request["path"] for request in expected["requests"]]
    for ours, theirs in zip(served.requests, expected["requests"], strict=True):
        assert (ours.method, ours.headers.get("content-type", "")) == (theirs["method"], theirs["contentType"])
        assert without_what_we_do_not_hold(ours.body) == without_what_we_do_not_hold(
            json.loads(theirs["body"] or "null")
        )
    if "errorKind" in expected:
        assert kind_of(outcome["error"]) == expected["errorKind"], outcome["error"]
        if expected["errorKind"] not in ("decode", "transport"):
            assert outcome["error"] in expected.get("errorOneOf", [expected["error"]])
    else:
        assert {name: outcome.get(name) for name in expected if name != "requests"} == {
            name: value for name, value in expected.items() if name != "requests"
        }


def in_time(call: dict[str, Any], expected: dict[str, Any]) -> tuple[dict[str, Any], Served]:
    """What becomes of the call. Where it was to last too long, and a busy machine came to less in that time, it is
    tried again with more.
    """
    config = call["config"]
    for times in (1, 10, 100) if expected.get("errorKind") == "timeout" else (1,):
        patient = {**config, "httpTimeoutMs": times * config["httpTimeoutMs"]}
        outcome, served = asyncio.run(outcome_of({**call, "config": patient}))
        if outcome.get("error") == expected.get("error") and len(served.requests) == len(expected["requests"]):
            break
    return outcome, served


def with_named_differences(case: dict[str, Any]) -> dict[str, Any]:
    """What we are to do where upstream goes on trustingly."""
    call, expected = case["input"], dict(case["expect"])
    refused: dict[str, Any] = {"properties": expected["properties"], "requests": expected["requests"]}
    if "panic" in expected:
        return refused | {
            "errorKind": "bad-answer",
            "error": "extender: URL claims to preempt pods on node: n1, but has null for them",
        }
    violations = [
        item["numPDBViolations"] for item in expected.get("victims", {}).values() if item["numPDBViolations"] < 0
    ]
    if violations:
        return refused | {
            "errorKind": "bad-answer",
            "error": f"extender: URL claims {violations[0]} PDB violations on node: n1",
        }
    if "scores" in expected and not call["config"]["prioritizeVerb"]:
        # Who is not asked has no scores; upstream spells out a zero of weight zero for each node.
        expected |= {"scores": [], "weight": call["config"]["weight"]}
    for name in ("failedNodes", "failedAndUnresolvableNodes"):
        if name in expected:
            expected[name] = expected[name] or {}
    return expected


async def outcome_of(call: dict[str, Any]) -> tuple[dict[str, Any], Served]:
    async with serving(replies(call["reply"])) as served:
        address = served.address.removeprefix("http://")
        extender = HTTPExtender(configuration(call, address))
        try:
            outcome = await called(extender, call)
        except ExtenderError as exc:
            outcome = {"error": str(exc)}
        finally:
            await extender.aclose()
    pod = convert(Pod, call["pod"])
    properties = {
        "isBinder": extender.is_binder,
        "isFilter": extender.is_filter,
        "isIgnorable": extender.is_ignorable,
        "isInterested": extender.is_interested(pod),
        "isPrioritizer": extender.is_prioritizer,
        "name": extender.name,
        "supportsPreemption": extender.supports_preemption,
    }
    normalized_outcome = json.loads(json.dumps(outcome | {"properties": properties}).replace(address, "EXTENDER"))
    if "error" in normalized_outcome:
        normalized_outcome["error"] = normalized(normalized_outcome["error"], call["urlPrefix"])
    return normalized_outcome, served


def normalized(error: str, prefix: str) -> str:
    """Our own texts without the address; upstream's as they are."""
    is_ours = "has null for them" in error or "PDB violations" in error
    return error.replace(prefix, "URL") if is_ours else error


def configuration(call: dict[str, Any], address: str) -> Extender:
    config = call["config"]
    return Extender(
        url_prefix=call["urlPrefix"].replace("EXTENDER", address),
        filter_verb=config["filterVerb"],
        prioritize_verb=config["prioritizeVerb"],
        preempt_verb=config["preemptVerb"],
        bind_verb=config["bindVerb"],
        weight=config["weight"],
        http_timeout=Duration.parse(f"{config['httpTimeoutMs']}ms"),
        node_cache_capable=config["nodeCacheCapable"],
        managed_resources=tuple(ExtenderManagedResource(name) for name in config["managedResources"]),
        ignorable=config["ignorable"],
    )


async def called(extender: HTTPExtender, call: dict[str, Any]) -> dict[str, Any]:
    pod = convert(Pod, call["pod"])
    nodes = [convert(Node, row["node"]) for row in call["nodes"]]
    pods_on = {row["node"]["metadata"]["name"]: [convert(Pod, pod) for pod in row["pods"]] for row in call["nodes"]}
    match call["verb"]:
        case "filter":
            result = await extender.filter(pod, nodes)
            return {
                "nodes": [
                    # What comes back in full is a node of which nobody knows a pod.
                    {
                        "name": node.name,
                        "labels": node.labels or None,
                        "pods": len(pods_on[node.name]) if node in nodes else 0,
                    }
                    for node in result.nodes
                ],
                "failedNodes": result.failed,
                "failedAndUnresolvableNodes": result.failed_and_unresolvable,
            }
        case "prioritize":
            scores = await extender.prioritize(pod, nodes)
            return {
                "scores": [{"host": row.host, "score": row.score} for row in scores],
                "weight": extender.weight,
            }
        case "preempt":
            snapshot = make_cache(*nodes, pods=[pod for pods in pods_on.values() for pod in pods]).update_snapshot()
            by_uid = {pod.uid: pod for pods in pods_on.values() for pod in pods}
            victims = [
                Candidate(node, tuple(by_uid[uid] for uid in node_victims["podUIDs"]), node_victims["numPDBViolations"])
                for node, node_victims in call["victims"].items()
            ]
            answered = await extender.process_preemption(pod, victims, snapshot)
            return {
                "victims": {
                    candidate.node: {
                        "podUIDs": [victim.uid for victim in candidate.victims],
                        "numPDBViolations": candidate.num_pdb_violations,
                    }
                    for candidate in answered
                }
            }
        case _:
            bound = convert(Pod, {"metadata": {"name": "target", "namespace": "default", "uid": "pod-target"}})
            await extender.bind(bound, call["bindNode"])
            return {"bound": True}


def replies(reply: Mapping[str, Any]) -> Writes:
    body = reply.get("body", "").encode()
    headers = {name.replace("-", "_"): value for name, value in reply.get("headers", {}).items()}
    match reply["kind"]:
        case "close":
            return closes
        case "delayHeaders":
            return hangs()
        case "delayBody":
            return hangs(answer(body, Content_Length=str(len(body)))[: -len(body) or None])
        case "truncate":
            return raw(answer(body[: len(body) // 2], Content_Length=str(len(body) + 50)), then_close=True)
        case _:
            return redirects(body, reply["status"], headers)


def redirects(body: bytes, status: int, headers: dict[str, str]) -> Writes:
    """Each first answer, and status 200 at the place to which it leads."""
    if "Location" not in headers:
        return says(body, status, **headers)
    answers = itertools.cycle((says(body, status, **headers), says(body)))

    async def in_turn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next(answers)(reader, writer)

    return in_turn


def kind_of(error: str) -> str:
    if error == "unexpected empty bindVerb in extender" or error.startswith("preempt verb is not defined for extender"):
        return "not-sent"
    if "context deadline exceeded" in error:
        return "timeout"
    if error.startswith("failed "):
        return "http-status"
    if error in ("EOF", "unexpected EOF"):
        return "short-body"
    if error.startswith("Post "):
        return "transport"
    if error.startswith(("json: ", "invalid character")):
        return "decode"
    if any(words in error for words in ("claims", "nodeinfo not found")):
        return "bad-answer"
    return "reported-by-extender"


def without_what_we_do_not_hold(value: Any) -> Any:
    """Members of a node's status that say nothing to scheduling."""
    if isinstance(value, dict):
        return {
            key: without_what_we_do_not_hold(member)
            for key, member in value.items()
            if key not in ("daemonEndpoints", "nodeInfo")
        }
    if isinstance(value, list):
        return [without_what_we_do_not_hold(member) for member in value]
    return value


@pytest.mark.parametrize("verb", ["preempt", "bind"])
def test_verb_that_an_extender_lacks_is_not_sent(verb: str) -> None:
    """No recorded case asks one without `preemptVerb` for victims; those of other seeds do."""
    (call, *_) = [case["input"] for case in component_cases("extender-client") if case["input"]["verb"] == verb]

    outcome, served = asyncio.run(outcome_of(call | {"config": call["config"] | {f"{verb}Verb": ""}}))

    assert kind_of(outcome["error"]) == "not-sent"
    assert served.requests == []
