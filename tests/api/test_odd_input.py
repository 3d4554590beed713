"""What filter and prioritize can read has an answer with 200, however odd it is."""

from collections.abc import Callable
from typing import Any

import pytest

from api.documents.documentation import POD
from tests.api.verb_requests import asking, pod_with, pod_with_requests, with_node
from tests.kit.service import Service
from tests.kit.tables import cases


@cases(
    "body",
    ("top", b'{"Pod":{"metadata":{"name":"p"}},"NodeNames":["node-b1"],"NodeNames":["node-a1"]}'),
    ("inside", b'{"Pod":{"metadata":{"name":"?"},"metadata":{"name":"p"}},"NodeNames":["node-a1"]}'),
)
def test_last_of_duplicate_keys_counts(example: Service, body: bytes) -> None:
    assert example.call("filter", body).json()["NodeNames"] == ["node-a1"]


def test_pod_without_uid_is_accepted(example: Service) -> None:
    answer = example.call("filter", asking(pod_with(lambda pod: pod["metadata"].pop("uid"))))

    assert (answer.status_code, answer.json()["Error"]) == (200, "")


def test_both_forms_of_the_same_nodes_are_answered_in_both_forms(example: Service) -> None:
    body = with_node()
    answer = example.call("filter", {**body, "NodeNames": ["fresh-node"]}).json()

    assert answer["NodeNames"] == ["fresh-node"]
    assert answer["Nodes"] == {"metadata": {}, "items": body["Nodes"]["items"]}  # type: ignore[index]


@pytest.mark.parametrize("body", [{"Pod": POD}, {"Pod": POD, "Nodes": None, "NodeNames": None}], ids=["absent", "null"])
def test_missing_nodes_are_an_error_in_words(example: Service, body: object) -> None:
    answer = example.call("filter", body)

    assert (answer.status_code, answer.json()["Error"]) == (200, "neither nodes nor nodeNames given")
    assert example.call("prioritize", body).json() == []


@cases(
    "nodes, names, passing",
    ("by name", None, [], {"Nodes": None, "NodeNames": []}),
    ("in full", {"items": []}, None, {"Nodes": {"metadata": {}, "items": []}, "NodeNames": None}),
    ("Go's none", {"metadata": {}, "items": None}, None, {"Nodes": {"metadata": {}, "items": []}, "NodeNames": None}),
)
def test_empty_nodes_are_answered_by_empty_lists(
    example: Service, nodes: object, names: object, passing: dict[str, object]
) -> None:
    answer = example.call("filter", {"Pod": POD, "Nodes": nodes, "NodeNames": names}).json()

    assert answer == {**passing, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}
    assert example.call("prioritize", {"Pod": POD, "Nodes": nodes, "NodeNames": names}).json() == []


def test_node_that_is_named_twice_counts_once(example: Service) -> None:
    names = ["node-c3", "node-a1", "node-c3", "node-a1", "node-b1"]

    assert example.call("filter", asking(NodeNames=names)).json()["NodeNames"] == ["node-c3", "node-a1", "node-b1"]
    assert [entry["Host"] for entry in example.call("prioritize", asking(NodeNames=names)).json()] == [
        "node-c3",
        "node-a1",
        "node-b1",
    ]


def test_node_that_is_sent_twice_counts_once(example: Service) -> None:
    body = with_node()
    (node,) = body["Nodes"]["items"]  # type: ignore[index]
    other = {**node, "metadata": {"name": "other-node"}}
    cordoned = {**node, "spec": {"unschedulable": True}}

    answer = example.call("filter", {**body, "Nodes": {"items": [node, other, cordoned]}}).json()

    assert answer["Nodes"]["items"] == [node, other]


def test_unknown_node_fails_in_a_way_that_preemption_could_change(example: Service) -> None:
    answer = example.call("filter", asking(NodeNames=["node-a1", "new-node"])).json()

    assert answer["NodeNames"] == ["node-a1"]
    assert answer["FailedNodes"] == {"new-node": "node not known to the extender yet"}
    assert example.call("prioritize", asking(NodeNames=["new-node", "node-a1"])).json()[0] == {
        "Host": "new-node",
        "Score": 0,
    }


def test_all_nodes_fail_when_none_is_known(example: Service) -> None:
    answer = example.call("filter", asking(NodeNames=["x", "y"])).json()

    assert (answer["NodeNames"], set(answer["FailedNodes"]), answer["Error"]) == ([], {"x", "y"}, "")


@pytest.mark.parametrize("cpu", ["10 GB", "1e", "−1", "1E+1000000", "1" * 5000, "", "NaN"])
def test_node_whose_capacity_cannot_be_read_fails_alone(example: Service, cpu: str) -> None:
    body = with_node(status={"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}})
    body["Nodes"]["items"].append(with_node()["Nodes"]["items"][0] | {"metadata": {"name": "good-node"}})  # type: ignore[index]

    answer = example.call("filter", body).json()

    assert [node["metadata"]["name"] for node in answer["Nodes"]["items"]] == ["good-node"]
    assert set(answer["FailedNodes"]) == {"fresh-node"}


@cases("cpu", ("no quantity", "10 GB"), ("out of all bounds", "1E+1000000"), ("negative", "-1"))
def test_a_request_that_is_no_quantity_is_an_error_that_names_the_field(example: Service, cpu: str) -> None:
    body = asking(pod_with_requests(cpu=cpu))

    answer = example.call("filter", body)

    assert answer.status_code == 200
    assert "spec.containers[0].resources.requests[cpu]" in answer.json()["Error"]
    assert answer.json()["NodeNames"] is None
    assert example.call("prioritize", body).json() == [{"Host": "node-a1", "Score": 0}]


@cases(
    "requirement",
    ("operator", {"key": "disk", "operator": "Near", "values": ["ssd"]}),
    ("value of Gt", {"key": "disk", "operator": "Gt", "values": ["many"]}),
)
def test_unreadable_node_affinity_term_matches_nothing(example: Service, requirement: object) -> None:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    }
    pod = pod_with(lambda pod: pod["spec"].update(affinity={"nodeAffinity": affinity}))

    answer = example.call("filter", asking(pod))

    assert answer.status_code == 200
    assert answer.json()["FailedAndUnresolvableNodes"] == {
        "node-a1": "node(s) didn't match Pod's node affinity/selector"
    }


def test_unreadable_pod_affinity_selector_fails_all_nodes(example: Service) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    pod = pod_with(
        lambda pod: pod["spec"].update(
            affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        )
    )

    answer = example.call("filter", asking(pod, NodeNames=["node-a1", "node-b1"])).json()

    assert set(answer["FailedAndUnresolvableNodes"]) == {"node-a1", "node-b1"}


def test_unreadable_spread_selector_is_an_error(example: Service) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    pod = pod_with(lambda pod: pod["spec"].update(topologySpreadConstraints=[constraint]))

    answer = example.call("filter", asking(pod))

    assert answer.status_code == 200
    assert answer.json()["Error"]


@cases(
    "metadata",
    ("label value of 64 characters", {"labels": {"a": "v" * 64}}),
    ("1,000 labels", {"labels": {f"l{n}": "v" for n in range(1_000)}}),
    ("annotations of 300 KB", {"annotations": {"a": "v" * 300_000}}),
    ("label value of all sorts", {"labels": {"a": "\u202e🙂\x00\r\n\x1b[31m"}}),
)
def test_metadata_that_the_api_server_would_refuse_is_accepted(example: Service, metadata: dict[str, object]) -> None:
    answer = example.call("filter", asking(pod_with(lambda pod: pod["metadata"].update(metadata))))

    assert (answer.status_code, answer.json()["NodeNames"]) == (200, ["node-a1"])


@cases(
    "labels",
    ("label value of a megabyte", {"a": "v" * 10**6}),
    ("10,000 labels", {f"l{n}": "v" for n in range(10_000)}),
)
def test_pod_with_too_many_bytes_of_labels_fits_nowhere(example: Service, labels: dict[str, str]) -> None:
    answer = example.call("filter", asking(pod_with(lambda pod: pod["metadata"].update(labels=labels))))

    assert (answer.status_code, answer.json()["NodeNames"]) == (200, [])
    assert "scheduling demands have" in str(answer.json())


@cases(
    "change",
    ("being deleted", lambda pod: pod["metadata"].update(deletionTimestamp="2026-03-01T00:00:00Z")),
    ("bound", lambda pod: pod["spec"].update(nodeName="node-a1")),
    ("gated", lambda pod: pod["spec"].update(schedulingGates=[{"name": "example.com/wait"}])),
    ("other scheduler", lambda pod: pod["spec"].update(schedulerName="other-scheduler")),
    ("running", lambda pod: pod.update(status={"phase": "Running"})),
)
def test_pod_that_needs_no_node_is_answered_all_the_same(
    example: Service, change: Callable[[dict[str, Any]], object]
) -> None:
    answer = example.call("filter", asking(pod_with(change)))

    assert (answer.status_code, answer.json()["Error"], answer.json()["NodeNames"]) == (200, "", ["node-a1"])


@pytest.mark.parametrize(
    "text",
    [b"1" * 5000, b"0." + b"1" * 5000, b"1" * 1_000_000, b'"' + b"x" * 2**22 + b'"'],
    ids=["5,000 digits", "5,000 decimals", "a million digits", "a string of 4 MiB"],
)
def test_long_values_that_decide_nothing_are_passed_over(example: Service, text: bytes) -> None:
    node = (
        b'{"metadata":{"name":"fresh-node"},"spec":{"x":' + text[: 2**21] + (b'"' if text[:1] == b'"' else b"") + b"}}"
    )
    pod = b'{"metadata":{"name":"p"},"x":' + text + b"}"

    assert example.call("filter", b'{"Pod":' + pod + b',"NodeNames":["node-a1"]}').status_code == 200
    assert example.call("filter", b'{"Pod":' + pod + b',"Nodes":{"items":[' + node + b"]}}").status_code == 200


def test_fifteen_thousand_names_and_a_large_pod_are_answered(example: Service) -> None:
    names = [f"node-{number:05d}" for number in range(15_000)]
    pod = pod_with(lambda pod: pod["metadata"].update(annotations={"a": "v" * 1_500_000}))

    answer = example.call("filter", asking(pod, NodeNames=names))

    assert (answer.status_code, len(answer.json()["FailedNodes"])) == (200, 15_000)


@cases(
    "body",
    ("small", {"pod": POD, "nodenames": ["node-a1"]}),
    ("mixed", {"POD": POD, "NODES": None, "nodeNames": ["node-a1"]}),
    ("unknown members", {"Pod": POD, "NodeNames": ["node-a1"], "FromANewerScheduler": {"x": [1]}}),
)
def test_members_are_known_in_any_case_and_others_ignored(example: Service, body: object) -> None:
    assert example.call("filter", body).json()["NodeNames"] == ["node-a1"]


def test_nodes_in_full_are_known_in_any_case(example: Service) -> None:
    (node,) = with_node()["Nodes"]["items"]  # type: ignore[index]

    answer = example.call("filter", {"pod": POD, "nodes": {"Items": [node]}}).json()

    assert answer["Nodes"]["items"] == [node]
