"""Uvicorn's HTTP/1.1 with limits on a request's line and headers, which uvicorn does not have.

Without them, a connection whose headers never end, and one whose caller does not read the answer, would be held
forever. Connections beyond the limit of file descriptors are answered with 503 for as long as there is room for that.
"""

import asyncio
import logging
import sys
from http import HTTPStatus
from typing import Any, ClassVar, Final, final

import httptools
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from api.callers.http_refusals import RETRY_SOON, status_body
from api.serving.limits import HEALTH_PATHS
from api.settings.settings import Settings
from extender.values import limits

_LOGGER: Final = logging.getLogger(__name__)
_PROBES: Final = tuple(path.encode() for path in HEALTH_PATHS)

_SENT_AWAY_IN_WORDS: Final = 8
"""Connections beyond the limit that get a 503 or a health probe's answer; the oldest give way to further ones."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Use `limited_protocol` to make the class for the settings."""

    settings = Settings()
    max_connections = sys.maxsize
    """Connections at one time, whatever they ask for."""
    surplus: ClassVar["dict[LimitedProtocol, None]"] = {}
    """Connections beyond `max_connections`, in the order in which they came."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._refusal = (HTTPStatus.BAD_REQUEST, "this is not an HTTP request")
        self.app = _UntilClosed(self.app)
        # Made once there is a connection: a TLS handshake that fails leaves the protocol without a word, and the two
        # refer to each other.
        self.parser = None  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            # The oldest surplus connection has had time for its request; a newer one may be a probe.
            for oldest in list(self.surplus)[: len(self.surplus) + 1 - _SENT_AWAY_IN_WORDS]:
                oldest.transport.abort()
                del self.surplus[oldest]
            self.surplus[self] = None
            self._head_timer = self.loop.call_later(self.settings.head_seconds, self._head_is_too_slow)
            return
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._unset_keepalive_if_required()
        self.surplus.pop(self, None)
        super().connection_lost(exc)
        # Requests that wait refer to the connection, and it to them. They go now, and need no collector to find them.
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_timer is not None:
            # The parser keeps an unfinished header to itself, so that only the bytes fed to it tell how long it has
            # become.
            self._head_bytes += len(data)
            if self._head_bytes > self.settings.max_head:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's headers are too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(self.settings.head_seconds, self._head_is_too_slow)

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.settings.max_head or len(self.headers) > self.settings.max_headers:
            self._refusal = (
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the request's headers are too large or too many",
            )
            raise ValueError(self._refusal[1])  # makes the parser stop; data_received answers
        # A list, because a generator takes three times as long, and this is done for each request.
        if [1 for name, value in self.headers if name == b"transfer-encoding" and value.lower() != b"chunked"]:
            self._refusal = HTTPStatus.NOT_IMPLEMENTED, "chunked is the only supported transfer encoding"
            raise ValueError(self._refusal[1])
        if len(self.pipeline) >= limits.REQUESTS_WAITING:
            self._refusal = HTTPStatus.TOO_MANY_REQUESTS, "too many requests wait on one connection"
            raise ValueError(self._refusal[1])
        if self in self.surplus and not self.url.startswith(_PROBES):
            self._refusal = HTTPStatus.SERVICE_UNAVAILABLE, "too many connections at one time"
            raise ValueError(self._refusal[1])
        super().on_headers_complete()
        if self in self.surplus:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        self._refuse(*self._refusal)

    def pause_writing(self) -> None:
        """Makes an answer wait for its reader; one of known length is in memory, and the keep-alive bounds it."""
        if self.cycle is None or self.cycle.chunked_encoding is not False:
            super().pause_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection; aborts one whose caller has not read the last answer yet."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def _head_is_too_slow(self) -> None:
        self._head_timer = None
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request's headers took too long to arrive")

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, code: HTTPStatus, message: str) -> None:
        """Answers and closes; only closes if another answer is under way on this connection."""
        self._stop_head_timer()
        if self.transport.is_closing():
            return
        _LOGGER.info("a request was refused: %s", message)
        is_of_body = not self.pipeline and self.cycle is not None and self.cycle.more_body
        if self.cycle is None or self.cycle.response_complete or (is_of_body and not self.cycle.response_started):
            body = status_body(code, message)
            headers = f"connection: close\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            if code == HTTPStatus.SERVICE_UNAVAILABLE:
                headers += "".join(f"{name}: {value}\r\n" for name, value in RETRY_SOON.items())
            self.transport.write(f"HTTP/1.1 {code} {code.phrase}\r\n{headers}\r\n".encode() + body)
        self.transport.close()


@final
class _UntilClosed:
    """An ASGI middleware that sends nothing more on a closed transport.

    Uvicorn marks only the last request of a connection as disconnected. The answer to an earlier one would be written
    to the closed transport, which raises, as if the service had an error.
    """

    def __init__(self, app: ASGI3Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        cycle: RequestResponseCycle = send.__self__  # type: ignore[attr-defined]

        async def send_while_open(message: ASGISendEvent) -> None:
            await cycle.flow.drain()
            if cycle.transport.is_closing():
                cycle.disconnected = True
            await send(message)

        await self._app(scope, receive, send_while_open)


def limited_protocol(settings: Settings, max_connections: int = sys.maxsize) -> type[LimitedProtocol]:
    """Returns a protocol class with these settings, of which uvicorn makes an instance for each connection."""
    return type(
        "LimitedProtocol", (LimitedProtocol,), {"settings": settings, "max_connections": max_connections, "surplus": {}}
    )
