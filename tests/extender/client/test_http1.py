"""HTTP/1.1 on the wire: what a connection is good for after each kind of answer, and which connection is taken.

What failures mean to a caller is in `test_sockets.py`, certificates are in `test_tls.py`.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import pytest
import uvloop

from extender.client import errors
from extender.client.client import Client
from extender.client.transport.carrier import ClientRequest, NotSentError
from extender.client.transport.connections import Http1Carrier
from extender.client.transport.dialing import Route
from extender.values.targets.target import Target
from tests.extender.client.sockets import (
    LIST,
    Asked,
    Reply,
    Server,
    asking,
    black_hole,
    closed_down_to,
    nobody,
    num_sockets,
    ok,
    pass_time,
    serve,
    silence,
)

pytestmark = pytest.mark.usefixtures("stage")

PODS = "/api/v1/pods"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def get(reply: Reply, times: int = 1) -> tuple[list[bytes], Server]:
    """What came, one request after the other, and what the server saw."""
    async with asking(reply) as (client, server):
        return [await client.get(PODS) for _ in range(times)], server


def numbered(number: int) -> bytes:
    return json.dumps({"kind": "PodList", "number": number}).encode()


# What an answer looks like


async def test_informational_answers_before_the_answer_are_skipped():
    async def hint_first(call: Asked) -> bool:
        await call.send(b"HTTP/1.1 103 Early Hints\r\nContent-Encoding: br\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        return await call.answer()

    bodies, server = await get(hint_first, 2)

    assert bodies == [LIST, LIST]
    assert server.connections == 1


async def test_an_answer_may_come_byte_by_byte():
    async def drip(call: Asked) -> bool:
        for byte in HEAD + b"Content-Length: %d\r\n\r\n" % len(LIST) + LIST:
            await call.send(bytes([byte]))
            await asyncio.sleep(0)
        return True

    bodies, server = await get(drip, 2)

    assert bodies == [LIST, LIST]
    assert server.connections == 1


async def test_a_body_may_end_with_its_connection():
    async def speak_as_of_old(call: Asked) -> bool:
        call.writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + LIST)
        call.writer.close()
        await call.writer.wait_closed()
        return False

    bodies, server = await get(speak_as_of_old, 2)

    assert bodies == [LIST, LIST]
    assert server.connections == 2


async def test_trailers_are_no_headers():
    async def trail(call: Asked) -> bool:
        chunk = b"%x\r\n%s\r\n" % (len(LIST), LIST)
        await call.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\nContent-Encoding: gzip\r\n\r\n")
        return True

    bodies, server = await get(trail, 2)

    assert bodies == [LIST, LIST]
    assert server.connections == 1


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X-Header: value\r\n" * 100_000, id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Header: " + b"x" * 2_000_000, id="a header"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X-Trailer: value\r\n" * 100_000, id="trailers"
        ),
    ],
)
async def test_endless_head_of_an_answer_is_cut_off(flood: bytes):
    async def pour(call: Asked) -> bool:
        await call.send(flood)
        await asyncio.sleep(20)
        return False

    async with asking(pour) as (client, _):
        with pytest.raises(errors.NoAnswer) as caught:
            await client.create(PODS, {})

    assert "does not end" in caught.value.message


# What is sent


async def test_a_long_body_arrives_whole():
    body = b'{"kind":"%s"}' % (b"x" * 3_000_000)

    async with asking(ok) as (client, server):
        await client.update(PODS, body)

    assert server.asked[0].body == body


async def test_write_without_a_body_has_content_length_zero():
    async with asking(ok) as (client, server):
        await client.request("POST", PODS)

    assert b"content-length: 0" in server.asked[0].head.lower()


@pytest.mark.parametrize(
    ("user_agent", "path"),
    [("x\r\nAuthorization: Bearer y", PODS), ("x", "/api/v1/pods HTTP/1.1\r\nX-Header: y"), ("x", "/api/v1/pods/ü")],
)
async def test_line_breaks_in_headers_and_paths_are_refused(user_agent: str, path: str):
    async with serve(ok) as server:
        client = Client(Target(server.url), user_agent=user_agent)
        with pytest.raises(errors.Unreachable, match=r"a line break in a header|no quoted path"):
            await client.get(path)
        await client.aclose()

    assert not server.asked


@pytest.mark.parametrize(
    ("server", "authority", "prefix"),
    [
        ("https://k8s.example", "k8s.example", ""),
        ("https://K8S.example:6443", "k8s.example:6443", ""),
        ("http://[fd00::1]:8080", "[fd00::1]:8080", ""),
        ("https://bücher.example", "xn--bcher-kva.example", ""),
        ("https://rancher.example/k8s/clusters/c-1", "rancher.example", "/k8s/clusters/c-1"),
        ("https://rancher.example/my clusters/%20/ü", "rancher.example", "/my%20clusters/%20/%C3%BC"),
    ],
)
def test_host_and_prefix_are_taken_from_the_url_of_the_server(server: str, authority: str, prefix: str):
    route = Route(server, ssl.create_default_context())

    assert (route.authority, route.prefix) == (authority, prefix)


# Which connection is taken


def second_time_silent() -> Reply:
    """Hangs up when it is asked a second time on a connection."""
    writer_ids: set[int] = set()

    async def reply(call: Asked) -> bool:
        if id(call.writer) in writer_ids:
            return False
        writer_ids.add(id(call.writer))
        return await call.answer("200 OK", LIST)

    return reply


async def test_reading_does_not_suffer_from_a_connection_that_was_closed_while_it_was_idle():
    """By a watch, which is not tried again by anybody else."""
    async with asking(second_time_silent()) as (client, server):
        await client.get(PODS)
        async with client.watch(PODS, params={"watch": "1"}, silence=10) as lines:
            async for _ in lines:
                pass

    assert server.connections == 2
    assert [call.line for call in server.asked[1:]] == ["GET /api/v1/pods?watch=1 HTTP/1.1"] * 2


async def test_a_write_is_not_sent_twice_though_its_connection_may_have_been_closed_before():
    async with asking(second_time_silent()) as (client, server):
        await client.get(PODS)
        with pytest.raises(errors.NoAnswer):
            await client.create(PODS, {})

    assert len(server.asked) == 2


async def test_unrequested_answer_is_discarded_with_its_connection():
    count = 0

    async def say_too_much(call: Asked) -> bool:
        nonlocal count
        count += 1
        body, stray = numbered(count), numbered(-1)
        one = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        await call.send(one + HEAD + b"Content-Length: %d\r\n\r\n" % len(stray) + stray)
        return True

    bodies, server = await get(say_too_much, 3)

    assert bodies == [numbered(1), numbered(2), numbered(3)]
    assert server.connections == 3


@pytest.mark.parametrize(
    "stray", [HEAD + b"Content-Length: 2\r\n\r\n{}", b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"\x00\x01"]
)
async def test_a_connection_that_speaks_up_while_it_is_idle_is_hung_up(stray: bytes):
    spoken = asyncio.Event()

    async def speak_up(call: Asked) -> bool:
        await call.answer()
        await asyncio.sleep(0.02)  # the answer has been read by then, or else it is part of what was said too much
        await call.send(stray)
        spoken.set()
        return True

    async with asking(speak_up) as (client, server):
        await client.get(PODS)
        await spoken.wait()
        while server.still_open:  # noqa: ASYNC110 - the end of a connection takes its way
            await asyncio.sleep(0.005)
        answer = await client.get(PODS)

    assert answer == LIST
    assert server.connections == 2


async def test_an_answer_that_is_not_read_to_its_end_costs_the_connection():
    async def long(call: Asked) -> bool:
        return await call.answer("200 OK", b" " * 500_000)

    async with asking(long) as (client, server):
        for _ in range(2):
            with pytest.raises(errors.NotKubernetes):
                await client.request("GET", PODS, max_bytes=1000)

    assert server.connections == 2


async def test_connection_is_not_reused_after_connection_close():
    async def close_after(call: Asked) -> bool:
        return await call.answer("200 OK", LIST, "Connection: close")

    _, server = await get(close_after, 2)

    assert server.connections == 2


async def test_a_connection_that_was_idle_for_a_minute_is_not_used_again():
    async with asking(ok) as (client, server):
        await client.get(PODS)
        pass_time(61)
        await client.get(PODS)

    assert server.connections == 2


async def test_idle_connections_are_hung_up_after_a_minute():
    if isinstance(asyncio.get_running_loop(), uvloop.Loop):
        pytest.skip("its timers cannot be told that time has passed")

    async with asking(ok) as (client, server):
        await asyncio.gather(*(client.get(PODS) for _ in range(3)))
        before = server.still_open
        pass_time(61)
        while server.still_open:  # noqa: ASYNC110 - the end of a connection takes its way
            await asyncio.sleep(0.005)

    assert before == 3


async def test_request_waits_for_a_connection_when_all_are_in_use():
    release = asyncio.Event()

    async def hold(call: Asked) -> bool:
        await release.wait()
        return await call.answer()

    async with serve(hold) as server:
        carrier = Http1Carrier(Route(server.url, ssl.create_default_context()), max_connections=2)

        async def send(seconds: float) -> int:
            answer = await carrier.send(ClientRequest("GET", PODS, ()), seconds)
            while await answer.read_some():
                pass
            await answer.aclose()
            return answer.status

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(send(30)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(NotSentError) as caught:
                await send(0.05)
            tasks.append(group.create_task(send(30)))
            await asyncio.sleep(0)
            release.set()
        await carrier.aclose()

    assert [task.result() for task in tasks] == [200, 200, 200]
    assert "all connections were in use for 0.05 s" in str(caught.value)
    assert server.connections == 2


async def test_timed_out_request_releases_its_connection():
    """As many as there are connections time out, and there is one for the next."""
    silent = True

    async def reply(call: Asked) -> bool:
        if silent:
            await asyncio.sleep(20)
        return await call.answer()

    async with serve(reply) as server:
        carrier = Http1Carrier(Route(server.url, ssl.create_default_context()), max_connections=3)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await carrier.send(ClientRequest("GET", PODS, ()), 10)
        silent = False
        answer = await carrier.send(ClientRequest("GET", PODS, ()), 10)
        await answer.aclose()
        await carrier.aclose()

    assert answer.status == 200


async def test_each_request_on_a_connection_has_its_own_deadline():
    pauses = iter((0.0, 1.2, 60.0))

    async def reply(asked: Asked) -> bool:
        await asyncio.sleep(next(pauses))
        return await asked.answer()

    async with asking(reply) as (client, server):
        await client.get(PODS, timeout=1)
        await client.get(PODS, timeout=30)
        async with asyncio.timeout(30):
            with pytest.raises(errors.NoAnswer, match=r"no answer within 0\.1 s"):
                await client.get(PODS, timeout=0.1)

    assert server.connections == 1


async def test_request_fails_at_once_when_the_server_hangs_up():
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        client = Client(Target(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        for _ in range(20):
            with pytest.raises(errors.ApiError):
                async with asyncio.timeout(5):
                    await client.create(PODS, {})
        await client.aclose()


# Holding the server up


async def test_a_server_that_is_faster_than_the_reader_is_held_up():
    line = b"x" * 65_535 + b"\n"
    count = 400
    num_sent = 0

    async def pour(call: Asked) -> bool:
        nonlocal num_sent
        await call.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(count):
            await call.send(b"10000\r\n" + line + b"\r\n")
            num_sent += 1
        await call.send(b"0\r\n\r\n")
        return True

    async with asking(pour) as (client, _), client.watch(PODS, params={"watch": "1"}, silence=10) as lines:
        await anext(lines)
        await asyncio.sleep(0.3)
        held_at = num_sent
        read = 1
        async for _ in lines:
            read += 1

    assert held_at < count
    assert read == count


# Which address answers


@asynccontextmanager
async def resolving(*ports: int) -> AsyncIterator[None]:
    """Every name leads to these ports of this machine, in this order."""

    async def resolve(host: object, port: object, **_: object) -> list[Any]:
        target_ports = (port,) if host == "127.0.0.1" else ports  # uvloop asks for addresses, too
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", target_port)) for target_port in target_ports]

    loop: Any = asyncio.get_running_loop()
    loop.getaddrinfo = resolve
    yield


@pytest.mark.parametrize("first", [nobody, black_hole])
async def test_next_address_is_tried_when_one_does_not_answer(first: Callable[[], AbstractContextManager[int]]):
    with first() as other:
        async with serve(ok) as server, resolving(other, server.port):
            client = Client(Target("http://k8s.example"))
            answer = await client.get(PODS)
            await client.aclose()

    assert answer == LIST


async def test_when_no_address_answers_nothing_was_sent():
    with nobody() as one, nobody() as two:
        async with resolving(one, two):
            client = Client(Target("http://k8s.example"))
            with pytest.raises(errors.Unreachable) as caught:
                await client.create(PODS, {})
            await client.aclose()

    assert "k8s.example:80" in caught.value.message


async def test_unknown_host_name_is_unreachable():
    async def resolve(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    loop: Any = asyncio.get_running_loop()
    loop.getaddrinfo = resolve
    client = Client(Target("https://k8s.example"))
    with pytest.raises(errors.Unreachable) as caught:
        await client.create(PODS, {})
    await client.aclose()

    assert "there is no host of this name" in caught.value.message


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["out of time", "cancelled"])
@pytest.mark.parametrize(
    ("peer", "address", "proxy"),
    [
        pytest.param(black_hole, "http://127.0.0.1:{}", None, id="accepts nothing"),
        pytest.param(black_hole, "https://127.0.0.1:{}", None, id="accepts nothing, TLS"),
        pytest.param(silence, "https://127.0.0.1:{}", None, id="no handshake"),
        pytest.param(silence, "https://k8s.example", "http://127.0.0.1:{}", id="a proxy that says nothing"),
    ],
)
async def test_a_dial_that_is_given_up_leaves_no_socket_open(
    peer: Callable[[], AbstractContextManager[int]], address: str, proxy: str | None, is_cancelled: bool
):
    """Descriptors are few, and a server that accepts slowly is dialled again and again."""
    with peer() as port:
        client = Client(Target(address.format(port), proxy=proxy and proxy.format(port)))
        num_open = num_sockets()
        for _ in range(3):
            seconds = 60.0 if is_cancelled else 0.02
            dials = [asyncio.create_task(client.create(PODS, {}, timeout=seconds)) for _ in range(20)]
            await asyncio.sleep(0.02)
            for dial in dials:
                if is_cancelled:
                    dial.cancel()
            outcomes = await asyncio.gather(*dials, return_exceptions=True)
            assert all(isinstance(outcome, errors.ApiError | asyncio.CancelledError) for outcome in outcomes)
            await closed_down_to(num_open)
        await client.aclose()


async def test_the_address_that_loses_is_hung_up():
    with black_hole() as slow:
        async with serve(ok) as server, resolving(slow, server.port):
            num_open = num_sockets()
            client = Client(Target("http://k8s.example"))
            await client.get(PODS)
            await closed_down_to(num_open + 2)  # the two ends of the connection
            await client.aclose()
