"""Small servers on real sockets that misbehave to the byte."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, final

import uvloop

from extender.client.client import Client
from extender.values.targets.target import Target

T = TypeVar("T")

LIST = b'{"kind":"PodList","apiVersion":"v1","items":[]}'

Reply = Callable[["Asked"], Awaitable[bool]]


def pass_time(seconds: float) -> None:
    """From now on it is so much later."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Loop | _UvLoop)
    loop.ahead += seconds


class _Loop(asyncio.SelectorEventLoop):
    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class _UvLoop(uvloop.Loop):
    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@final
@dataclass
class Stage:
    """Tests run on a loop with real time. Whatever hangs fails."""

    loop: type[_Loop | _UvLoop]

    def run(self, test: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(90):
                return await test

        with asyncio.Runner(loop_factory=self.loop) as runner:
            return runner.run(bounded())


STAGES = {"asyncio": Stage(_Loop), "uvloop": Stage(_UvLoop)}


@final
@dataclass
class Asked:
    """One request, and where its answer goes."""

    head: bytes
    body: bytes
    writer: asyncio.StreamWriter

    @property
    def line(self) -> str:
        return self.head.partition(b"\r\n")[0].decode()

    @property
    def peer(self) -> str:
        """The common name of the client certificate; empty when there is none."""
        certificate = self.writer.get_extra_info("peercert")
        return (
            next((value for ((key, value),) in certificate["subject"] if key == "commonName"), "")
            if certificate
            else ""
        )

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: str = "200 OK", body: bytes = LIST, *headers: str) -> bool:
        head = "\r\n".join(
            [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        )
        await self.send(f"{head}\r\n\r\n".encode() + body)
        return True


@final
@dataclass
class Server:
    """What a server has seen."""

    port: int = 0
    connections: int = 0
    still_open: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def secure_url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(reply: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Answers each request with `reply`, which says whether the connection goes on."""
    server = Server()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.still_open += 1
        try:
            while True:
                call = await _read(reader, writer)
                server.asked.append(call)
                if not await reply(call):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            server.still_open -= 1
            writer.transport.abort()

    listening = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return Asked(head, await reader.readexactly(length), writer)


async def ok(call: Asked) -> bool:
    return await call.answer()


@asynccontextmanager
async def asking(
    reply: Reply, secured: ssl.SSLContext | None = None, **target: Any
) -> AsyncIterator[tuple[Client, Server]]:
    """A client, and the server that it asks. `target` is what the client knows of the server besides its address."""
    async with serve(reply, secured) as server:
        client = Client(Target(server.secure_url if secured else server.url, **target))
        try:
            yield client, server
        finally:
            await client.aclose()


@contextmanager
def nobody() -> Iterator[int]:
    """A port at which connections are refused."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextmanager
def black_hole() -> Iterator[int]:
    """A port at which nobody says anything, not even no: too many wait there already."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield full.getsockname()[1]
        for one in waiting:
            one.close()


@contextmanager
def silence() -> Iterator[int]:
    """A port at which connections are made, and nothing is said."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        yield listening.getsockname()[1]


def num_sockets() -> int:
    """How many sockets this process has open; 0 where that cannot be seen."""
    return sum(descriptor.is_socket() for descriptor in Path("/proc/self/fd").glob("*"))


async def closed_down_to(number: int) -> None:
    """Returns when no more than so many sockets are open."""
    while num_sockets() > number:  # noqa: ASYNC110 - the end of a connection takes its way
        await asyncio.sleep(0.01)
