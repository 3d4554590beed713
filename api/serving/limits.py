"""RequestLimits before the application: how many requests at one time, how large, of which type, and how long they may take to arrive.

They are raw ASGI, because a limit on a body has to hold while the body is read. A request that breaks a limit is answered at once, and its
connection closed if bytes of it are still to come.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.callers.http_refusals import RETRY_SOON, Refusal, status_body
from api.settings.settings import Settings
from extender.klog.setup import report

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")
FORM_PATHS: Final = ("/ui/sign-out",)
"""Paths of forms that work without a script; their bodies are not read."""

_TOOK_TOO_LONG: Final = "Task cancelled, timeout graceful shutdown exceeded"
"""Uvicorn's reason for cancelling requests at the end."""

_LOGGER: Final = logging.getLogger(__name__)


@final
class RequestLimits:
    """An ASGI middleware. State: how many requests are being answered, and how many bytes of their bodies are held."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._in_flight = 0
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        counted = not _is_probe(scope["path"])
        self._in_flight += counted
        try:
            await self._answer(request, counted)
        finally:
            self._in_flight -= counted
            self._held_bytes -= request.read_bytes

    async def _answer(self, request: "_Request", counted: bool) -> None:
        try:
            if counted and self._in_flight > self._settings.max_in_flight:
                raise Refusal(503, "too many requests at one time", RETRY_SOON)
            self._check_head(request)
            await self._app(request.scope, lambda: self._receive(request), request.send)
        except Refusal as refusal:
            await request.refuse(refusal)
        except ClientDisconnect:
            return  # the caller is gone
        except asyncio.CancelledError as exc:
            # The service ends, and has waited for long enough. A retry is answered by another replica.
            if str(exc) != _TOOK_TOO_LONG:
                raise
            await request.refuse(Refusal(503, "the service is stopping", RETRY_SOON))
        except Exception as exc:
            if request.is_gone:
                return
            number = report(_LOGGER, f"{request.scope['method']} {request.scope['path']}", exc)
            await request.refuse(Refusal(500, f"internal error, id {number}"))

    def _check_head(self, request: "_Request") -> None:
        headers = request.headers
        limit = self._settings.body_limit
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(400, "the content length must be a number")
        if len(length) > 18 or int(length) > limit:
            raise _too_large(limit, self._settings.full_nodes)
        if request.scope["method"] != "POST":
            return
        is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        if not is_json and request.scope["path"] not in FORM_PATHS:
            raise Refusal(415, "the content type must be application/json")
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "the body must be sent as it is, without a content encoding")

    async def _receive(self, request: "_Request") -> Message:
        if request.has_whole_body:
            return await request.receive()
        try:
            async with asyncio.timeout_at(request.began + self._settings.body_seconds):
                message = await request.receive()
        except TimeoutError:
            raise Refusal(408, "the body took too long to arrive") from None
        if message["type"] != "http.request":
            request.is_gone = True
            return message
        request.has_whole_body = not message.get("more_body", False)
        length = len(message.get("body", b""))
        request.read_bytes += length
        self._held_bytes += length
        if request.read_bytes > self._settings.body_limit:
            raise _too_large(self._settings.body_limit, self._settings.full_nodes)
        if self._held_bytes > self._settings.max_bodies:
            raise Refusal(503, "too many bytes are being read at one time", RETRY_SOON)
        return message


@final
class _Request:
    """One request, as far as it has arrived."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope: Final = scope
        self.receive: Final = receive
        self.headers: Final = Headers(scope=scope)
        self.began: Final = asyncio.get_running_loop().time()
        self.read_bytes = 0
        self.has_whole_body = "transfer-encoding" not in self.headers and self.headers.get("content-length", "0") == "0"
        self.is_gone = False
        self._is_answered = False
        self._send: Final = send

    async def send(self, message: Message) -> None:
        """Passes a message on; an answer before the end of the body closes the connection."""
        if message["type"] == "http.response.start":
            self._is_answered = True
            if not self.has_whole_body:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answers with the refusal. If an answer has begun, the connection can only be broken."""
        if self._is_answered:
            raise refusal
        body = status_body(refusal.code, str(refusal), refusal.details)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **refusal.headers}
        await self.send({"type": "http.response.start", "status": refusal.code, "headers": _encoded(headers.items())})
        await self.send({"type": "http.response.body", "body": body if self.scope["method"] != "HEAD" else b""})


def _is_probe(path: str) -> bool:
    return path.startswith(HEALTH_PATHS)


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers]


def _too_large(limit: int, full_nodes: bool) -> Refusal:
    if not full_nodes:
        _LOGGER.warning("a body of more than %d bytes was refused; %s", limit, "set nodeCacheCapable: true for this extender")
    return Refusal(413, f"the body has more than {limit} bytes")
