"""The embedded cluster's Kubernetes API over HTTP: /api, /apis, /version, /openapi and its health."""

import asyncio
from contextlib import aclosing
from typing import Final, final
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.embedded.kube_api import KubeApi
from extender.embedded.requests.request_bodies import MAX_BYTES
from extender.embedded.requests.request_info import Request
from extender.embedded.responses.response import Response, StreamResponse

_ROOTS: Final = frozenset(("api", "apis", "version", "openapi"))


class _GoneError(Exception):
    """The caller hung up."""


class _ClosingError(Exception):
    """The server is about to stop."""


@final
class KubernetesApp:
    """An ASGI application. A watch ends when its caller goes away."""

    def __init__(self, api: KubeApi) -> None:
        self._api: Final = api
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Ends all watches; their callers watch again, here or at another replica."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if body is None:
            return
        answer = self._api.handle(_request(scope, body))
        if isinstance(answer, StreamResponse):
            await _stream(answer, receive, send, self._closing)
        else:
            await _whole(answer, send)


async def _live(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


async def _body(receive: Receive) -> bytes | None:
    """Returns the body, or one byte more than is allowed of a longer one; None if the caller hung up."""
    parts: list[bytes] = []
    left = MAX_BYTES + 1
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")[:left]
        left -= len(part)
        parts.append(part)
        if left == 0 or not message.get("more_body", False):
            return b"".join(parts)


def _request(scope: Scope, body: bytes) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return Request(scope["method"], scope["path"], query, headers, body)


def _start(status: int, headers: dict[str, str]) -> Message:
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}


async def _whole(answer: Response, send: Send) -> None:
    await send(_start(answer.status, {**answer.headers, "Content-Length": str(len(answer.body))}))
    await send({"type": "http.response.body", "body": answer.body})


async def _stream(answer: StreamResponse, receive: Receive, send: Send, closing: asyncio.Event) -> None:
    is_gone = False
    async with aclosing(answer.chunks) as chunks:
        await send(_start(answer.status, dict(answer.headers)))
        try:
            async with asyncio.TaskGroup() as group:
                listening = [group.create_task(_until_gone(receive)), group.create_task(_until_closing(closing))]
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                for task in listening:
                    task.cancel()
        except* _GoneError:
            is_gone = True
        except* _ClosingError:
            pass
    if not is_gone:
        await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _GoneError


async def _until_closing(closing: asyncio.Event) -> None:
    await closing.wait()
    raise _ClosingError


@final
class KubernetesFace:
    """Sends requests for the paths of the Kubernetes API to the embedded cluster, if there is one; all others pass.

    It stands before the limits of the extender's routes: a watch is a request that never ends, and patches have content types of their own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = self._app
        if scope["type"] == "http" and scope["path"].lstrip("/").partition("/")[0] in _ROOTS:
            face = getattr(scope["app"].state, "face", None)
            chosen = self._app if face is None or face.kubernetes is None else face.kubernetes
        await chosen(scope, receive, send)
