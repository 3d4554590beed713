"""The embedded cluster's Kubernetes API over HTTP: /api, /apis, /version, /openapi and its health."""

import asyncio
from typing import Final, final
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

import reprieve.cluster
from api.callers.http_refusals import RETRY_SOON, Refusal
from api.callers.streaming import send_parts
from extender.values import limits

_ROOTS: Final = frozenset(("api", "apis", "version", "openapi"))


@final
class KubernetesApp:
    """An ASGI application, for which the cluster is loaded. A watch ends when its caller goes away. State: how many
    requests and watches there are.
    """

    def __init__(self, api: "reprieve.cluster.KubeApi") -> None:
        self._api: Final = api
        self._requests = self._watches = 0
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
        if self._requests >= limits.API_REQUESTS:
            raise _too_many("requests")
        # Answers wait for callers to read them; some are large.
        self._requests += 1
        try:
            answer = await self._api.answer(_request(scope, body))
            if not isinstance(answer, reprieve.cluster.StreamResponse):
                headers = {**answer.headers, "Content-Length": str(len(answer.body))}
                await send(_start(answer.status, headers))
                await send({"type": "http.response.body", "body": answer.body})
                return
        finally:
            self._requests -= 1
        await self._watched(answer, receive, send)

    async def _watched(self, answer: "reprieve.cluster.StreamResponse", receive: Receive, send: Send) -> None:
        if self._watches >= limits.API_WATCHES:
            await answer.chunks.aclose()
            raise _too_many("watches")
        self._watches += 1
        try:
            await send_parts(_start(answer.status, dict(answer.headers)), answer.chunks, receive, send, self._closing)
        finally:
            self._watches -= 1


def _too_many(what: str) -> Refusal:
    """Upstream: apiserver/pkg/server/filters/maxinflight.go, tooManyRequests."""
    return Refusal(429, f"Too many {what}, please try again later.", RETRY_SOON)


async def _live(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


async def _body(receive: Receive) -> bytes | None:
    """Returns the body, or one byte more than is allowed of a longer one; None if the caller hung up."""
    parts: list[bytes] = []
    bytes_left = limits.API_BODY_BYTES + 1
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")[:bytes_left]
        bytes_left -= len(part)
        parts.append(part)
        if bytes_left == 0 or not message.get("more_body", False):
            return b"".join(parts)


def _request(scope: Scope, body: bytes) -> "reprieve.cluster.Request":
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return reprieve.cluster.Request(scope["method"], scope["path"], query, headers, body)


def _start(status: int, headers: dict[str, str]) -> Message:
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}


@final
class KubernetesApi:
    """Sends Kubernetes API paths to the embedded cluster, if any; others pass, a HEAD as a GET without a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = kubernetes_app(scope) if scope["type"] == "http" else None
        if chosen is None and scope.get("method") == "HEAD" and scope["path"] != "/v1/stream":  # which never ends
            scope = {**scope, "method": "GET"}
        await (self._app if chosen is None else chosen)(scope, receive, send)


def kubernetes_app(scope: Scope) -> KubernetesApp | None:
    """Returns what answers an HTTP request of the Kubernetes API; None for others, or without an embedded cluster."""
    if scope["path"].lstrip("/").partition("/")[0] not in _ROOTS:
        return None
    service = getattr(scope["app"].state, "service", None)
    return None if service is None else service.kubernetes
