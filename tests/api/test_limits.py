"""Size, type, time and number of requests are bounded, and every refusal is told before the connection closes."""

import asyncio
import json
import logging
import pickle
import resource
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from queue import Queue

import pytest
from starlette.types import Message, Receive, Scope, Send

from api.documents.documentation import BY_NAME
from api.serving.limits import RequestLimits
from api.settings.settings import Settings, read_settings
from extender.values import limits
from tests.api.fake_engines import GateEngine
from tests.api.raw_http import assert_refused, connected, head, post
from tests.kit.service import JSON, Service, assert_is_refusal, serving
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

FILTER = "/extender/filter"
PODS = "/api/v1/namespaces/default/pods"
CALL = json.dumps(BY_NAME).encode()
GIB, MIB = 2**30, 2**20


def test_a_bound_in_the_answer_of_a_worker_is_a_number() -> None:
    """As the most copies that a capacity counts is: without this its caller would get a 500."""
    answer = pickle.loads(pickle.dumps(limits.COPIES_COUNTED))

    assert (type(answer), answer) == (int, limits.COPIES_COUNTED)


def test_body_announced_as_too_large_is_refused_before_it_is_read(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head(FILTER, Content_Length=10**12))
        answer = connection.answer()

        assert_refused(answer, 413)
        assert answer.headers["connection"] == "close"
        assert connection.is_closed()


@cases(
    "encoding, body, code",
    ("a size that overflows", "chunked", b"ffffffffffffffffff\r\n", 400),
    ("a size that is no number", "chunked", b"5\r\n{}   \r\nx\r\n", 400),
    ("a chunk without an end", "chunked", b"2\r\n{}0\r\n\r\n", 400),
    ("another encoding beside it", "gzip, chunked", b"0\r\n\r\n", 501),
    ("another encoding", "identity", b"{}", 501),
    ("an unknown encoding", "x", b"", 501),
)
def test_body_that_cannot_be_read_is_refused_in_words(tight: Service, encoding: str, body: bytes, code: int) -> None:
    with connected(tight.port) as connection:
        connection.send(head(FILTER, Transfer_Encoding=encoding) + body)

        assert_refused(connection.answer(), code)
        assert connection.is_closed()


def test_answer_under_way_is_not_mixed_with_a_refusal_of_the_next_request(tight: Service) -> None:
    with connected(tight.port) as connection:
        connection.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" + head(FILTER, Transfer_Encoding="x"))

        assert connection.rest().count(b"HTTP/1.1 ") <= 1


def test_chunked_body_is_refused_once_it_is_too_large(tight: Service) -> None:
    with connected(tight.port) as connection:
        connection.send(head(FILTER, Transfer_Encoding="chunked"))
        for _ in range(11):
            connection.send(b"3e8\r\n" + b" " * 1000 + b"\r\n")
        answer = connection.answer()

    assert_refused(answer, 413)
    assert answer.headers["connection"] == "close"


@pytest.mark.slow
def test_next_call_is_answered_after_100_megabytes(example: Service) -> None:
    refused = example.call("filter", b" " * 10**8 + b"x")
    unreadable = example.call("filter", b'{"Pod":' + b"[" * 10**8)

    assert_is_refusal(refused, 400)
    assert_is_refusal(unreadable, 400)
    assert example.call("filter", BY_NAME).status_code == 200


def test_hundred_megabytes_of_tiny_values_are_refused(example: Service) -> None:
    body = b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[' + b"1," * (5 * 10**7) + b"1]}}"

    assert_is_refusal(example.call("filter", body), 413)


def test_client_that_keeps_sending_gets_the_refusal(tight: Service) -> None:
    assert_is_refusal(tight.call("filter", b" " * 3_000_000), 413)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip"])
def test_encoded_body_is_refused(example: Service, encoding: str) -> None:
    assert_refused(post(example.port, FILTER, b"\x1f\x8b" + bytes(100), Content_Encoding=encoding), 415)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None]
)
def test_another_content_type_is_refused(example: Service, content_type: str | None) -> None:
    assert_refused(post(example.port, FILTER, CALL, Content_Type=content_type), 415)


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON ;x=y"]
)
def test_json_is_accepted_however_it_is_spelt(example: Service, content_type: str) -> None:
    assert post(example.port, FILTER, CALL, Content_Type=content_type).status == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_another_method_is_refused(example: Service, method: str, verb: str) -> None:
    answer = example.client.request(method, f"/extender/{verb}")

    assert_is_refusal(answer, 405)
    assert answer.headers["allow"] == "POST"


def test_head_is_refused_without_a_body(example: Service) -> None:
    answer = example.client.head(FILTER)

    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


@pytest.mark.parametrize(
    "path",
    ["/filter", "/extender", "/extender/", "/extender/filter/", "//extender/filter", "/extender//filter", "/extender/%2e%2e/filter",
     "/extender/../filter", "/extender/Filter", "/extender/filter%00", "/extender/filter%2f", "/redoc", "/nope"],
)  # fmt: skip
def test_another_path_is_not_found_and_never_redirected(example: Service, path: str) -> None:
    assert_refused(post(example.port, path, CALL), 404)


def test_a_refusal_before_the_body_closes_the_connection(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head(FILTER, method="PUT", Content_Length=1000))
        answer = connection.answer()

        assert (answer.status, answer.headers["connection"]) == (405, "close")
        assert connection.is_closed()


def test_body_over_the_limit_is_refused_and_the_log_advises_node_cache_capable(
    tight: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "api"):
        assert_is_refusal(tight.call("filter", CALL + b" " * 10_000), 413)

    assert "set nodeCacheCapable: true" in caplog.text


def test_all_bodies_together_are_bounded(tight: Service) -> None:
    large = b" " * 9000
    with connected(tight.port) as first:
        first.send(head(FILTER, Content_Length=len(large)) + large[1:])
        until(lambda: tight.call("filter", large).status_code == 503)
        first.send(large[:1])
        status = first.answer().status

    assert status == 400
    assert tight.call("filter", CALL).status_code == 200


def test_questions_beyond_the_limit_are_refused_at_once_while_verbs_and_health_are_answered() -> None:
    with GateEngine.closed() as engine, serving(lambda _: engine, max_in_flight=1) as service:
        waiting = threading.Thread(target=service.post, args=("/v1/evaluate", b"{}"))
        waiting.start()
        engine.wait_for_callers(1)
        answer = service.post("/v1/evaluate", b"{}")
        filtered = service.call("filter", CALL)
        health = service.client.get("/readyz")
        engine.open()
        waiting.join()

        assert_is_refusal(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert filtered.status_code == 200
        assert health.status_code == 200


@pytest.mark.parametrize(
    "path", [FILTER, *(pytest.param(path, marks=pytest.mark.slow) for path in ("/v1/evaluate", PODS))]
)
def test_slow_bodies_cost_their_senders_only(path: str) -> None:
    """Many more callers than there are places send a byte, and nothing more."""
    with serving(schedule=False, max_in_flight=2, body_seconds=2) as service, ExitStack() as connections:
        slow = [connections.enter_context(connected(service.port)) for _ in range(40)]
        for connection in slow:
            connection.send(head(path, Content_Length=1000) + b"{")
        filtered = [service.call("filter", CALL).status_code for _ in range(10)]
        evaluated = service.post("/v1/evaluate", b"{}").status_code
        listed = service.client.get(PODS).status_code

        assert (filtered, evaluated, listed) == ([200] * 10, 422, 200)
        assert {connection.answer().status for connection in slow} == {408}


@pytest.mark.parametrize(("is_there", "status"), [(True, 200), (False, 408)])
async def test_a_body_that_is_there_is_read_however_late_the_event_loop_looks(is_there: bool, status: int) -> None:
    """Uvicorn pauses a connection whose body nobody takes, and reads on in a turn of the loop after that."""
    come, messages = asyncio.Event(), list[Message]()

    async def receive() -> Message:
        if is_there:
            asyncio.get_running_loop().call_soon(come.set)
        await come.wait()
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(11)  # others have the loop
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Message) -> None:
        messages.append(message)

    headers = [(b"content-length", b"2"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": FILTER, "headers": headers}
    await RequestLimits(app, Settings(body_seconds=10))(scope, receive, send)

    assert messages[0]["status"] == status


@pytest.mark.parametrize("path", ["/v1/evaluate", pytest.param(PODS, marks=pytest.mark.slow)])
def test_bodies_of_others_leave_half_of_the_bytes_to_the_verbs(path: str) -> None:
    large = 3 * 2**20
    with serving(schedule=False, max_bodies=2 * large + 2000, body_seconds=5) as service, ExitStack() as connections:
        open_connections = [connections.enter_context(connected(service.port)) for _ in range(3)]
        for connection in open_connections:
            connection.send(head(path, Content_Length=large) + b" " * (large - 1))

        assert 503 in {connection.answer().status for connection in open_connections[1:]}
        assert service.call("filter", CALL + b" " * (large - 1000)).status_code == 200


def test_a_question_is_not_as_large_as_a_call_with_full_nodes(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head("/v1/evaluate", Content_Length=limits.QUESTION_BYTES + 1))
        assert_refused(connection.answer(), 413)


def test_watches_at_one_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is free again once a watch has ended; requests that are not watches are answered meanwhile."""
    monkeypatch.setattr("extender.values.limits.API_WATCHES", 2)
    watch = {"watch": "1", "timeoutSeconds": "1"}
    with serving(schedule=False) as service:
        with ExitStack() as watches:
            for _ in range(2):
                watches.enter_context(service.client.stream("GET", PODS, params=watch | {"timeoutSeconds": "300"}))
            refused = service.client.get(PODS, params=watch)
            listed = service.client.get(PODS)
        # The service may not have noticed at once that they are gone.
        while (later_status := service.client.get(PODS, params=watch).status_code) == 429:
            time.sleep(0.01)

    assert_is_refusal(refused, 429)
    assert refused.headers["retry-after"] == "1"
    assert (listed.status_code, later_status) == (200, 200)


def test_answers_tell_nothing_about_the_server(example: Service) -> None:
    answer = example.client.post(FILTER, content=CALL, headers=JSON)

    assert answer.status_code == 200
    assert "server" not in answer.headers
    assert "transfer-encoding" not in answer.headers


def test_evaluations_leave_room_for_the_verbs() -> None:
    codes: Queue[int] = Queue()
    with GateEngine.closed() as engine, serving(lambda _: engine) as service:
        callers = [
            threading.Thread(target=lambda: codes.put(service.post("/v1/evaluate", b"{}").status_code))
            for _ in range(limits.QUESTIONS_AT_ONE_TIME + 3)
        ]
        for caller in callers:
            caller.start()
        refused = [codes.get(timeout=DEADLINE) for _ in range(3)]
        filtered = service.call("filter", CALL)
        engine.open()
        for caller in callers:
            caller.join()

    assert refused == [503] * 3
    assert filtered.status_code == 200
    assert [codes.get() for _ in range(limits.QUESTIONS_AT_ONE_TIME)] == [200] * limits.QUESTIONS_AT_ONE_TIME


def test_a_caller_that_goes_away_leaves_nothing_behind(tight: Service, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        with connected(tight.port) as connection:
            connection.send(head(FILTER, Content_Length=9000) + b" " * 8000)

    answers = [tight.call("filter", CALL).status_code for _ in range(5)]

    assert answers == [200] * 5
    assert "internal error" not in caplog.text


@pytest.mark.slow
def test_a_caller_that_does_not_read_its_answer_is_given_up() -> None:
    status = {"allocatable": {"pods": "10"}}
    nodes = [
        {"metadata": {"name": f"node-{number}", "annotations": {"a": "x" * 100_000}}, "status": status}
        for number in range(200)
    ]
    body = json.dumps({"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": nodes}})
    with serving(keep_alive_seconds=1, max_in_flight=1) as service:
        assert service.call("filter", body.encode()).json()["Nodes"]["items"] == nodes
        service.client.close()
        while service.connections() > 0:
            time.sleep(0.01)

        with connected(service.port) as connection:
            # More than fits on the way: it is accepted then.
            connection.send(head(FILTER, Content_Length=len(body)) + body.encode())
            while service.connections() > 0:
                time.sleep(0.01)

            with connected(service.port) as another:
                another.send(head(FILTER, Content_Length=len(CALL)) + CALL)
                assert another.answer().status == 200


def test_bodies_and_questions_share_a_limited_memory() -> None:
    program = (
        "from api.settings.settings import read_settings as read; print(read({}).max_bodies, read({}).question_memory)"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIB + 400 * MIB, GIB + 400 * MIB))

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, preexec_fn=limit)
    max_bodies, question_memory = map(int, done.stdout.split())

    assert 5 * max_bodies <= GIB // 2
    assert 2 * question_memory <= GIB // 2
    assert read_settings({"REPRIEVE_QUESTION_MEMORY": "2000000"}).question_memory == 2_000_000
