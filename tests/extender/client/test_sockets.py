"""The client on real sockets: what goes wrong on a wire is told apart as the dispatcher needs it."""

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.client.paths import path
from extender.values.targets.target import Target
from tests.extender.client.sockets import LIST, Asked, Reply, Server, asking, ok, serve

pytestmark = pytest.mark.usefixtures("stage")

PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/default/pods/web/binding"


async def close(call: Asked) -> bool:
    return False


async def close_in_the_head(call: Asked) -> bool:
    await call.send(b"HTTP/1.1 201 Cre")
    return False


async def close_in_the_body(call: Asked) -> bool:
    await call.send(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
    return False


async def close_in_a_chunk(call: Asked) -> bool:
    await call.send(
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{"
    )
    return False


async def speak_another_protocol(call: Asked) -> bool:
    await call.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    return False


async def say_nothing(call: Asked) -> bool:
    await asyncio.sleep(20)
    return False


async def asked_in_time(reply: Reply, seconds: float = 10) -> tuple[errors.ApiError, Server]:
    """What a write fails with, and the server: not asked at all where the machine was too busy to connect in time."""
    async with asking(reply) as (client, server):
        with pytest.raises(errors.ApiError) as caught:
            await client.create(BINDING, {"kind": "Binding"}, timeout=seconds)
    return caught.value, server


@pytest.mark.parametrize(
    "reply", [close, close_in_the_head, close_in_the_body, close_in_a_chunk, speak_another_protocol]
)
async def test_a_write_without_a_whole_answer_may_have_happened(reply: Reply):
    error, server = await asked_in_time(reply)

    assert len(server.asked) == 1
    assert isinstance(error, errors.NoAnswer)
    assert not error.timed_out


async def test_write_that_times_out_may_have_happened():
    for seconds in (0.1, 1, 10):
        error, server = await asked_in_time(say_nothing, seconds)
        if server.asked:
            break

    assert isinstance(error, errors.NoAnswer)
    assert error.timed_out


async def test_tls_handshake_that_times_out_is_unreachable():
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as silent:
        client = Client(Target(f"https://127.0.0.1:{silent.sockets[0].getsockname()[1]}"))
        with pytest.raises(errors.Unreachable):
            await client.create(BINDING, {}, timeout=0.4)
        await client.aclose()


async def test_names_and_selectors_arrive_as_they_were_meant():
    selector = "a+b in (c, d&e=f), g!=h/%25;ü"

    async with asking(ok) as (client, server):
        await client.get(
            path("", "v1", "pods", namespace="default", name="system:a b?#"), params={"labelSelector": selector}
        )

    url = urlsplit(server.asked[0].line.split(" ")[1])
    assert unquote(url.path) == "/api/v1/namespaces/default/pods/system:a b?#"
    assert parse_qs(url.query) == {"labelSelector": [selector]}


async def test_a_compressed_answer_is_read():
    async def reply(call: Asked) -> bool:
        assert b"accept-encoding: gzip" in call.head.lower()
        return await call.answer("200 OK", gzip.compress(LIST), "Content-Encoding: gzip")

    async with asking(reply) as (client, _):
        answer = await client.get(PODS)

    assert answer == LIST


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


async def a_line_and_silence(call: Asked) -> bool:
    await call.send(WATCH_HEAD + chunk(b'{"a":1}\n'))
    return await say_nothing(call)


async def watched(reply: Reply, silence: float = 10.0) -> tuple[list[bytes], errors.ApiError | None]:
    lines = []
    async with asking(reply) as (client, _):
        try:
            async with client.watch(PODS, params={"watch": "1"}, silence=silence) as events:
                async for line in events:
                    lines.append(line)  # noqa: PERF401 - those before an error count
        except errors.ApiError as error:
            return lines, error
    return lines, None


async def test_a_watch_that_the_server_ends_is_at_its_end():
    async def reply(call: Asked) -> bool:
        await call.send(WATCH_HEAD + chunk(b'{"a":1}\n{"b"') + chunk(b":2}\n") + b"0\r\n\r\n")
        return True

    assert await watched(reply) == ([b'{"a":1}', b'{"b":2}'], None)


async def test_cut_watch_delivers_its_whole_lines_and_then_fails():
    async def reply(call: Asked) -> bool:
        await call.send(WATCH_HEAD + chunk(b'{"a":1}\n{"b"'))
        return False

    lines, error = await watched(reply)

    assert lines == [b'{"a":1}']
    assert isinstance(error, errors.NoAnswer)


async def test_a_watch_whose_peer_has_vanished_ends_by_its_silence():
    for silence in (0.1, 1, 10):
        lines, error = await watched(a_line_and_silence, silence)
        if lines:  # where the machine is busy, the first one may come after a short silence
            break

    assert lines == [b'{"a":1}']
    assert isinstance(error, errors.NoAnswer)
    assert error.timed_out


async def test_closing_the_client_ends_its_watches():
    async with asking(a_line_and_silence) as (client, _):
        with pytest.raises(errors.NoAnswer):
            async with client.watch(PODS, params={}, silence=60) as events:
                async for _ in events:
                    await client.aclose()


async def test_a_watch_does_not_stand_in_the_way_of_requests():
    async def reply(call: Asked) -> bool:
        return await a_line_and_silence(call) if "watch" in call.line else await call.answer()

    async with asking(reply) as (client, server), client.watch(PODS, params={"watch": "1"}, silence=60) as events:
        await anext(events)
        await client.get(PODS)
        await client.get(PODS)

    assert server.connections == 2


def kernel_timers(peer: str) -> dict[str, tuple[str, int]]:
    """By local address of an established connection to `peer`: which timer runs, and for how many hundredths of a
    second.
    """
    connections = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
    return {
        local: (timer[:2], int(timer[3:], 16))
        for _, local, other, state, _, timer, *_ in connections
        if other == peer and state == "01"
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net/tcp")
async def test_an_idle_watch_is_probed_by_the_kernel():
    """A peer that vanished without a word is found out even where nobody reads."""
    async with asking(a_line_and_silence) as (client, server), client.watch(PODS, params={}, silence=60) as events:
        await anext(events)
        ((timer, ticks),) = kernel_timers(f"0100007F:{server.port:04X}").values()

    assert timer == "02"  # a keepalive probe is due
    assert ticks <= 30 * 100


# Proxies


@asynccontextmanager
async def through_proxy(reply: Reply, server: str, user: str = "") -> AsyncIterator[tuple[Client, Server]]:
    async with serve(reply) as proxy:
        client = Client(Target(server, proxy=f"http://{user}127.0.0.1:{proxy.port}"))
        yield client, proxy
        await client.aclose()


async def test_a_proxy_is_asked_for_the_whole_url():
    async with through_proxy(ok, "http://k8s.example:8080", user="me:canary@") as (client, proxy):
        await client.create(BINDING, {})

    assert proxy.asked[0].line == f"POST http://k8s.example:8080{BINDING} HTTP/1.1"
    assert b"proxy-authorization: basic bwu6y2fuyxj5" in proxy.asked[0].head.lower()


async def test_a_proxy_that_can_not_reach_the_server_is_an_error_of_the_server():
    async def reply(call: Asked) -> bool:
        return await call.answer("502 Bad Gateway", b"no route")

    async with through_proxy(reply, "http://k8s.example:8080") as (client, _):
        with pytest.raises(errors.ServerError):
            await client.create(BINDING, {})


async def test_refusing_proxy_is_unreachable():
    async def reply(call: Asked) -> bool:
        return await call.answer("403 Forbidden", b"")

    async with through_proxy(reply, "https://k8s.example", user="me:canary@") as (client, proxy):
        with pytest.raises(errors.Unreachable) as caught:
            await client.create(BINDING, {})

    assert proxy.asked[0].line == "CONNECT k8s.example:443 HTTP/1.1"
    assert "canary" not in str(caught.value)
