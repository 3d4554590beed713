"""The network between one process and the API server: it delays, holds, cuts and duplicates, and writes down what
passes.

It understands HTTP/1.1 as far as both sides speak it here: requests with a Content-Length, answers with one, and
watches, which go on until one side hangs up.

What becomes of a request whose sender is gone is as with TCP: if the sender has reset the connection it never arrives,
if it has closed the connection in order it still does. A write is held for at most LONGEST_DELAY if its sender is
neither gone nor alive (SIGSTOP): a network that holds writes for longer than leaseDuration - renewDeadline can bring
them to an API server that has another leader by then, and nothing but a fencing token would keep it from that.
"""

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, final

import httpx

from bench.jepsen.history import Request
from tests.kit.faults import Call

LONGEST_DELAY: Final = 0.8

CONNECTION_ERRORS: Final = (OSError, asyncio.IncompleteReadError)


class Address:
    """Where the API server listens: another port in each of its lives."""

    port = 0
    life = -1


@final
class Network:
    """Faults are switched on and off by setting attributes; `stop_holding` and `cut` act at once."""

    def __init__(
        self,
        process: str,
        server: Address,
        record: Callable[[Request], None],
        clock: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self.port = 0
        self.request_delay = 0.0
        self.answer_delay = 0.0
        self.copied = 0.0
        """The share of requests that the server gets twice."""
        self.lost = 0.0
        """The share of answers of which nothing arrives, or only a part."""
        self._held: dict[str, bool] = {"requests": False, "answers": False, "leases": False}
        self._passing = asyncio.Event()
        self._process, self._server, self._record, self._clock, self._rng = process, server, record, clock, rng
        self._open: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[Any]] = set()
        """What serves a connection, or is to send a copy."""

    def hold(self, what: str) -> None:
        """Lets no requests, no answers or nothing about leases pass until `stop_holding`."""
        self._held[what] = True
        self._passing.clear()

    def stop_holding(self) -> None:
        self._held = dict.fromkeys(self._held, False)
        self._passing.set()

    def cut(self) -> None:
        """Resets all connections."""
        for writer in self._open:
            writer.transport.abort()

    def heal(self) -> None:
        """Ends all faults."""
        self.request_delay = self.answer_delay = self.copied = self.lost = 0.0
        self.stop_holding()

    async def ends(self) -> None:
        """Resets all connections, and returns when nobody serves any."""
        self.cut()
        while self._running:
            await asyncio.wait([*self._running])

    def _note(self, task: "asyncio.Task[Any] | None") -> None:
        assert task is not None
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection of the process."""
        self._open.add(writer)
        self._note(asyncio.current_task())
        try:
            while await self._pass_one(reader, writer):
                pass
        except CONNECTION_ERRORS:
            pass  # one of the two sides has hung up, and so does the other
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _pass_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(length_of(head))
        method, path, _ = head.decode("latin-1").split(" ", 2)
        call = Call.of(httpx.Request(method, f"http://api{path}"), self._clock())
        await self._hold_request(call, reader)
        if call.verb == "watch":
            await self._watch(head, reader, writer)
            return False
        answer = await self._exchange(call, head, body)
        if self._rng.random() < self.copied:
            copy = asyncio.get_running_loop().create_task(self._again(call, head, body, self._rng.uniform(0, 0.3)))
            self._note(copy)
            if self._rng.random() < 0.5:
                answer = await copy
        await asyncio.sleep(self.answer_delay)
        await self._passes("requests", "answers", "leases" if call.resource == "leases" else "")
        if self._rng.random() < self.lost:
            writer.write(answer[: self._rng.choice((0, 10, len(answer) // 2))])
            with suppress(ConnectionError):
                await writer.drain()
            return False
        writer.write(answer)
        await writer.drain()
        return True

    async def _hold_request(self, call: Call, reader: asyncio.StreamReader) -> None:
        """Raises ConnectionError if the request never arrives."""
        await asyncio.sleep(self.request_delay)
        await self._passes("requests", "leases" if call.resource == "leases" else "")
        error = reader.exception()
        if error is not None:
            raise ConnectionResetError("the sender has reset the connection") from error
        if call.request.method != "GET" and not reader.at_eof() and self._clock() - call.at > LONGEST_DELAY:
            raise ConnectionResetError("held for too long")

    async def _passes(self, *kinds: str) -> None:
        while any(self._held.get(kind) for kind in kinds):
            await self._passing.wait()

    async def _again(self, call: Call, head: bytes, body: bytes, seconds: float) -> bytes:
        await asyncio.sleep(seconds)
        try:
            return await self._exchange(call, head, body, is_copy=True)
        except CONNECTION_ERRORS:
            return b""

    async def _exchange(self, call: Call, head: bytes, body: bytes, *, is_copy: bool = False) -> bytes:
        """Returns the answer of the API server, and records it."""
        life, answer = self._server.life, b""
        reader, upstream = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            upstream.write(head + body)
            start = await reader.readuntil(b"\r\n\r\n")
            answer = start + await reader.readexactly(length_of(start))
        finally:
            upstream.transport.abort()
            if call.request.method != "GET":
                self._record(_request(call, body, answer, self._process, life, self._clock(), is_copy=is_copy))
        return answer

    async def _watch(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what comes until one side has hung up."""
        from_server, upstream = await asyncio.open_connection("127.0.0.1", self._server.port)

        async def pass_on() -> None:
            while chunk := await from_server.read(1 << 16):
                await asyncio.sleep(self.answer_delay)
                await self._passes("requests", "answers")
                writer.write(chunk)
                await writer.drain()

        upstream.write(head[:-2] + b"Connection: close\r\n\r\n")
        tasks = {asyncio.ensure_future(pass_on()), asyncio.ensure_future(reader.read(1))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            upstream.transport.abort()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def a_network(
    process: str,
    server: Address,
    record: Callable[[Request], None],
    clock: Callable[[], float],
    rng: random.Random,
    tls: ssl.SSLContext | None,
) -> AsyncIterator[Network]:
    """Listens for one process for as long as the block runs."""
    network = Network(process, server, record, clock, rng)
    listening = await asyncio.start_server(network.converse, "127.0.0.1", 0, limit=1 << 22, ssl=tls)
    network.port = listening.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        listening.close()
        network.heal()
        await network.ends()


def length_of(head: bytes) -> int:
    """Returns the Content-Length that a head tells; 0 if it tells none."""
    lines = head.lower().split(b"\r\n")
    return next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)


def _request(call: Call, body: bytes, answer: bytes, process: str, life: int, end: float, *, is_copy: bool) -> Request:
    request_body = json.loads(body or b"{}")
    status = int(answer.split(b" ", 2)[1]) if answer else 0
    answer_body = json.loads(answer.partition(b"\r\n\r\n")[2]) if 200 <= status < 300 else {}
    metadata: dict[str, Any] = answer_body.get("metadata") or {}
    identity = {**request_body.get("metadata", {}), **request_body.get("preconditions", {})}
    return Request(
        at=call.at,
        until=end,
        life=life,
        by=process,
        verb=call.verb,
        resource=call.resource,
        subresource=call.subresource,
        name=call.name or identity.get("name", ""),
        uid=identity.get("uid") or metadata.get("uid") or "",
        status=status,
        version=int(metadata.get("resourceVersion") or 0),
        node=request_body.get("target", {}).get("name", ""),
        holder=(request_body.get("spec") or {}).get("holderIdentity") or "" if call.resource == "leases" else "",
        is_copy=is_copy,
    )
