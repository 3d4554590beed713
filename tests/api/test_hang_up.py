"""Callers who hang up: over sockets, with questions that stand at a gate until their callers have gone."""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.requests import Request
from starlette.types import Message

from api.documents.documentation import BINDING, BY_NAME, IN_FULL, VICTIMS_BY_UID
from api.service_state import ServiceState, UntilHangUp
from extender.values import limits
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.filtering import FilterResult
from extender.verbs.verbs import VerbError
from tests.api.fake_engines import FailingEngine, GateEngine
from tests.api.gated_plugin import GATE, installed
from tests.api.raw_http import Connection, connected, head
from tests.api.test_questions import deployment
from tests.kit import objects
from tests.kit.objects import node, state_file
from tests.kit.service import Service, serving
from tests.kit.waiting import DEADLINE, until

NUM_PODS = 5000
"""Each of which is a step of its own. Whoever is not stopped takes them all."""

NODE = node("n", "1000000", pods="1000000")
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}
"""Makes a difference to where others go, so that copies have to be placed one by one."""


def pod(**spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "default", "labels": {"app": "web"}}
    return objects.pod("p", metadata=metadata, schedulerName="default-scheduler", **spec)


def replicas(count: int) -> dict[str, Any]:
    return deployment("web", pod(**SPREAD)["spec"], count, namespace="default")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("hang-up") / "cluster.json"
    nodes = [NODE, node("m", "1000000", pods="1000000")]
    gated = pod(**SPREAD, schedulingGates=[{"name": "later"}])
    return state_file(file, objects.obj("Namespace", name="default"), *nodes, gated)


@pytest.fixture(scope="module")
def service(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with installed(tmp_path_factory.mktemp("plugin")) as config, serving(state=state, config=config) as running:
        until(lambda: running.client.get("/readyz").status_code == 200)
        yield running


@pytest.fixture(autouse=True)
def nothing_is_complained_about(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Neither in the log, nor by what is thrown away."""
    yield
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.records]
    assert [record.getMessage() for record in records if record.levelno >= logging.WARNING] == []


def state_of(service: Service) -> ServiceState:
    state: ServiceState = service.server.config.app.state.service  # type: ignore[union-attr]
    return state


def is_at_rest(service: Service) -> bool:
    return not (service.server.server_state.tasks or state_of(service).worker.taken)


def is_left_alone(service: Service) -> bool:
    """Nobody is connected but the client of the tests, which has asked before."""
    return service.connections() == 1


def threads_that_answer() -> list[str]:
    """Where those threads are that work on what people have asked."""
    stacks = (traceback.extract_stack(frame) for frame in sys._current_frames().values())
    return [str(stack) for stack in stacks if any("/extender/answers/" in entry.filename for entry in stack)]


def caller_with(port: int, path: str, body: bytes = b"", method: str = "POST") -> Connection:
    connection = Connection(port)
    connection.send(head(path, method=method, Content_Length=len(body)) + body)
    return connection


LONG = [
    pytest.param("POST", "/v1/whatif", {"create": [replicas(NUM_PODS)]}, id="what if", marks=pytest.mark.slow),
    pytest.param(
        "POST",
        "/ui/what-if",
        {"manifest": json.dumps(replicas(NUM_PODS))},
        id="the page's what if",
        marks=pytest.mark.slow,
    ),
    pytest.param("POST", f"/v1/capacity?limit={NUM_PODS}", pod(**SPREAD), id="how many of it fit"),
    pytest.param("GET", f"/v1/capacity?limit={NUM_PODS}&pod=default/p", None, id="how many more fit"),
]


@pytest.mark.parametrize(("method", "path", "question"), LONG)
def test_a_question_that_was_given_up_makes_room_for_the_next(
    service: Service, method: str, path: str, question: object
) -> None:
    body = b"" if question is None else json.dumps(question).encode()
    with GATE.closed():
        connection = caller_with(service.port, path, body, method)
        GATE.wait_for_somebody()
        connection.close()
        until(lambda: is_left_alone(service))
    until(lambda: is_at_rest(service))
    steps, busy = GATE.calls, threads_that_answer()

    answer = service.post("/v1/whatif", {"create": [pod()]})

    assert steps < NUM_PODS
    assert busy == []
    assert (answer.status_code, answer.json()["unplaced"]) == (200, 0)


def test_reset_of_a_connection_with_an_unread_answer_is_no_error(service: Service) -> None:
    with ExitStack() as callers:
        for _ in range(10):
            caller = callers.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.connect(("127.0.0.1", service.port))
            caller.sendall(head("/openapi.json", method="GET") * limits.REQUESTS_WAITING)
        until(lambda: len(service.server.server_state.tasks) == 10)  # each waits for its reader
    until(lambda: is_left_alone(service) and is_at_rest(service))


def test_queued_callers_who_hang_up_are_forgotten(service: Service) -> None:
    body = json.dumps(pod(**SPREAD)).encode()
    with GATE.closed():
        callers = [
            caller_with(service.port, f"/v1/capacity?limit={NUM_PODS}", body)
            for _ in range(limits.QUESTIONS_AT_ONE_TIME)
        ]
        until(lambda: state_of(service).worker.taken.total() == limits.QUESTIONS_AT_ONE_TIME)
        refused = service.post("/v1/capacity", pod())
        for caller in callers[1:]:
            caller.close()
        until(lambda: state_of(service).worker.taken.total() == 1)
        callers[0].close()
        until(lambda: is_left_alone(service))
    until(lambda: is_at_rest(service))

    assert refused.status_code == 503
    assert GATE.calls < NUM_PODS
    assert service.post("/v1/capacity?limit=5", pod()).json()["fits"] == 5


def test_an_evaluation_that_was_given_up_makes_room_for_the_next() -> None:
    with GateEngine.closed() as engine, serving(lambda _: engine) as service:
        caller = caller_with(service.port, "/v1/evaluate", b"{}")
        engine.wait_for_callers(1)
        caller.close()
        with connected(service.port) as next_one:
            next_one.send(head("/v1/evaluate", Content_Length=2) + b"{}")
            engine.wait_for_callers(1)  # there is one place to evaluate, and the gate is still closed
            engine.open()

            assert next_one.answer().status == 200


async def test_an_error_in_the_moment_of_a_hang_up_stays_that_error() -> None:
    """The hang-up is heard while the block ends; nothing but the error comes out of it."""
    came: asyncio.Queue[Message] = asyncio.Queue()
    came.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    request = Request({"type": "http", "method": "POST", "headers": []}, came.get)

    with pytest.raises(LookupError, match="no such node"):
        async with UntilHangUp(request):
            for _ in range(3):
                await asyncio.sleep(0)
            came.put_nowait({"type": "http.disconnect"})
            await asyncio.sleep(0)
            raise LookupError("no such node")


def test_half_closed_connection_counts_as_a_hang_up() -> None:
    with GateEngine.closed() as engine, serving(lambda _: engine) as service:
        caller = caller_with(service.port, "/v1/evaluate", b"{}")
        engine.wait_for_callers(1)
        caller.socket.shutdown(socket.SHUT_WR)
        until(lambda: is_at_rest(service))
        engine.open()

        assert caller.is_closed()
        caller.close()


def test_questions_share_a_connection_one_after_the_other_and_one_behind_the_other(service: Service) -> None:
    body = json.dumps(pod()).encode()
    asks = [head(f"/v1/capacity?limit={limit}", Content_Length=len(body)) + body for limit in range(1, 7)]
    with connected(service.port) as connection:
        fits = []
        for question in asks[:3]:
            connection.send(question)
            fits.append(connection.answer().json()["fits"])
        connection.send(b"".join(asks[3:]))
        fits += [connection.answer().json()["fits"] for _ in asks[3:]]

    assert fits == [1, 2, 3, 4, 5, 6]


def test_hang_up_with_a_second_request_queued_is_noticed_after_the_first_answer() -> None:
    with GateEngine.closed() as engine, serving(lambda _: engine) as service:
        caller = caller_with(service.port, "/v1/evaluate", b"{}")
        engine.wait_for_callers(1)
        caller.send(head("/v1/evaluate", Content_Length=2) + b"{}")
        caller.close()
        engine.open()

        until(lambda: is_at_rest(service) and not service.connections())


class SlowBinder(FailingEngine):
    """Its bindings wait until the gate opens."""

    def __init__(self) -> None:
        super().__init__(VerbError("nothing"))
        self.gate = GateEngine()
        self.bound: list[str] = []

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        await self.gate.evaluate({})
        self.bound.append(node)


class SlowVerbs(FailingEngine):
    """Its filter waits until the gate opens."""

    def __init__(self) -> None:
        super().__init__(VerbError("nothing"))
        self.gate = GateEngine()
        self.ended: list[str] = []

    async def filter(self, pod: Pod, **_: object) -> FilterResult:
        try:
            await self.gate.evaluate({})
        except asyncio.CancelledError:
            self.ended.append(pod.name)
            raise
        raise VerbError("late")

    async def prioritize(self, pod: Pod, **_: object) -> list[int]:
        await self.filter(pod)
        return []

    async def preempt(self, pod: Pod, candidates: object, **_: object) -> dict[str, MetaVictims]:
        await self.filter(pod)
        return {}


@pytest.mark.parametrize(("verb", "call"), [("filter", BY_NAME), ("prioritize", IN_FULL), ("preempt", VICTIMS_BY_UID)])
def test_a_call_whose_caller_has_gone_while_it_waits_is_let_go(verb: str, call: dict[str, Any]) -> None:
    engine = SlowVerbs()
    with serving(lambda _: engine) as service, ExitStack() as stack:
        stack.callback(engine.gate.open)
        caller = Connection(service.port)
        body = json.dumps(call).encode()
        caller.send(head(f"/extender/{verb}", Content_Length=len(body)) + body)
        engine.gate.wait_for_callers(1)
        caller.close()
        until(lambda: not service.server.server_state.tasks)

        assert engine.ended == [call["Pod"]["metadata"]["name"]]


def test_a_binding_whose_caller_has_gone_is_not_cut_short() -> None:
    engine = SlowBinder()
    with serving(lambda _: engine, serve_bind=True) as service, ExitStack() as stack:
        stack.callback(engine.gate.open)
        caller = caller_with(service.port, "/extender/bind", json.dumps(BINDING).encode())
        engine.gate.wait_for_callers(1)
        caller.close()
        until(lambda: not service.connections())
        before = list(engine.bound)
        engine.gate.open()
        until(lambda: not service.server.server_state.tasks)

    assert (before, engine.bound) == ([], [BINDING["Node"]])


def test_streams_whose_pages_are_closed_make_room_for_others(service: Service) -> None:
    for _ in range(2):
        streams = [caller_with(service.port, "/v1/stream", method="GET") for _ in range(limits.STREAMS)]
        for stream in streams:
            assert stream._reader.readline() == b"HTTP/1.1 200 OK\r\n"
            while b"event: version" not in stream._reader.readline():
                pass
        with connected(service.port) as one_more:
            one_more.send(head("/v1/stream", method="GET"))
            assert one_more.answer().status == 503
        for stream in streams:
            stream.close()
        until(lambda: is_at_rest(service))


# Commands.


def reprieve(*arguments: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "api.cli", *arguments]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def interrupted(command: "subprocess.Popen[str]") -> tuple[int, str, str]:
    with command:
        command.send_signal(signal.SIGINT)
        output, complained = command.communicate(timeout=DEADLINE)
        return command.returncode, output, complained


@pytest.mark.parametrize(
    ("command", "asks"), [pytest.param("whatif", replicas(NUM_PODS), marks=pytest.mark.slow), ("fits", pod(**SPREAD))]
)
def test_a_command_that_is_interrupted_ends_and_so_does_its_question(
    service: Service, tmp_path: Path, command: str, asks: object
) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump(asks))
    limit = ["--limit", str(NUM_PODS)] if command == "fits" else []
    with GATE.closed():
        asking = reprieve(command, "-f", str(file), "--server", f"http://127.0.0.1:{service.port}", *limit)
        GATE.wait_for_somebody()

        assert interrupted(asking) == (130, "", "")
        until(lambda: is_left_alone(service))
    until(lambda: is_at_rest(service))
    assert GATE.calls < NUM_PODS


def test_a_command_that_answers_by_itself_ends_when_it_is_interrupted(state: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "asked.yaml"
    os.mkfifo(pipe)
    asking = reprieve("fits", "-f", str(pipe), "--dump", str(state), "--limit", "100000")
    pipe.write_text(json.dumps(pod(**SPREAD)))  # waits until it is read

    code, output, complained = interrupted(asking)

    assert (code, output) == (130, "")
    # Wherever it is by now. Between two lines of asyncio's it may say that something was never awaited.
    assert "Traceback" not in complained
