"""What can go wrong with one request."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx

from extender.testing.faults.script import Action, Call, Forward
from extender.testing.faults.streams import IteratedStream, connection_reset

REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_object(code: int, message: str = "injected", *, reason: str | None = None, details: object = None) -> dict[str, Any]:
    """A Status, as the API server writes it."""
    found: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return found | {"reason": REASONS.get(code, "") if reason is None else reason, "code": code} | ({"details": details} if details else {})


def status(
    code: int, message: str = "injected", *, reason: str | None = None, retry_after: int | None = None, details: object = None
) -> Action:
    """The server refuses; nothing was done."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return answer(json.dumps(status_object(code, message, reason=reason, details=details)), code, headers=headers)


def too_large_resource_version(retry_after: int | None = 1) -> Action:
    """The server is behind what the client has seen elsewhere."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return status(504, "Timeout: Too large resource version: 2, current: 1", retry_after=retry_after, details={"causes": causes})


def answer(
    body: bytes | str, code: int = 200, *, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> Action:
    """This body, whatever was asked."""
    content = body.encode() if isinstance(body, str) else body

    async def act(call: Call, forward: Forward) -> httpx.Response:
        return _response(code, content, {"Content-Type": content_type, **(headers or {})})

    return act


def login_page() -> Action:
    """A proxy that wants to know who we are, with status 200."""
    return answer("<!DOCTYPE html><html><body><form>Please sign in</form></body></html>", content_type="text/html")


def gzip_bomb(size: int = 1 << 28) -> Action:
    """A few bytes that become many."""
    bomb = gzip.compress(b" " * size, 1)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    async def pieces() -> AsyncIterator[bytes]:
        for begin in range(0, len(bomb), 1 << 14):
            yield bomb[begin : begin + (1 << 14)]

    async def act(call: Call, forward: Forward) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=IteratedStream(pieces()))

    return act


def refused() -> Action:
    """Nobody listens."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    return act


def drop_before_commit() -> Action:
    """The connection is reset before the server has read the request."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        raise connection_reset()

    return act


def commit_then_drop() -> Action:
    """The server does it, and its answer is lost."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await (await forward()).aread()
        raise connection_reset()

    return act


def commit_then(other: Action) -> Action:
    """The server does it; the client hears something else."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await (await forward()).aread()
        return await other(call, forward)

    return act


def black_hole() -> Action:
    """The connection is accepted, and that is all that ever happens."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        never: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        return await never

    return act


def commit_late(seconds: float) -> Action:
    """The server does it only so many seconds later, even if nobody waits for it any more."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        async def later() -> httpx.Response:
            await asyncio.sleep(seconds)
            return await forward()

        return await asyncio.shield(asyncio.ensure_future(later()))

    return act


def delay(seconds: float) -> Action:
    """Everything as it should be, only later."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await asyncio.sleep(seconds)
        return await forward()

    return act


def truncate(size: int) -> Action:
    """The answer breaks off after so many bytes."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        response = await forward()
        body = await response.aread()

        async def part() -> AsyncIterator[bytes]:
            yield body[:size]
            raise connection_reset()

        return httpx.Response(response.status_code, headers=response.headers, stream=IteratedStream(part()))

    return act


def slow_body(bytes_per_second: int) -> Action:
    """The answer drips."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        response = await forward()
        body = await response.aread()

        async def dripping() -> AsyncIterator[bytes]:
            for begin in range(0, len(body), bytes_per_second):
                await asyncio.sleep(1)
                yield body[begin : begin + bytes_per_second]

        return httpx.Response(response.status_code, headers=response.headers, stream=IteratedStream(dripping()))

    return act


def edited_json(edit: Callable[[dict[str, Any]], object]) -> Action:
    """The server's JSON, changed in place by `edit`."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        response = await forward()
        body = json.loads(await response.aread())
        edit(body)
        return _response(response.status_code, json.dumps(body).encode(), {"Content-Type": "application/json"})

    return act


def first_time_again() -> Action:
    """The answer that it gave the first time, whatever has happened since: a server that lags behind."""
    first: list[tuple[int, bytes]] = []

    async def act(call: Call, forward: Forward) -> httpx.Response:
        if not first:
            response = await forward()
            first.append((response.status_code, await response.aread()))
        return _response(*first[0], {"Content-Type": "application/json"})

    return act


def _response(code: int, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
    async def whole() -> AsyncIterator[bytes]:
        yield body

    return httpx.Response(code, headers=dict(headers), stream=IteratedStream(whole()))
