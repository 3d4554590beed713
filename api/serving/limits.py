"""RequestLimits, before the application: how many requests at one time, how large, of which type, and how long they may
take to arrive.

They are raw ASGI, because a limit on a body has to hold while the body is read. A request that breaks a limit is
answered at once, and its connection closed if bytes of it are still to come.
"""

import asyncio
import logging
import sys
from typing import Final, final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.callers.guards import VERBS
from api.callers.http_refusals import RETRY_SOON, Refusal, status_body
from api.kubernetes import kubernetes_app
from api.settings.settings import Settings
from extender.values import limits
from extender.values.klog.setup import report

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")
FORM_PATHS: Final = ("/ui/sign-out",)
"""Paths of forms that work without a script; their bodies are not read."""

_TOOK_TOO_LONG: Final = "Task cancelled, timeout graceful shutdown exceeded"
"""Uvicorn's reason for cancelling requests at the end."""

_TURNS_OF_A_LOOK: Final = 3
"""Turns of the event loop, in one of which it looks at its sockets, and in the next gives on what has come."""

_LOGGER: Final = logging.getLogger(__name__)


@final
class RequestLimits:
    """An ASGI middleware. State: how many requests are being answered, and how many bytes of their bodies are held.

    The verbs, the Kubernetes API of the embedded cluster and everything else have rooms of their own, so that questions
    never keep kube-scheduler waiting. A request takes a place once its body is there: one that arrives slowly costs its
    sender only.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._verb_paths = frozenset(f"{settings.prefix}/{verb}" for verb in VERBS)
        places, limit, body_bytes = settings.max_in_flight, settings.body_limit, settings.max_bodies
        self._verbs = _Room(places, limit, body_bytes)
        # Half of the bytes is for the verbs alone.
        self._questions = _Room(places, min(limit, limits.QUESTION_BYTES), body_bytes // 2)
        # Bodies beyond its limit are refused by the API itself, in upstream's words; it counts its requests and
        # watches, too.
        self._kubernetes = _Room(sys.maxsize, limits.API_BODY_BYTES + 1, max(body_bytes // 2, limits.API_BODY_BYTES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, receive, send, self._room_for(scope))
        try:
            await self._answer(request)
        finally:
            request.leave()

    def _room_for(self, scope: Scope) -> "_Room":
        if scope["path"] in self._verb_paths:
            return self._verbs
        return self._kubernetes if kubernetes_app(scope) is not None else self._questions

    async def _answer(self, request: "_Request") -> None:
        try:
            if request.room is not self._kubernetes:
                self._check_head(request)
            if request.has_whole_body:
                request.enter()
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
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(400, "the content length must be a number")
        if len(length) > 18 or int(length) > request.room.body_limit:
            raise self._too_large(request)
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
            message = await _come_meanwhile(request.receive)
        if message["type"] != "http.request":
            request.is_gone = True
            return message
        is_whole = request.hold(message)
        if request.read_bytes > request.room.body_limit:
            raise self._too_large(request)
        rooms = (self._verbs, self._questions, self._kubernetes)
        if (
            request.room.held_bytes > request.room.max_bytes
            or sum(room.held_bytes for room in rooms) > self._settings.max_bodies
        ):
            raise Refusal(503, "too many bytes of requests are being read at one time", RETRY_SOON)
        if is_whole:
            request.enter()
        return message

    def _too_large(self, request: "_Request") -> Refusal:
        if request.room is self._verbs and not self._settings.full_nodes:
            advice = "set nodeCacheCapable: true for this extender"
            _LOGGER.warning("a body of more than %d bytes was refused; %s", request.room.body_limit, advice)
        return Refusal(413, f"the body has more than {request.room.body_limit} bytes")


async def _come_meanwhile(receive: Receive) -> Message:
    """Returns what has come while the event loop was busy with others. Raises Refusal if nothing has: 408."""
    for _ in range(_TURNS_OF_A_LOOK):
        await asyncio.sleep(0)
    try:
        async with asyncio.timeout(0):
            return await receive()
    except TimeoutError:
        raise Refusal(408, "the body took too long to arrive") from None


@final
class _Room:
    def __init__(self, places: int, body_limit: int, max_bytes: int) -> None:
        """Begins empty, for so many requests at one time, bytes of one body, and bytes of all bodies together."""
        self.places: Final = places
        self.body_limit: Final = body_limit
        self.max_bytes: Final = max_bytes
        self.taken = 0
        self.held_bytes = 0


@final
class _Request:
    def __init__(self, scope: Scope, receive: Receive, send: Send, room: _Room) -> None:
        self.scope: Final = scope
        self.room: Final = room
        self.receive: Final = receive
        self.headers: Final = Headers(scope=scope)
        self.began: Final = asyncio.get_running_loop().time()
        self.read_bytes = 0
        self.has_whole_body = "transfer-encoding" not in self.headers and self.headers.get("content-length", "0") == "0"
        self.is_gone = False
        self._has_place = False
        self._is_answered = False
        self._send: Final = send

    def enter(self) -> None:
        """Takes a place; health probes need none. Raises Refusal: 503 if there is none left."""
        if self.scope["path"].startswith(HEALTH_PATHS):
            return
        if self.room.taken >= self.room.places:
            raise Refusal(503, "too many requests at one time", RETRY_SOON)
        self.room.taken += 1
        self._has_place = True

    def hold(self, message: Message) -> bool:
        """Counts a part of the body; returns whether it was the last one."""
        self.has_whole_body = not message.get("more_body", False)
        length = len(message.get("body", b""))
        self.read_bytes += length
        self.room.held_bytes += length
        return self.has_whole_body

    def leave(self) -> None:
        """Gives back what the request has taken."""
        self.room.taken -= self._has_place
        self.room.held_bytes -= self.read_bytes

    async def send(self, message: Message) -> None:
        """Passes a message on; an answer before the end of the request's body closes the connection."""
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
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refusal.code, "headers": encoded})
        await self.send({"type": "http.response.body", "body": body if self.scope["method"] != "HEAD" else b""})
