"""Connections to servers that are called, on real sockets, and programs for credentials."""

import asyncio
import os
import ssl
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory

from extender.client.client import Client
from extender.client.credentials.exec_plugin import Exec, ExecPlugin
from extender.client.errors import ApiError
from extender.client.transport.dialing import Route
from extender.client.transport.http1 import Connection
from extender.values.targets.target import CredentialsError, Target
from tests.extender.client.http_extender import serving as extenders
from tests.extender.client.http_extender.test_calling import outcome
from tests.extender.client.scripted import Scripted, stream
from tests.extender.client.sockets import STAGES, Asked, T, asking, pass_time, serve
from tests.extender.client.test_client import PODS
from tests.extender.client.test_watch import Watched
from tests.limits.rows import Filled

ALMOST = 0.95
"""The part of a second that is not waited for, so that what takes nearly as long as it may is in time."""


def on_sockets(test: Coroutine[object, object, T]) -> T:
    return STAGES["asyncio"].run(test)


async def wait(seconds: float) -> None:
    """So much time passes, without taking any, after what was begun and before what was due in it is done."""
    await _turns()
    pass_time(seconds)
    await _turns()


async def _turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def dialled(seconds: int) -> bool:
    """Whether a handshake that the server breaks off after nearly so many seconds has been given up before."""
    accepted, is_over = asyncio.Event(), asyncio.Event()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await is_over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as silent:
        client = Client(Target(f"https://127.0.0.1:{silent.sockets[0].getsockname()[1]}"))
        writing = asyncio.create_task(client.create(PODS, {}, timeout=60))
        await accepted.wait()
        await wait(seconds - ALMOST)
        is_over.set()
        (failure,) = await asyncio.gather(writing, return_exceptions=True)
        await client.aclose()
    return "no connection within" in str(failure)


async def connections(number: int, limit: int = 3) -> int:
    """Returns how many there are for so many requests at one time."""
    waiting = asyncio.Barrier(min(number, limit))

    async def hold(request: Asked) -> bool:
        if len(server.asked) <= waiting.parties:
            await waiting.wait()
        return await request.answer()

    async with asking(hold) as (client, server):
        await asyncio.gather(*(client.get(PODS) for _ in range(number)))
    return server.connections


async def is_held_up(size: int) -> bool:
    """Whether nothing more is read while so many bytes of a body wait for their reader."""

    async def reply(request: Asked) -> bool:
        await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (size + 1) + b"x" * size)
        return True

    async with serve(reply) as server:
        connection = await Route(server.url, ssl.create_default_context()).dial()
        await connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", Connection.abort)
        is_reading = connection.transport.is_reading()
        connection.abort()
    return not is_reading


async def headed(size: int) -> str:
    """Returns what is said of an answer that ends after so many bytes of its head."""

    async def reply(request: Asked) -> bool:
        await request.send(b"HTTP/1.1 200 OK\r\nX: ".ljust(size, b"x"))
        return False

    async with asking(reply) as (client, _):
        try:
            await client.create(PODS, {})
        except ApiError as exc:
            return str(exc).rpartition(": ")[2]
    return ""


def run(seconds: int) -> str:
    """Returns what comes of a program that ends after nearly so many seconds."""
    credentials = '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}'
    with TemporaryDirectory() as folder:
        program, gate = Path(folder, "program"), Path(folder, "gate")
        os.mkfifo(gate)
        program.write_text(f"#!/bin/sh\nread -r word < {gate}\nprintf '%s' '{credentials}'\n")
        program.chmod(0o755)
        config = Exec("client.authentication.k8s.io/v1", str(program))
        try:
            return on_sockets(_identified(ExecPlugin(config), gate, seconds))
        except CredentialsError as exc:
            return str(exc)


async def _identified(plugin: ExecPlugin, gate: Path, seconds: int) -> str:
    running = asyncio.create_task(plugin.identity(0))
    opened = await asyncio.to_thread(os.open, gate, os.O_WRONLY)  # once the program reads it
    await wait(seconds - ALMOST)
    os.close(opened)
    return str((await running).authorization)


def watched(size: int) -> str:
    return str(Watched(Scripted(stream(b"x" * size + b"\n"))).error)


async def extended(size: int) -> str:
    """Returns what becomes of an answer of an extender that has so many bytes, unpacked."""
    answer, _ = await outcome(extenders.says(b'{"NodeNames":["a"]}'.ljust(size)))
    return str(answer)


WIRE: dict[str, Filled] = {
    "CONNECT_SECONDS": Filled(lambda n: on_sockets(dialled(n)), at=False, above=True),
    "CONNECTIONS": Filled(lambda n: on_sockets(connections(n)), at=3, above=3, lowered_to=3),
    "UNREAD_BYTES": Filled(lambda n: on_sockets(is_held_up(n)), at=False, above=True, lowered_to=1000),
    "HEAD_BYTES": Filled(
        lambda n: on_sockets(headed(n)), at="the connection was closed", above="the head of the answer does not end"
    ),
    "EXEC_SECONDS": Filled(run, at="Bearer t", above="has not finished within 60 s"),
    "WATCH_EVENT_BYTES": Filled(watched, at="None", above="an event of more than", lowered_to=1000),
    "EXTENDER_ANSWER_BYTES": Filled(
        lambda n: asyncio.run(extended(n)), at="['a']", above="the answer is longer than 1000 bytes", lowered_to=1000
    ),
}
