"""A server that says what it is told to say, and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, final

import httpx

from tests.kit.faults import answers

Answer = httpx.Response | Exception | Callable[[httpx.Request], Any]

OK = {"kind": "PodList", "apiVersion": "v1", "items": []}


@final
class Scripted(httpx.AsyncBaseTransport):
    """Gives its answers one after the other; the last one again and again. An exception is raised; a function is
    called, and waited for.
    """

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers) or [answer()]
        self.asked: list[httpx.Request] = []
        self.times: list[float] = []
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.times.append(asyncio.get_running_loop().time())
        reply = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, httpx.Response):
            return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)
        response = await reply(request)
        assert isinstance(response, httpx.Response)
        return response

    async def aclose(self) -> None:
        self.closed = True


def answer(status: int = 200, body: object = OK, **headers: str) -> httpx.Response:
    """JSON, with headers such as `retry_after="7"`."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers={"content-type": "application/json"} | fields, content=content)


def refusal(status: int, reason: str, message: str = "no", **headers: str) -> httpx.Response:
    return answer(status, answers.status_object(status, message, reason=reason), **headers)


def html(status: int = 200) -> httpx.Response:
    return httpx.Response(
        status, headers={"content-type": "text/html; charset=utf-8"}, content=b"<html>Please log in</html>"
    )


def stream(*chunks: bytes | float | Exception) -> Callable[[httpx.Request], Any]:
    """A watch: bytes are sent, numbers are seconds of silence, an exception cuts the connection. Then it ends."""

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            if isinstance(chunk, bytes):
                yield chunk
            elif isinstance(chunk, Exception):
                raise chunk
            else:
                await asyncio.sleep(chunk)

    async def begin(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body())

    return begin


async def never(_: httpx.Request) -> httpx.Response:
    """A black hole: the request is taken, and nothing comes."""
    await asyncio.sleep(1_000_000)
    raise AssertionError("somebody waited for it")
