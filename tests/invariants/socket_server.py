"""The API server of a world behind a real socket, for schedulers that are processes; and requests that it holds at a
moment.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import httpx

from tests.extender.client.sockets import Asked, serve
from tests.invariants.worlds import World
from tests.kit.faults import Action, Call, FaultyTransport
from tests.kit.faults.script import Forward

SECONDS = 20
"""For things that take a moment; they are waited for, not timed."""


@final
class Hold:
    """One request that stops on its way until it is let go, or never goes on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def go(self) -> None:
        """The request goes on."""
        if not self._decided.done():
            self._decided.set_result(True)

    def drop(self) -> None:
        """The request has never come."""
        if not self._decided.done():
            self._decided.set_result(False)

    def before(self) -> Action:
        """The server has not seen it yet."""

        async def act(call: Call, forward: Forward) -> httpx.Response:
            self.reached.set()
            if not await self._decided:
                raise httpx.ConnectError("connection refused")
            return await forward()

        return act

    def after(self) -> Action:
        """The server has done it, and has not said so yet."""

        async def act(call: Call, forward: Forward) -> httpx.Response:
            response = await forward()
            await response.aread()
            self.reached.set()
            if not await self._decided:
                raise httpx.ReadError("connection reset by peer")
            return response

        return act


@final
class SocketServer:
    """Where processes reach the API server. `faults` is what goes wrong, or is held, on the way."""

    def __init__(self, faults: FaultyTransport, url: str) -> None:
        self.faults = faults
        self.url = url


@asynccontextmanager
async def a_socket_server(world: World) -> AsyncIterator[SocketServer]:
    """The world's API server for other processes, for as long as the block runs. Its own scheduler ends."""
    await world.life.kill()
    faults = FaultyTransport(world.monitor)

    async def answer(request: Asked) -> bool:
        return await _answer(faults, request)

    async with serve(answer) as server:
        try:
            yield SocketServer(faults, server.url)
        finally:
            faults.go_down()


async def _answer(server: httpx.AsyncBaseTransport, request: Asked) -> bool:
    """As the server, which goes on with what it has begun even if nobody waits for it. Whether the connection goes on."""
    method, path, _ = request.line.split(" ")
    headers = httpx.Headers([line.partition(": ")[::2] for line in request.head.decode().strip().split("\r\n")[1:]])
    try:
        response = await server.handle_async_request(
            httpx.Request(method, f"http://api{path}", headers=headers, content=request.body)
        )
    except httpx.TransportError:
        return False
    framing = ("content-length", "transfer-encoding")
    fields = {name: value for name, value in response.headers.items() if name not in framing}
    has_length = "content-length" in response.headers
    if has_length:
        fields["content-length"] = str(len(await response.aread()))
    else:
        fields["transfer-encoding"] = "chunked"
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    try:
        await request.send(f"HTTP/1.1 {response.status_code} Said\r\n{lines}\r\n".encode())
        if has_length:
            await request.send(response.content)
            return True
        assert isinstance(response.stream, AsyncIterable)
        async for chunk in response.stream:
            await request.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await request.send(b"0\r\n\r\n")
    except httpx.TransportError:
        return False
    finally:
        await response.aclose()
    return True
