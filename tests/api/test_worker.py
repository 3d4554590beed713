"""What-if, plan, capacity and evaluation are worked on in a child process, which is bounded in time and memory and ends
with its caller.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.answers.questions import Questions
from tests.api.gated_plugin import CONFIGURATION, GATE, installed
from tests.api.test_hang_up import NODE, caller_with, is_at_rest, is_left_alone, pod
from tests.extender.values.concurrency.test_child_process import children
from tests.kit.objects import state_file
from tests.kit.service import Service, assert_is_refusal, serving
from tests.kit.waiting import until

MIB = 2**20


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("worker") / "cluster.json"
    return state_file(file, NODE)


@contextmanager
def gated(state: Path, folder: Path, **settings: Any) -> Iterator[Service]:
    with installed(folder) as config, serving(state=state, config=config, **settings) as running:
        until(lambda: running.client.get("/readyz").status_code == 200)
        yield running


@pytest.fixture(scope="module")
def service(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with gated(state, tmp_path_factory.mktemp("plugin")) as running:
        yield running


SCENARIO = {"pod": pod(), "objects": {"nodes": [NODE]}, "config": yaml.safe_load(CONFIGURATION)}
QUESTIONS = [
    ("/v1/evaluate", SCENARIO),
    ("/v1/whatif", {"create": [pod()]}),
    ("/v1/capacity", pod()),
    ("/v1/plan", {"create": [pod()]}),
]


@pytest.mark.parametrize(("path", "question"), QUESTIONS)
def test_child_ends_when_its_caller_hangs_up(service: Service, path: str, question: object) -> None:
    before = children()
    with GATE.closed():
        caller = caller_with(service.port, path, json.dumps(question).encode())
        GATE.wait_for_somebody()
        working = children() - before
        caller.close()
        until(lambda: is_left_alone(service) and is_at_rest(service))

        assert len(working) == 1
        assert not children() & working


def test_other_questions_do_not_wait_for_a_simulation(service: Service) -> None:
    with GATE.closed():
        caller = caller_with(service.port, "/v1/evaluate", json.dumps(SCENARIO).encode())
        GATE.wait_for_somebody()

        assert service.client.get("/v1/explain/default/nobody").status_code == 404
        caller.close()
    until(lambda: is_at_rest(service))


def test_answer_that_takes_too_long_is_refused_in_words(state: Path, tmp_path: Path) -> None:
    before = children()
    with gated(state, tmp_path, question_seconds=0.5) as hurried:
        with GATE.closed():
            refused = [hurried.post(path, question) for path, question in QUESTIONS]
        answered = hurried.post("/v1/whatif", {"create": [pod()]})

    for answer in refused:
        assert_is_refusal(answer, 503)
        assert answer.json()["message"] == "no answer within 0.5 s: ask about less"
    assert answered.status_code == 200
    assert children() <= before


def test_answer_that_takes_too_much_memory_is_refused_in_words(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(state=state, question_memory=64 * MIB) as limited:
        until(lambda: limited.client.get("/readyz").status_code == 200)
        with monkeypatch.context() as patch:
            patch.setattr(Questions, "what_if", lambda questions, request: bytes(256 * MIB))
            refused = limited.post("/v1/whatif", {"create": [pod()]})
        answered = limited.post("/v1/whatif", {"create": [pod()]})

    assert_is_refusal(refused, 413)
    assert refused.json()["message"] == "the answer takes more than 64 MiB of memory: ask about less"
    assert answered.status_code == 200


def test_answer_of_a_child_that_is_killed_is_refused_in_words(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(state=state) as service:
        until(lambda: service.client.get("/readyz").status_code == 200)
        monkeypatch.setattr(Questions, "what_if", lambda questions, request: os.kill(os.getpid(), signal.SIGKILL))
        refused = service.post("/v1/whatif", {})

    assert_is_refusal(refused, 413)
    assert "ended with -9, perhaps out of memory" in refused.json()["message"]
