"""The JSON Schema of the extender protocol: what kube-scheduler sends and what we answer is valid by it, and mistakes
are not.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.kit.service import Service
from tools.generate_openapi import SCHEMA_FILE, schema_text

SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())
TYPE_OF = {
    "filter": "ExtenderArgs",
    "prioritize": "ExtenderArgs",
    "preempt": "ExtenderPreemptionArgs",
    "bind": "ExtenderBindingArgs",
}
ANSWER_TO = {"filter": "ExtenderFilterResult", "prioritize": "HostPriorityList", "preempt": "ExtenderPreemptionResult"}
RECORDED = Path(__file__).parent / "data" / "kube-scheduler-1.36.jsonl.gz"


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})


def test_the_file_is_current() -> None:
    assert schema_text(Path("openapi.json").read_text()) == SCHEMA_FILE.read_text(), "run `make generated`"


def test_the_service_has_it_at_an_address(example: Service) -> None:
    assert example.client.get("/schemas/extender/v1").json() == SCHEMA


def test_all_recorded_requests_of_a_kube_scheduler_are_valid() -> None:
    validators = {verb: validator(name) for verb, name in TYPE_OF.items()}
    with gzip.open(RECORDED, "rt") as lines:
        requests = [json.loads(line) for line in lines]
    assert {request["verb"] for request in requests} >= {"filter", "prioritize", "preempt"}
    assert [request["seq"] for request in requests if not validators[request["verb"]].is_valid(request["body"])] == []


@pytest.mark.parametrize("verb", sorted(ANSWER_TO))
def test_our_answers_to_them_are_valid(example: Service, verb: str) -> None:
    with gzip.open(RECORDED, "rt") as lines:
        requests = [request for request in map(json.loads, lines) if request["verb"] == verb][:20]
    for request in requests:
        answer = example.client.post(f"/extender/{verb}", json=request["body"])
        assert answer.status_code == 200
        validator(ANSWER_TO[verb]).validate(answer.json())


@pytest.mark.parametrize("nobody", [{"Pods": []}, {"Pods": None}, {"NumPDBViolations": 0}, {}], ids=str)
def test_a_node_may_be_without_victims(nobody: object) -> None:
    pod = {"metadata": {"name": "p"}}

    assert validator("ExtenderPreemptionArgs").is_valid({"Pod": pod, "NodeNameToMetaVictims": {"n": nobody}})
    assert validator("ExtenderPreemptionArgs").is_valid({"Pod": pod, "NodeNameToVictims": {"n": nobody}})
    assert validator("ExtenderPreemptionResult").is_valid({"NodeNameToMetaVictims": {"n": nobody}})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ExtenderArgs", {"Nodes": None}),
        ("ExtenderArgs", {"Pod": {"metadata": {"name": "p"}}, "NodeNames": "n"}),
        ("ExtenderFilterResult", {"FailedNodes": ["n"]}),
        ("HostPriorityList", [{"Host": "n", "Score": "10"}]),
        ("ExtenderPreemptionResult", {"NodeNameToMetaVictims": {"n": {"Pods": ["uid"]}}}),
        ("ExtenderBindingArgs", {"PodName": "p"}),
    ],
    ids=[
        "no pod",
        "names no list",
        "reasons no map",
        "a score as text",
        "victims as texts",
        "a binding without a node",
    ],
)
def test_mistakes_are_found(name: str, wrong: object) -> None:
    assert not validator(name).is_valid(wrong)
