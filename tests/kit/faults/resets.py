"""A proxy between a client and a server over TCP that resets connections: before a TLS handshake, in it, and after."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from threading import Event, Thread
from typing import Final, final

MOMENTS: Final = (0, 0, 1, 200, 1000, 2500, 10_000)
"""Bytes after which connections are reset. A handshake is some hundred of the client's and 1,000 or 2,000 in all."""


@final
class ResettingProxy:
    """Faults are switched on and off by setting `share`."""

    def __init__(self, server: int, rng: Random) -> None:
        """Opens nothing yet; `server` is a port of this machine."""
        self.port = 0
        self.share = 0.0
        """The share of connections that are reset."""
        self.num_reset = 0
        self._server, self._rng = server, rng
        self._open: set[asyncio.StreamWriter] = set()
        self._conversations: set[asyncio.Task[None]] = set()
        self._started, self._ended = Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def cut(self) -> None:
        """Resets all connections at once, so that all are dialled again at once."""

        def cut() -> None:
            for writer in self._open:
                self._reset(writer)

        self._soon(cut)

    @contextmanager
    def running(self) -> Iterator["ResettingProxy"]:
        """Listens for as long as the block runs, in a thread, so that nothing of the client's loop is in step with it.

        The server may be on the loop that waits here for the thread, and then accepts nothing.
        """
        thread = Thread(target=asyncio.run, args=[self._listen()], daemon=True)
        thread.start()
        self._started.wait()
        try:
            yield self
        finally:
            self._soon(self._ended.set)
            thread.join(60)
            assert not thread.is_alive(), "the proxy does not end"

    def _soon(self, act: Callable[[], object]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(act)

    async def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
            listening.setblocking(False)
            self.port = listening.getsockname()[1]
            self._loop.add_reader(listening, self._accept, listening)
            self._started.set()
            await self._ended.wait()
            self._loop.remove_reader(listening)
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(BlockingIOError):
            accepted, _ = listening.accept()
            conversation = asyncio.ensure_future(self._converse(accepted))
            self._conversations.add(conversation)
            conversation.add_done_callback(self._conversations.discard)
            # One that is cancelled before its first step has not taken the socket over.
            conversation.add_done_callback(lambda _: accepted.close())

    async def _converse(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted)
        bytes_left = self._rng.choice(MOMENTS) if self._rng.random() < self.share else 1 << 62

        async def pass_on(source: asyncio.StreamReader, goal: asyncio.StreamWriter) -> None:
            nonlocal bytes_left
            while bytes_left > 0 and (chunk := await source.read(min(1 << 16, bytes_left))):
                bytes_left -= len(chunk)
                goal.write(chunk)
                await goal.drain()

        self._open.add(writer)
        upstream: asyncio.StreamWriter | None = None
        ways: list[asyncio.Future[None]] = []
        try:
            if bytes_left:
                from_server, upstream = await asyncio.open_connection("127.0.0.1", self._server)
                self._open.add(upstream)
                pairs = ((reader, upstream), (from_server, writer))
                ways = [asyncio.ensure_future(pass_on(source, goal)) for source, goal in pairs]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if bytes_left <= 0:
                self._reset(writer)
        except OSError:
            pass  # the server is away
        finally:
            # First all that needs no wait, since the end of the proxy may cancel this in the middle.
            both = [*filter(None, (writer, upstream))]
            for way in ways:
                way.cancel()
            for open_writer in both:
                open_writer.transport.abort()
                self._open.discard(open_writer)
            await asyncio.gather(*ways, *(open_writer.wait_closed() for open_writer in both), return_exceptions=True)

    def _reset(self, writer: asyncio.StreamWriter) -> None:
        self.num_reset += 1
        with suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
