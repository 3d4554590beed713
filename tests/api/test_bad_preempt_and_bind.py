"""Whatever preempt and bind are sent has one clear answer."""

import threading
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import yaml

from api.documents.documentation import BINDING, POD
from api.settings.settings import EXAMPLE_CLUSTER
from tests.kit.service import Service, assert_is_refusal, serving
from tests.kit.tables import cases

CLUSTER = yaml.safe_load(EXAMPLE_CLUSTER.read_text())["items"]
PODS = {item["metadata"]["name"]: item for item in CLUSTER if item["kind"] == "Pod"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def uid(name: str) -> str:
    return str(PODS[name]["metadata"]["uid"])


def victims(*names: str, violations: object = 0) -> dict[str, object]:
    return {"Pods": [{"UID": uid(name)} for name in names], "NumPDBViolations": violations}


def asking(by_uid: object = None, in_full: object = None, pod: object = POD) -> dict[str, object]:
    return {"Pod": pod, "NodeNameToVictims": in_full, "NodeNameToMetaVictims": by_uid}


GOOD = {"node-a2": victims("report-00", "report-01")}


def chosen(service: Service, body: object) -> dict[str, Any]:
    answer = service.call("preempt", body)
    assert answer.status_code == 200, answer.text
    by_node: dict[str, Any] = answer.json()["NodeNameToMetaVictims"]
    return by_node


WRONG = {
    "not JSON": b"{",
    "null": b"null",
    "array": b"[]",
    "different nodes": asking(GOOD, {"node-a3": {"Pods": [PODS["report-02"]]}}),
    "one pod on two nodes": asking({**GOOD, "node-a3": victims("report-00")}),
    "negative number of violations": asking({"node-a2": victims("report-00", violations=-1)}),
    "fraction of violations": asking({"node-a2": victims("report-00", violations=1.5)}),
    "too many violations": asking({"node-a2": victims("report-00", violations=2**63)}),
    "violations as a string": asking({"node-a2": victims("report-00", violations="3")}),
    "violations as a boolean": asking({"node-a2": victims("report-00", violations=True)}),
    "no pod": asking(GOOD, pod=None),
    "pod without name": asking(GOOD, pod={"metadata": {}}),
    "node name": asking({"../x": victims("report-00")}),
    "nodes are a list": asking([]),
    "victims are a list": asking({"node-a2": []}),
    "pods are an object": asking({"node-a2": {"Pods": {}}}),
    "a victim is a string": asking({"node-a2": {"Pods": ["x"]}}),
    "a UID is a number": asking({"node-a2": {"Pods": [{"UID": 1}]}}),
    "deep": b'{"Pod":{"metadata":{"name":"p"}},"NodeNameToMetaVictims":{"n":{"x":' + b"[" * 1001 + b"]" * 1001 + b"}}}",
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_unreadable_preempt_call_is_a_bad_request(example: Service, body: object) -> None:
    assert_is_refusal(example.call("preempt", body), 400)


@pytest.mark.parametrize(
    "body", [asking(), {"Pod": POD}, asking({}), asking(in_full={})], ids=["nulls", "absent", "by UID", "in full"]
)
def test_preempt_without_candidates_answers_an_empty_map(example: Service, body: object) -> None:
    assert example.call("preempt", body).content == b'{"NodeNameToMetaVictims":{}}'


SMALL = {**POD, "spec": {**POD["spec"], "containers": [{"name": "main", "image": "small:1"}]}}
IN_FULL = {"node-a2": {"Pods": [PODS["report-00"], PODS["report-01"]], "NumPDBViolations": 0}}


def test_victims_by_uid_count_when_both_forms_are_given(example: Service) -> None:
    in_full = {"node-a2": {"Pods": [PODS["report-00"], PODS["report-01"]], "NumPDBViolations": 0}}

    assert chosen(example, asking(GOOD, in_full)) == chosen(example, asking(GOOD))


def test_victims_in_full_are_answered_by_uid(example: Service) -> None:
    in_full = {"node-a2": {"Pods": [PODS["report-00"], PODS["report-01"]], "NumPDBViolations": 0}}

    assert chosen(example, asking(in_full=in_full)) == chosen(example, asking(GOOD))
    assert chosen(example, asking(GOOD))["node-a2"]["Pods"]


@cases(
    "value",
    ("null node", None),
    ("null pod", {"Pods": [None]}),
    ("no UID", {"Pods": [{"UID": None}]}),
    ("UID absent", {"Pods": [{}]}),
    ("victim of the same priority", victims("db-0")),
    ("victim on another node", victims("report-03")),
)
def test_a_node_with_impossible_victims_is_left_out_and_others_are_answered(example: Service, value: object) -> None:
    answer = chosen(example, asking({"node-a3": value, **GOOD}))

    assert list(answer) == ["node-a2"]


@pytest.mark.parametrize("in_full", [False, True], ids=["by UID", "in full"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_victim_that_is_not_known_stays_named_once(example: Service, in_full: bool, times: int) -> None:
    """kube-scheduler has found it in its own snapshot, where it may be assumed."""
    stranger = {**PODS["report-00"], "metadata": {"name": "stranger", "namespace": "default", "uid": UNKNOWN}}
    victims = {"node-a3": {"Pods": times * [stranger if in_full else {"UID": UNKNOWN}], "NumPDBViolations": 0}}

    answer = chosen(example, asking(in_full=victims, pod=SMALL) if in_full else asking(victims, pod=SMALL))

    assert answer == {"node-a3": {"Pods": [{"UID": UNKNOWN}], "NumPDBViolations": 0}}


@pytest.mark.parametrize(
    "pod",
    [{"metadata": {"uid": UNKNOWN}}, {"metadata": {"uid": UNKNOWN, "name": "?"}}, {"metadata": {"uid": UNKNOWN, "name": "p"}, "spec": 1}],
    ids=["no name", "an impossible name", "no spec"],
)  # fmt: skip
def test_a_victim_in_full_that_is_no_pod_stays_named(example: Service, pod: object) -> None:
    answer = chosen(example, asking(in_full={"node-a3": {"Pods": [pod]}, **IN_FULL}, pod=SMALL))

    assert answer["node-a3"]["Pods"] == [{"UID": UNKNOWN}]
    assert answer["node-a2"]["Pods"]


def test_victim_that_is_named_twice_counts_once(example: Service) -> None:
    twice = {"node-a2": victims("report-00", "report-01", "report-00")}

    assert chosen(example, asking(twice)) == chosen(example, asking(GOOD))


def test_unknown_node_is_left_out_of_preempt(example: Service) -> None:
    assert chosen(example, asking({"new-node": {"Pods": [{"UID": UNKNOWN}]}})) == {}


def test_pod_that_must_not_preempt_gets_no_victims(example: Service) -> None:
    pod = deepcopy(POD)
    pod["spec"]["preemptionPolicy"] = "Never"

    assert chosen(example, asking(GOOD, pod=pod)) == {}


def test_number_of_violations_is_counted_anew(example: Service) -> None:
    answer = chosen(example, asking({"node-a2": victims("report-00", "report-01", violations=17)}))

    assert answer["node-a2"]["NumPDBViolations"] == 0


def test_added_victims_are_pods_of_lower_priority_on_that_node(example: Service) -> None:
    answer = chosen(example, asking({"node-a2": {"Pods": [], "NumPDBViolations": 0}}))

    added = {entry["UID"] for entry in answer["node-a2"]["Pods"]}
    possible = {
        pod["metadata"]["uid"]
        for pod in PODS.values()
        if pod["spec"].get("nodeName") == "node-a2" and pod["spec"]["priority"] < 1000
    }
    assert added
    assert added <= possible


def test_node_with_room_is_passed_on_without_victims(example: Service) -> None:
    room = {"node-a1": {"Pods": [], "NumPDBViolations": 0}}

    assert chosen(example, asking(room)) == room


NOBODY: list[dict[str, object]] = [
    {"Pods": [], "NumPDBViolations": 0}, {"Pods": None, "NumPDBViolations": 0}, {"Pods": None}, {"NumPDBViolations": 3},
    {"pods": None}, {},
]  # fmt: skip


@pytest.mark.parametrize("nobody", NOBODY, ids=str)
@pytest.mark.parametrize("form", ["by_uid", "in_full"])
def test_no_victims_are_the_same_however_they_are_written(example: Service, form: str, nobody: object) -> None:
    small = deepcopy(POD)
    small["spec"]["containers"] = [{"name": "c", "image": "registry.example/small:1"}]

    added = chosen(example, asking(**{form: {"node-a2": nobody}}))
    passed_on = chosen(example, asking(**{form: {"node-a2": nobody}}, pod=small))

    assert added == chosen(example, asking({"node-a2": {"Pods": []}}))
    assert added["node-a2"]["Pods"]
    assert passed_on == {"node-a2": {"Pods": [], "NumPDBViolations": 0}}


def test_members_of_victims_are_known_in_any_case(example: Service) -> None:
    (node,) = GOOD
    by_uid = {node: {"pods": [{"uid": uid("report-00")}, {"Uid": uid("report-01")}], "numpdbviolations": 0}}

    assert chosen(example, {"pod": POD, "nodeNameToMetaVictims": by_uid}) == chosen(example, asking(GOOD))


BAD_BINDINGS: dict[str, object] = {
    "not JSON": b"{",
    "null": b"null",
    "no UID": {key: value for key, value in BINDING.items() if key != "PodUID"},
    "null UID": BINDING | {"PodUID": None},
    "empty UID": BINDING | {"PodUID": ""},
    "no name": BINDING | {"PodName": None},
    "no namespace": BINDING | {"PodNamespace": ""},
    "no node": BINDING | {"Node": ""},
    "UID is a number": BINDING | {"PodUID": 7},
    "name climbs": BINDING | {"PodName": "../secrets"},
    "name with query": BINDING | {"PodName": "p?x"},
    "name with fragment": BINDING | {"PodName": "p#x"},
    "name with escaped slash": BINDING | {"PodName": "p%2fx"},
    "name with line feed": BINDING | {"PodName": "p\nx"},
    "name of 254 characters": BINDING | {"PodName": "p" * 254},
    "namespace climbs": BINDING | {"PodNamespace": "../x"},
    "namespace with dot": BINDING | {"PodNamespace": "a.b"},
    "namespace of 64 characters": BINDING | {"PodNamespace": "n" * 64},
    "node climbs": BINDING | {"Node": "../x"},
    "UID with slash": BINDING | {"PodUID": "a/b"},
    "UID of 129 characters": BINDING | {"PodUID": "a" * 129},
}


@pytest.mark.parametrize("body", BAD_BINDINGS.values(), ids=BAD_BINDINGS)
def test_unreadable_binding_is_a_bad_request(example: Service, body: object) -> None:
    assert_is_refusal(example.call("bind", body), 400)


@cases(
    "change",
    ("the pod is unknown", {}),
    ("another UID", {"PodName": "web-6", "PodUID": UNKNOWN}),
    ("bound elsewhere", {"PodName": "web-0", "PodUID": uid("web-0"), "Node": "node-b1"}),
    ("the node is unknown", {"PodName": "web-6", "PodUID": uid("web-6"), "Node": "new-node"}),
)
def test_refused_binding_answers_with_an_error_in_words(example: Service, change: dict[str, str]) -> None:
    answer = example.call("bind", BINDING | change)

    assert answer.status_code == 200
    assert list(answer.json()) == ["Error"]
    assert len(answer.json()["Error"]) > 20


def test_two_equal_bindings_at_once_get_the_same_answer(example: Service) -> None:
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda: answers.append(example.call("bind", BINDING).content)) for _ in range(2)]
    run: Callable[[threading.Thread], None]
    for run in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            run(thread)

    assert len(answers) == 2
    assert answers[0] == answers[1]


def test_bind_is_served_only_where_it_was_asked_for() -> None:
    with serving(schedule=False) as service:
        answer = service.call("bind", BINDING)
        pod = service.client.get(f"/api/v1/namespaces/{BINDING['PodNamespace']}/pods/{BINDING['PodName']}")

    assert_is_refusal(answer, 404)
    assert "--serve-bind" in answer.json()["message"]
    assert "nodeName" not in pod.text
