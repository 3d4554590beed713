"""Connections: how long requests may take to arrive, and for how long connections are kept."""

import json
import threading

from api.documents.documentation import BY_NAME
from api.settings.settings import Settings
from extender.values import limits
from tests.api.raw_http import assert_refused, connected, head
from tests.kit.service import Service
from tests.kit.tables import cases

FILTER = "/extender/filter"
CALL = json.dumps(BY_NAME).encode()


def test_body_shorter_than_announced_times_out(hasty: Service) -> None:
    with connected(hasty.port) as connection:
        connection.send(head(FILTER, Content_Length=len(CALL) + 1) + CALL)
        answer = connection.answer()

        assert_refused(answer, 408)
        assert answer.headers["connection"] == "close"
        assert connection.is_closed()


def test_bytes_after_a_body_longer_than_announced_are_refused(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head(FILTER, Content_Length=len(CALL)) + CALL)
        assert connection.answer().status == 200
        connection.send(b"garbage\r\n\r\n")

        assert_refused(connection.answer(), 400)
        assert connection.is_closed()


def test_unfinished_headers_time_out(hasty: Service) -> None:
    with connected(hasty.port) as connection:
        connection.send(b"POST /extender/filter HTTP/1.1\r\nHost: localhost\r\n")

        assert_refused(connection.answer(), 408)
        assert connection.is_closed()


def test_trickling_headers_time_out(hasty: Service) -> None:
    with connected(hasty.port) as connection:
        stop = threading.Event()

        def trickle() -> None:
            for byte in head(FILTER, X="x" * 1000):
                if stop.wait(0.02):
                    return
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return

        sender = threading.Thread(target=trickle)
        sender.start()
        try:
            answer = connection.answer()
        finally:
            stop.set()
            sender.join()

    assert_refused(answer, 408)


@cases(
    "request_head",
    ("long header", head(FILTER, X="x" * 5000)),
    ("long line", head(FILTER + "?" + "x" * 5000)),
    ("many headers", head(FILTER, **{f"X{n}": n for n in range(30)})),
    ("a header without end", b"POST /extender/filter HTTP/1.1\r\nX: " + b"x" * 5000),
)
def test_headers_that_are_too_large_are_refused(tight: Service, request_head: bytes) -> None:
    with connected(tight.port) as connection:
        connection.send(request_head)

        assert_refused(connection.answer(), 431)
        assert connection.is_closed()


def test_connections_are_kept_for_many_calls(example: Service) -> None:
    with connected(example.port) as connection:
        for _ in range(50):
            connection.send(head(FILTER, Content_Length=len(CALL)) + CALL)
            answer = connection.answer()
            assert answer.status == 200
            assert "connection" not in answer.headers


def test_an_idle_connection_is_closed_after_the_keep_alive_time(tight: Service) -> None:
    with connected(tight.port) as unused, connected(tight.port) as used:
        used.send(head(FILTER, Content_Length=len(CALL)) + CALL)

        assert used.answer().status == 200
        assert used.is_closed()
        assert unused.is_closed()


def test_an_idle_connection_outlives_go_s_own_patience() -> None:
    assert Settings().keep_alive_seconds >= 120


def test_expect_100_continue_is_honoured(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head(FILTER, Content_Length=len(CALL), Expect="100-continue"))
        assert connection._reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert connection._reader.readline() == b"\r\n"
        connection.send(CALL)

        assert connection.answer().status == 200


def test_a_connection_on_which_too_many_requests_wait_is_closed(example: Service) -> None:
    with connected(example.port) as connection:
        connection.send(head("/livez", method="GET") * 10 * limits.REQUESTS_WAITING)

        assert connection.rest().count(b"HTTP/1.1 ") <= limits.REQUESTS_WAITING + 1
    assert example.client.get("/livez").status_code == 200
