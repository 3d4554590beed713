"""POST /v1/evaluate answers as the corpus of recorded decisions does, and says in words what is wrong with a
scenario.
"""

from typing import Any

import pytest

from api.documents.documentation import POD, SCENARIO
from extender.values import limits
from tests.kit.service import Service, assert_is_refusal
from tests.kit.tables import cases
from tests.parity.cases import decision_cases
from tests.parity.compare import differences

CASES = decision_cases("nodename")[:10]
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.parametrize("case", CASES, ids=[case["scenario"]["id"] for case in CASES])
def test_answers_are_the_recorded_ones(example: Service, case: dict[str, Any]) -> None:
    answer = example.post("/v1/evaluate", case["scenario"])

    assert answer.status_code == 200
    assert answer.json()["id"] == case["scenario"]["id"]
    assert differences(case["expected"], answer.json())["filter"] == []


def test_the_service_s_own_cluster_has_nothing_to_do_with_it(example: Service) -> None:
    answer = example.post("/v1/evaluate", {"pod": POD}).json()

    assert answer["error"] == "no nodes available to schedule pods"
    assert "id" not in answer


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'{"pod":NaN}', b'{"pod":' + b"[" * 100 + b"]" * 100 + b"}"]
)
def test_malformed_body_is_a_bad_request(example: Service, body: bytes) -> None:
    assert_is_refusal(example.post("/v1/evaluate", body), 400)


@cases(
    "change, why",
    ("no pod", {"pod": None}, "pod"),
    ("pod is a number", {"pod": 7}, "pod"),
    ("unknown kind", {"objects": {"cows": []}}, "cows"),
    ("nodes are an object", {"objects": {"nodes": {}}}, "objects.nodes"),
    ("a field of the wrong type", {"objects": {"nodes": [{"spec": {"taints": 1}}]}}, "objects.nodes[0]"),
    ("empty configuration", {"config": {}}, "apiVersion and kind"),
    ("wrong value", {"config": CONFIG | {"parallelism": 0}}, "parallelism"),
    ("unknown field", {"config": CONFIG | {"colour": "red"}}, "colour"),
    ("nomination without node", {"nominated": [{"pod": POD}]}, "nominated[0]"),
)
def test_invalid_scenario_is_refused_with_the_reason(example: Service, change: dict[str, object], why: str) -> None:
    answer = example.post("/v1/evaluate", SCENARIO | change)

    assert_is_refusal(answer, 422)
    assert why in answer.json()["message"]


def test_a_scenario_has_its_own_limit(example: Service) -> None:
    assert_is_refusal(example.post("/v1/evaluate", b" " * (limits.QUESTION_BYTES + 1)), 413)


@pytest.mark.parametrize(
    "body",
    [b'{"pod":{},"objects":{"nodes":[' + b"1," * 4_200_000 + b"1]}}", b'{"pod":[' + b"[]," * 4_200_000 + b"[]]}"],
    ids=["numbers", "lists"],
)
def test_scenario_of_too_many_values_is_refused(example: Service, body: bytes) -> None:
    assert_is_refusal(example.post("/v1/evaluate", body), 413)
