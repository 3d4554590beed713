"""HTTP/1.1 as far as API servers and extenders use it: one request at a time on a connection, answers of any length.

Bytes are parsed by httptools. This module opens no connections, chooses none, and has no time limits.
"""

import asyncio
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast, final

import httptools

from extender.client.transport.carrier import ClientResponse, CutError, Headers, NotSentError
from extender.values import limits


def head_lines(headers: Headers) -> bytes:
    """Returns the headers as they are sent. Raises ValueError if one contains a line break."""
    text = "".join(f"{name}: {value}\r\n" for name, value in headers)
    if text.count("\r") != len(headers) or text.count("\n") != len(headers):
        raise ValueError("a line break in a header")
    return text.encode("latin-1")


@final
class Connection(asyncio.Protocol):
    """A connection to a server. State: the response in progress, and whether the connection can be reused."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._transport: asyncio.Transport | None = None
        self._response: Http1Response | None = None
        self._loss: CutError | None = None
        self._got_unsolicited = False
        self._keeps_alive = False
        self._is_paused = False
        self._overhead = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self.has_received = False
        """Whether any bytes have come since the last request."""
        self.idle_since = 0.0
        """The event loop's time; set by the carrier."""

    @property
    def transport(self) -> asyncio.Transport:
        """The transport below. Raises CutError if there is none."""
        if self._transport is None:
            raise CutError("there is no connection")
        return self._transport

    @property
    def is_open(self) -> bool:
        """Whether the server has neither closed the connection, as far as is known, nor sent anything unsolicited."""
        if self._loss is not None or self._got_unsolicited or self._transport is None:
            return False
        return not self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether the last response was read to its end, so that another request may be sent."""
        response = self._response
        is_read = response is not None and response.is_complete and not response.is_unread
        return is_read and self._keeps_alive and self.is_open and not self.transport.get_write_buffer_size()

    async def send(
        self, request: bytes, on_close: "Callable[[Connection], None]", deadline: float = math.inf
    ) -> "Http1Response":
        """Sends a request, and returns the response, after which `on_close` is called, once its head is there.

        Raises NotSentError if the connection had ended before, CutError if no head came, TimeoutError at the deadline.
        """
        if not self.is_open:
            self.abort()
            while self._loss is None:  # noqa: ASYNC110 - the event loop is about to say why
                await asyncio.sleep(0)
            raise NotSentError("the connection ended before anything was sent") from self._loss
        self._response = response = Http1Response(self, on_close, deadline)
        self._overhead = 0
        self.has_received = False
        try:
            self.transport.write(request)
            while not response.has_head:
                await response.arrival()
        except BaseException:
            self.abort()
            raise
        return response

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if not self._is_paused and self.is_open:
            self._is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and self.is_open:
            self._is_paused = False
            self.transport.resume_reading()

    def ring_at(self, deadline: float) -> None:
        """Ends the wait for the response at its deadline. One timer serves many requests: it is seldom set again."""
        if deadline >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = asyncio.get_running_loop().call_at(deadline, self._ring)

    # Called by the event loop.

    def _ring(self) -> None:
        self._timer, self._timer_at = None, math.inf
        if self._response is not None:
            self._response.ring()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # It reads and writes, but uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        # It refers to the connection, and is not needed where none is made.
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self.has_received = True
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            self._break(f"what came is no HTTP/1.1: {exc}")
        else:
            if self._overhead > limits.HEAD_BYTES:
                self._break("the head of the answer does not end")
            elif self._got_unsolicited:
                self.abort()
        if self._response is not None:
            self._response.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        cause = exc.with_traceback(None) if exc is not None else ConnectionAbortedError("the connection was closed")
        if self._loss is None:
            self._loss = CutError(str(cause) or type(cause).__name__)
            self._loss.__cause__ = cause
        response = self._response
        if response is not None and not response.is_complete:
            if exc is None and response.ends_with_connection:
                response.is_complete = True
            elif response.error is None:
                response.error = self._loss
            response.wake()
        # They refer to the connection, and it to them. It goes with its last user, and needs no collector to find it.
        self._parser = self._response = self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._response is None or self._response.is_complete:
            self._got_unsolicited = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handles a header or a trailer."""
        response = self._response
        if response is not None and not response.has_head:
            response.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """Handles the end of a head, which may be one of 1xx, after which the response itself follows."""
        status = self._parser.get_status_code()
        is_final = status >= 200 or status == HTTPStatus.SWITCHING_PROTOCOLS
        if self._response is not None and not self._got_unsolicited and is_final:
            self._response.status, self._response.has_head = status, True

    def on_body(self, body: bytes) -> None:
        if self._response is None or self._got_unsolicited:
            return
        self._overhead = 0
        self._response.take(body)

    def on_message_complete(self) -> None:
        response = self._response
        if response is None or self._got_unsolicited:
            return
        if not response.has_head:
            response.headers.clear()  # 1xx: the response itself is still to come
            return
        response.is_complete = True
        self._keeps_alive = self._parser.should_keep_alive()

    def _break(self, why: str) -> None:
        self._loss = CutError(why)
        if self._response is not None and not self._response.is_complete:
            self._response.error = self._loss
        self.abort()


@final
class Http1Response(ClientResponse):
    """A response in progress. `is_complete` and `error` hold how it ended."""

    def __init__(self, connection: Connection, on_close: Callable[[Connection], None], deadline: float) -> None:
        self.status = 0
        self.has_head = False
        """Whether status and headers have arrived."""
        self.headers: dict[bytes, bytes] = {}
        self.is_complete = False
        self.error: CutError | None = None
        self._connection = connection
        self._deadline = deadline
        self._on_close: Callable[[Connection], None] | None = on_close
        self._unread: list[bytes] = []
        self._num_unread = 0
        self._waiting: asyncio.Future[None] | None = None

    @property
    def is_unread(self) -> bool:
        """Whether a part of the body waits for its reader."""
        return bool(self._unread)

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        return self.has_head and b"content-length" not in self.headers and b"transfer-encoding" not in self.headers

    def header(self, name: str) -> str:
        return self.headers.get(name.encode("latin-1"), b"").decode("latin-1")

    async def read_some(self) -> bytes:
        while not self._unread:
            if self.is_complete:
                return b""
            await self.arrival()
        body = self._unread[0] if len(self._unread) == 1 else b"".join(self._unread)
        self._unread.clear()
        self._num_unread = 0
        self._connection.resume()
        return body

    def set_deadline(self, deadline: float) -> None:
        self._deadline = deadline

    async def aclose(self) -> None:
        """Calls `on_close` once; later calls do nothing."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close(self._connection)

    async def arrival(self) -> None:
        """Returns when something has arrived. Raises CutError if nothing more will, TimeoutError at the deadline."""
        if self.error is not None:
            # A new one: the frames that it refers to refer to this response.
            raise CutError(*self.error.args) from self.error.__cause__
        self._connection.ring_at(self._deadline)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    # Called by the connection.

    def take(self, body: bytes) -> None:
        """Adds a part of the body."""
        self._unread.append(body)
        self._num_unread += len(body)
        if self._num_unread > limits.UNREAD_BYTES:
            self._connection.pause()

    def wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def ring(self) -> None:
        """Ends a wait whose deadline has passed."""
        if self._waiting is None or self._waiting.done():
            return
        if asyncio.get_running_loop().time() < self._deadline:
            self._connection.ring_at(self._deadline)
        else:
            self._waiting.set_exception(TimeoutError())
