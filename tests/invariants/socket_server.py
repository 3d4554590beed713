"""The API server of a world behind a real socket, for schedulers that are processes; and requests that it holds at a
moment.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import httpx
from aiohttp import web

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

    def __init__(self, faults: FaultyTransport, port: int) -> None:
        self.faults = faults
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def a_socket_server(world: World) -> AsyncIterator[SocketServer]:
    """The world's API server for other processes, for as long as the block runs. Its own scheduler ends."""
    await world.life.kill()
    faults = FaultyTransport(world.monitor)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(faults, request)

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield SocketServer(faults, runner.addresses[0][1])
    finally:
        faults.go_down()
        await runner.cleanup()


async def _answer(server: httpx.AsyncBaseTransport, request: web.Request) -> web.StreamResponse:
    """As the server, which goes on with what it has begun even if nobody waits for it any more."""
    asked = httpx.Request(
        request.method,
        f"http://api{request.raw_path}",
        headers=list(request.headers.items()),
        content=await request.read(),
    )
    try:
        found = await server.handle_async_request(asked)
    except httpx.TransportError:
        return _cut(request)
    headers = {
        name: value for name, value in found.headers.items() if name not in ("content-length", "transfer-encoding")
    }
    if "content-length" in found.headers:
        return web.Response(status=found.status_code, headers=headers, body=await found.aread())
    response = web.StreamResponse(status=found.status_code, headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    assert isinstance(found.stream, AsyncIterable)
    try:
        async for chunk in found.stream:
            await response.write(chunk)
        await response.write_eof()
    except (httpx.TransportError, ConnectionError):
        return _cut(request)
    finally:
        await found.aclose()
    return response


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
