"""The client on real sockets: what goes wrong on a wire is told apart as the dispatcher needs it."""

import asyncio
import gzip
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.client.paths import path
from extender.values.targets.target import Target
from tests.extender.client.sockets import LIST, Asked, Reply, ok, run, serve

pytestmark = pytest.mark.usefixtures("each_loop")

PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/default/pods/web/binding"


async def close(asked: Asked) -> bool:
    return False


async def close_in_the_head(asked: Asked) -> bool:
    await asked.send(b"HTTP/1.1 201 Cre")
    return False


async def close_in_the_body(asked: Asked) -> bool:
    await asked.send(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
    return False


async def close_in_a_chunk(asked: Asked) -> bool:
    await asked.send(
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{"
    )
    return False


async def speak_another_protocol(asked: Asked) -> bool:
    await asked.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    return False


async def say_nothing(asked: Asked) -> bool:
    await asyncio.sleep(20)
    return False


def failure_of(reply: Reply, *, timeout: float = 10.0) -> errors.ApiError:
    """What a write fails with that the server was asked for once."""
    error, asked = asked_in_time(reply, timeout)
    assert asked == 1
    return error


def asked_in_time(reply: Reply, timeout: float) -> tuple[errors.ApiError, int]:
    """What a write fails with, and how often the server was asked: not at all where the machine was too busy to connect
    in time.
    """

    async def create() -> tuple[errors.ApiError, int]:
        async with serve(reply) as server:
            client = Client(Target(server.url))
            try:
                with pytest.raises(errors.ApiError) as caught:
                    await client.create(BINDING, {"kind": "Binding"}, timeout=timeout)
            finally:
                await client.aclose()
        return caught.value, len(server.asked)

    return run(create())


def test_refused_connection_is_unreachable():
    async def create() -> errors.ApiError:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            client = Client(Target(f"http://127.0.0.1:{taken.getsockname()[1]}"))
            with pytest.raises(errors.ApiError) as caught:
                await client.create(BINDING, {})
            await client.aclose()
            return caught.value

    assert isinstance(run(create()), errors.Unreachable)


@pytest.mark.parametrize(
    "reply", [close, close_in_the_head, close_in_the_body, close_in_a_chunk, speak_another_protocol]
)
def test_a_write_without_a_whole_answer_may_have_happened(reply: Reply):
    error = failure_of(reply)

    assert isinstance(error, errors.NoAnswer)
    assert not error.timed_out


def test_write_that_times_out_may_have_happened():
    tried = (asked_in_time(say_nothing, timeout) for timeout in (0.1, 1, 10))
    error = next(error for error, asked in tried if asked)

    assert isinstance(error, errors.NoAnswer)
    assert error.timed_out


def test_tls_handshake_that_times_out_is_unreachable():
    async def create() -> None:
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

    run(create())


def test_names_and_selectors_arrive_as_they_were_meant():
    selector = "a+b in (c, d&e=f), g!=h/%25;ü"

    async def ask() -> tuple[str, dict[str, list[str]]]:
        async with serve(ok) as server:
            client = Client(Target(server.url))
            await client.get(
                path("", "v1", "pods", namespace="default", name="system:a b?#"), params={"labelSelector": selector}
            )
            await client.aclose()
            url = urlsplit(server.asked[0].line.split(" ")[1])
            return unquote(url.path), parse_qs(url.query)

    assert run(ask()) == ("/api/v1/namespaces/default/pods/system:a b?#", {"labelSelector": [selector]})


def test_a_connection_is_used_again():
    async def ask() -> int:
        async with serve(ok) as server:
            client = Client(Target(server.url))
            for _ in range(5):
                await client.get(PODS)
            await client.aclose()
            return server.connections

    assert run(ask()) == 1


def test_a_compressed_answer_is_read():
    async def reply(asked: Asked) -> bool:
        assert b"accept-encoding: gzip" in asked.head.lower()
        return await asked.answer("200 OK", gzip.compress(LIST), "Content-Encoding: gzip")

    async def ask() -> bytes:
        async with serve(reply) as server:
            client = Client(Target(server.url))
            try:
                return await client.get(PODS)
            finally:
                await client.aclose()

    assert run(ask()) == LIST


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def watched(reply: Reply, silence: float = 10.0) -> tuple[list[bytes], errors.ApiError | None]:
    async def watch() -> tuple[list[bytes], errors.ApiError | None]:
        lines = []
        async with serve(reply) as server:
            client = Client(Target(server.url))
            try:
                async with client.watch(PODS, params={"watch": "1"}, silence=silence) as events:
                    async for line in events:
                        lines.append(line)  # noqa: PERF401 - those before an error count
            except errors.ApiError as error:
                return lines, error
            finally:
                await client.aclose()
        return lines, None

    return run(watch())


def test_a_watch_that_the_server_ends_is_at_its_end():
    async def reply(asked: Asked) -> bool:
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n{"b"') + chunk(b":2}\n") + b"0\r\n\r\n")
        return True

    assert watched(reply) == ([b'{"a":1}', b'{"b":2}'], None)


def test_cut_watch_delivers_its_whole_lines_and_then_fails():
    async def reply(asked: Asked) -> bool:
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n{"b"'))
        return False

    lines, error = watched(reply)

    assert lines == [b'{"a":1}']
    assert isinstance(error, errors.NoAnswer)


def test_a_watch_whose_peer_has_vanished_ends_by_its_silence():
    async def reply(asked: Asked) -> bool:
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n'))
        return await say_nothing(asked)

    # Where the machine is busy, the first line may come after a short silence.
    tried = (watched(reply, silence) for silence in (0.1, 1, 10))
    lines, error = next(found for found in tried if found[0])

    assert lines == [b'{"a":1}']
    assert isinstance(error, errors.NoAnswer)
    assert error.timed_out


def test_closing_the_client_ends_its_watches():
    async def reply(asked: Asked) -> bool:
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n'))
        return await say_nothing(asked)

    async def watch() -> None:
        async with serve(reply) as server:
            client = Client(Target(server.url))
            with pytest.raises(errors.NoAnswer):
                async with client.watch(PODS, params={}, silence=60) as events:
                    async for _ in events:
                        await client.aclose()

    run(watch())


def test_a_watch_does_not_stand_in_the_way_of_requests():
    async def reply(asked: Asked) -> bool:
        if "watch" not in asked.line:
            return await asked.answer()
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n'))
        return await say_nothing(asked)

    async def watch_and_ask() -> int:
        async with serve(reply) as server:
            client = Client(Target(server.url))
            async with client.watch(PODS, params={"watch": "1"}, silence=60) as events:
                await anext(events)
                await client.get(PODS)
                await client.get(PODS)
            await client.aclose()
            return server.connections

    assert run(watch_and_ask()) == 2


def kernel_timers(peer: str) -> dict[str, tuple[str, int]]:
    """By local address of an established connection to `peer`: which timer runs, and for how many hundredths of a
    second.
    """
    connections = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
    return {
        own: (timer[:2], int(timer[3:], 16))
        for _, own, other, state, _, timer, *_ in connections
        if other == peer and state == "01"
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net/tcp")
def test_an_idle_watch_is_probed_by_the_kernel():
    """A peer that vanished without a word is found out even where nobody reads."""

    async def reply(asked: Asked) -> bool:
        await asked.send(WATCH_HEAD + chunk(b'{"a":1}\n'))
        return await say_nothing(asked)

    async def timers() -> dict[str, tuple[str, int]]:
        async with serve(reply) as server:
            client = Client(Target(server.url))
            async with client.watch(PODS, params={}, silence=60) as events:
                await anext(events)
                found = kernel_timers(f"0100007F:{server.port:04X}")
            await client.aclose()
            return found

    ((timer, ticks),) = run(timers()).values()

    assert timer == "02"  # a keepalive probe is due
    assert ticks <= 30 * 100


# Proxies


def through_proxy(reply: Callable[[Asked], object], user: str = "") -> tuple[errors.ApiError | None, str, bytes]:
    async def get() -> tuple[errors.ApiError | None, str, bytes]:
        async with serve(reply) as proxy:  # type: ignore[arg-type]
            client = Client(Target("http://k8s.example:8080", proxy=f"http://{user}127.0.0.1:{proxy.port}"))
            error = None
            try:
                await client.create(BINDING, {})
            except errors.ApiError as caught:
                error = caught
            finally:
                await client.aclose()
            return error, proxy.asked[0].line, proxy.asked[0].head

    return run(get())


def test_a_proxy_is_asked_for_the_whole_url():
    error, line, head = through_proxy(ok, user="me:canary@")

    assert error is None
    assert line == f"POST http://k8s.example:8080{BINDING} HTTP/1.1"
    assert b"proxy-authorization: basic bwu6y2fuyxj5" in head.lower()


def test_a_proxy_that_can_not_reach_the_server_is_an_error_of_the_server():
    async def reply(asked: Asked) -> bool:
        return await asked.answer("502 Bad Gateway", b"no route")

    error, _, _ = through_proxy(reply)

    assert isinstance(error, errors.ServerError)


def test_refusing_proxy_is_unreachable():
    async def reply(asked: Asked) -> bool:
        return await asked.answer("403 Forbidden", b"")

    async def get() -> None:
        async with serve(reply) as proxy:
            client = Client(Target("https://k8s.example", proxy=f"http://me:canary@127.0.0.1:{proxy.port}"))
            try:
                with pytest.raises(errors.Unreachable) as caught:
                    await client.create(BINDING, {})
            finally:
                await client.aclose()
            assert proxy.asked[0].line == "CONNECT k8s.example:443 HTTP/1.1"
            assert "canary" not in str(caught.value)

    run(get())
