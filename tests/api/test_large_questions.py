"""Large questions, which a child process answers: the same answers and refusals as those of small ones, and they end
with their callers.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from extender.engine.evaluation.memory_needs import is_large
from tests.api.gated_plugin import CONFIGURATION, GATE, installed
from tests.api.serving import Service, serving
from tests.api.test_hang_up import NODE, asked, is_at_rest, is_left_alone
from tests.extender.engine.evaluation.test_memory_needs import node, pod
from tests.extender.values.concurrency.test_child_process import children
from tests.kit.waiting import until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    state = tmp_path_factory.mktemp("large") / "cluster.json"
    state.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE]}))
    with installed(tmp_path_factory.mktemp("plugin")) as config, serving(state=state, config=config) as running:
        until(lambda: running.client.get("/readyz").status_code == 200)
        yield running


def scenario(**members: Any) -> dict[str, Any]:
    return {"pod": pod(0), "objects": {"nodes": [*map(node, range(3))]}, **members}


def small(question: object) -> bytes:
    body = json.dumps(question).encode()
    assert not is_large(body)
    return body


def large(question: object) -> bytes:
    """
    The same question, made large by white space.
    """
    body = json.dumps(question).encode() + b" " * 2**20
    assert is_large(body)
    return body


CREATED = {"apiVersion": "v1", "kind": "Pod", **pod(0)}


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("evaluate", scenario()),
        ("whatif", {"create": [CREATED]}),
        ("capacity", CREATED),
        ("plan", {"create": [CREATED]}),
    ],
)
def test_a_large_question_has_the_answer_of_a_small_one(service: Service, path: str, question: object) -> None:
    answers = [service.post(f"/v1/{path}", make(question)) for make in (small, large)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("members", "code", "words"),
    [
        ({"pod": {"spec": 1}}, 422, "Expected `object`"),
        ({"config": {"profiles": []}}, 422, "config: apiVersion and kind are required"),
        (
            {
                "config": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "parallelism": -1,
                }
            },
            422,
            "parallelism",
        ),
        ({"objects": {"nodes": [{"metadata": {"name": "n"}, "status": {"capacity": {"cpu": 10**40}}}]}}, 400, "number"),
    ],
)
def test_a_large_scenario_is_refused_in_the_words_for_a_small_one(
    service: Service, members: Any, code: int, words: str
) -> None:
    of_small, of_large = (service.post("/v1/evaluate", make(scenario(**members))) for make in (small, large))

    assert (of_large.status_code, of_large.json()) == (of_small.status_code, of_small.json())
    assert of_large.status_code == code
    assert words in of_large.json()["message"]


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2000,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod(0)["spec"]},
    },
}


@pytest.mark.parametrize("path", ["/v1/evaluate", "/v1/whatif"])
def test_the_child_ends_when_the_caller_hangs_up(service: Service, path: str) -> None:
    config = yaml.safe_load(CONFIGURATION)
    body = large(scenario(config=config)) if path == "/v1/evaluate" else small({"create": [DEPLOYMENT]})
    before = children()
    with GATE.closed():
        caller = asked(service.port, path, body)
        GATE.wait_for_somebody()
        working = children() - before
        caller.close()
        until(lambda: is_left_alone(service))
        until(lambda: is_at_rest(service))

        assert len(working) == 1
        assert not children() & working


def test_small_questions_do_not_wait_for_a_large_evaluation(service: Service) -> None:
    with GATE.closed():
        caller = asked(service.port, "/v1/evaluate", large(scenario(config=yaml.safe_load(CONFIGURATION))))
        GATE.wait_for_somebody()

        assert service.client.get("/v1/explain/default/nobody").status_code == 404
        caller.close()
    until(lambda: is_at_rest(service))


@pytest.fixture
def full_node(service: Service) -> str:
    """A node with more pods than are placed again in a thread."""
    full = {
        **NODE,
        "metadata": {"name": "full"},
        "status": {"allocatable": {"cpu": "100", "memory": "100Gi", "pods": "1000"}},
    }
    service.post("/api/v1/nodes", full).raise_for_status()
    owner = {"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": "web", "controller": True}
    for number in range(500):
        metadata = {"name": f"there-{number}", "ownerReferences": [owner]}
        body = {**CREATED, "metadata": metadata, "spec": {**pod(0)["spec"], "nodeName": "full"}}
        service.post("/api/v1/namespaces/default/pods", body).raise_for_status()
    return "full"


def test_a_short_question_about_much_is_a_large_one(service: Service, full_node: str) -> None:
    """
    So that the service goes on answering: its threads share one interpreter.
    """
    for question in (
        {"drainNodes": [full_node]},
        {"addNodes": [{"like": full_node, "count": 600}], "create": [CREATED]},
    ):
        before = children()
        with GATE.closed():
            caller = asked(service.port, "/v1/whatif", small(question))
            GATE.wait_for_somebody()
            working = children() - before
            caller.close()
            until(lambda: is_left_alone(service))
            until(
                lambda: is_at_rest(service)
            )  # before the gate opens: the child would be counted with those of the next question

        assert len(working) == 1, question
