"""Every call that a real kube-scheduler 1.36 made to two extenders is answered as the protocol asks."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from tests.kit.many_cases import each_case
from tests.kit.service import DATA, TWELVE_NODES, Service, items_of


@cache
def recorded_calls() -> list[dict[str, Any]]:
    return list(map(json.loads, gzip.decompress((DATA / "kube-scheduler-1.36.jsonl.gz").read_bytes()).splitlines()))


def preemptions() -> list[dict[str, Any]]:
    return [call for call in recorded_calls() if call["verb"] == "preempt" and call["run"] == "twelve-nodes"]


def name_of(call: dict[str, Any]) -> str:
    return f"{call['run']}-{call['seq']}-{call['verb']}"


def calls(verb: str, cached: bool | None = None) -> Callable[..., Any]:
    return each_case(
        lambda: [
            call for call in recorded_calls() if call["verb"] == verb and cached in (None, call["nodeCacheCapable"])
        ],
        name_of=name_of,
    )


def as_go_writes(value: object) -> bytes:
    """Compact, with < > & escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


def answer_to(service: Service, call: dict[str, Any]) -> Any:
    answer = service.call(call["verb"], as_go_writes(call["body"]))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@calls("filter")
def test_every_asked_node_passes_or_fails_for_one_reason(twelve_nodes: Service, case: dict[str, Any]) -> None:
    body = case["body"]
    node_names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]

    answer = answer_to(twelve_nodes, case)

    assert list(answer) == ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"]
    assert answer["Error"] == ""
    passing = (
        answer["NodeNames"]
        if case["nodeCacheCapable"]
        else [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
    )
    failed, unresolvable = answer["FailedNodes"], answer["FailedAndUnresolvableNodes"]
    assert passing == [name for name in node_names if name in passing]
    assert sorted([*passing, *failed, *unresolvable]) == sorted(node_names)
    for reason in [*failed.values(), *unresolvable.values()]:
        assert 0 < len(reason) <= 128
        assert not any(name in reason for name in node_names), (
            "equal reasons are counted, so that they must not tell nodes apart"
        )


@calls("filter", cached=False)
def test_nodes_that_pass_come_back_byte_for_byte(twelve_nodes: Service, case: dict[str, Any]) -> None:
    sent_nodes = {node["metadata"]["name"]: as_go_writes(node) for node in case["body"]["Nodes"]["items"]}

    answer = twelve_nodes.call("filter", as_go_writes(case["body"]))

    nodes = msgspec.json.decode(answer.content, type=dict[str, msgspec.Raw])["Nodes"]
    raws = msgspec.json.decode(msgspec.json.decode(nodes, type=dict[str, msgspec.Raw])["items"], type=list[msgspec.Raw])
    for item in raws:
        assert bytes(item) == sent_nodes[msgspec.json.decode(item)["metadata"]["name"]]


@calls("filter", cached=True)
def test_asked_by_name_nodes_are_answered_by_name(twelve_nodes: Service, case: dict[str, Any]) -> None:
    answer = answer_to(twelve_nodes, case)

    assert answer["Nodes"] is None
    assert isinstance(answer["NodeNames"], list)


@calls("prioritize")
def test_every_asked_node_gets_one_integer_score(twelve_nodes: Service, case: dict[str, Any]) -> None:
    body = case["body"]
    node_names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]

    answer = answer_to(twelve_nodes, case)

    assert [entry["Host"] for entry in answer] == node_names
    assert all(
        list(entry) == ["Host", "Score"] and type(entry["Score"]) is int and 0 <= entry["Score"] <= 10
        for entry in answer
    )


@calls("preempt")
def test_victims_are_answered_by_uid_without_nulls(twelve_nodes: Service, case: dict[str, Any]) -> None:
    proposed_victims = case["body"]["NodeNameToMetaVictims"] or case["body"]["NodeNameToVictims"]

    answer = answer_to(twelve_nodes, case)

    assert list(answer) == ["NodeNameToMetaVictims"]
    assert answer["NodeNameToMetaVictims"].keys() <= proposed_victims.keys()
    for victims in answer["NodeNameToMetaVictims"].values():
        assert list(victims) == ["Pods", "NumPDBViolations"]
        assert victims["Pods"]
        assert all(list(pod) == ["UID"] and pod["UID"] for pod in victims["Pods"])
        assert type(victims["NumPDBViolations"]) is int
        assert victims["NumPDBViolations"] >= 0


@each_case(preemptions, name_of=name_of)
def test_without_the_victims_the_pod_fits(twelve_nodes: Service, case: dict[str, Any]) -> None:
    items = items_of(TWELVE_NODES)
    preemptor = case["body"]["Pod"]
    nodes = [item for item in items if item["kind"] == "Node"]
    answer = answer_to(twelve_nodes, case)["NodeNameToMetaVictims"]

    assert answer
    for name, victims in answer.items():
        removed_uids = {pod["UID"] for pod in victims["Pods"]} | {preemptor["metadata"]["uid"]}
        pods = [item for item in items if item["kind"] == "Pod" and item["metadata"]["uid"] not in removed_uids]
        evaluated = twelve_nodes.post("/v1/evaluate", {"objects": {"nodes": nodes, "pods": pods}, "pod": preemptor})
        assert evaluated.json()["filter"][name] == {"code": "Success"}


def test_both_forms_of_a_call_get_the_same_answer(twelve_nodes: Service) -> None:
    by_uid, in_full, *_ = preemptions()

    assert (by_uid["nodeCacheCapable"], in_full["nodeCacheCapable"]) == (True, False)
    assert answer_to(twelve_nodes, by_uid) == answer_to(twelve_nodes, in_full)
