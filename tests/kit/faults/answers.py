"""Faults of one request."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx

from tests.kit.faults.script import Action, Call, Forward
from tests.kit.faults.streams import IteratedStream, connection_reset

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


def status_object(
    code: int, message: str = "injected", *, reason: str | None = None, details: object = None
) -> dict[str, Any]:
    """Returns a Status as the API server writes it."""
    status_fields: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    return (
        status_fields
        | {"reason": REASONS.get(code, "") if reason is None else reason, "code": code}
        | ({"details": details} if details else {})
    )


def status(
    code: int,
    message: str = "injected",
    *,
    reason: str | None = None,
    retry_after: int | None = None,
    details: object = None,
) -> Action:
    """Refuses the request with a Status; nothing is done."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return answer(json.dumps(status_object(code, message, reason=reason, details=details)), code, headers=headers)


def too_large_resource_version(retry_after: int | None = 1) -> Action:
    """Refuses the request because the server lags behind the version that the client has seen elsewhere."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return status(
        504, "Timeout: Too large resource version: 2, current: 1", retry_after=retry_after, details={"causes": causes}
    )


def answer(
    body: bytes | str,
    code: int = 200,
    *,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Action:
    """Answers with this body, whatever was requested."""
    content = body.encode() if isinstance(body, str) else body

    async def act(call: Call, forward: Forward) -> httpx.Response:
        return _response(code, content, {"Content-Type": content_type, **(headers or {})})

    return act


def login_page() -> Action:
    """Answers with the login page of a proxy, with status 200."""
    return answer("<!DOCTYPE html><html><body><form>Please sign in</form></body></html>", content_type="text/html")


def gzip_bomb(size: int = 1 << 28) -> Action:
    """Answers with a few bytes that decompress to many."""
    bomb = gzip.compress(b" " * size, 1)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    async def pieces() -> AsyncIterator[bytes]:
        for begin in range(0, len(bomb), 1 << 14):
            yield bomb[begin : begin + (1 << 14)]

    async def act(call: Call, forward: Forward) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=IteratedStream(pieces()))

    return act


def refused() -> Action:
    """Returns an action that refuses the connection."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    return act


def drop_before_commit() -> Action:
    """Resets the connection before the server has read the request."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        raise connection_reset()

    return act


def commit_then_drop() -> Action:
    """Lets the server perform the request, and resets the connection instead of answering."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await (await forward()).aread()
        raise connection_reset()

    return act


def commit_then(other: Action) -> Action:
    """Lets the server perform the request, and answers with another action."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await (await forward()).aread()
        return await other(call, forward)

    return act


def black_hole() -> Action:
    """Accepts the connection and never answers."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        never: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        return await never

    return act


def commit_late(seconds: float) -> Action:
    """Lets the server perform the request this many seconds later, even if the client no longer waits."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        async def later() -> httpx.Response:
            await asyncio.sleep(seconds)
            return await forward()

        return await asyncio.shield(asyncio.ensure_future(later()))

    return act


def delay(seconds: float) -> Action:
    """Forwards the request this many seconds later."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        await asyncio.sleep(seconds)
        return await forward()

    return act


def truncate(size: int) -> Action:
    """Resets the connection after this many bytes of the answer."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        response = await forward()
        body = await response.aread()

        async def part() -> AsyncIterator[bytes]:
            yield body[:size]
            raise connection_reset()

        return httpx.Response(response.status_code, headers=response.headers, stream=IteratedStream(part()))

    return act


def slow_body(bytes_per_second: int) -> Action:
    """Sends the answer at this rate."""

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
    """Answers with the server's JSON, changed in place by `edit`."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        response = await forward()
        body = json.loads(await response.aread())
        edit(body)
        return _response(response.status_code, json.dumps(body).encode(), {"Content-Type": "application/json"})

    return act


def first_time_again() -> Action:
    """Repeats the first answer, whatever has happened since, as a server that lags behind."""
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
