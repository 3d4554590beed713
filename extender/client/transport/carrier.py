"""Carrier: sends requests to a server, over sockets (`connections`) or to a transport of httpx (`in_memory`); and the
bodies of responses, decompressed as they arrive, and the lines of a watch.
"""

import asyncio
import math
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol, final

from extender.client.errors import ApiError, NoAnswer, NotKubernetes, Unreachable
from extender.values import limits

Headers = tuple[tuple[str, str], ...]
"""Names and values, without line breaks."""


class ClientRequest(NamedTuple):
    """A request, which errors name by its method and its path."""

    method: str
    path: str
    """Below the server's URL, quoted, perhaps with a query."""
    headers: Headers
    content: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@final
class NotSentError(Exception):
    """There was no connection, so that nothing was sent."""


@final
class CutError(Exception):
    """The request was (perhaps) sent, but the connection was lost (the cause says how), or the response is not HTTP."""


class ClientResponse(ABC):
    """The head of a response, whose body is still to be read."""

    status: int

    @abstractmethod
    def header(self, name: str) -> str:
        """Returns the value of the header, its name in lower case; empty if there is none."""

    @abstractmethod
    async def read_some(self) -> bytes:
        """Returns the next bytes, compressed if the head says so; none at the end. Raises CutError, TimeoutError."""

    @abstractmethod
    def set_deadline(self, deadline: float) -> None:
        """Sets the event loop's time after which `read_some` waits no longer."""

    @abstractmethod
    async def aclose(self) -> None:
        """Stops reading. Must be called once, in any case."""


class Transport(Protocol):
    """A transport of httpx, which is loaded where there is one."""

    async def handle_async_request(self, request: Any) -> Any: ...

    async def aclose(self) -> None: ...


class Carrier(ABC):
    """Carries requests to one server, many at a time."""

    @abstractmethod
    async def send(
        self, request: ClientRequest, connect_seconds: float | None, deadline: float = math.inf
    ) -> ClientResponse:
        """Returns the response as soon as its head has arrived.

        Arguments:
            connect_seconds: the most seconds until there is a connection.
            deadline: the event loop's time until which the head and the body have to arrive.

        Raises:
            NotSentError: there was no connection.
            CutError: no head came.
            TimeoutError: the deadline, or a time limit of the carrier, has passed.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Closes all connections, including those in use."""


@final
class Carried:
    """A block that raises whatever a carrier raises as an ApiError; `waited` are the words before a timeout's seconds.

    That is more than a carrier promises, because event loops, TLS and parsers raise what they like about a connection
    that is lost, and nobody who waits for an answer may end by it.
    """

    __slots__ = ("_request", "_seconds", "_waited")

    def __init__(self, request: object, waited: str, seconds: float) -> None:
        self._request = request
        self._waited = waited
        self._seconds = seconds

    def __enter__(self) -> None: ...

    def __exit__(self, _: type[BaseException] | None, exc: BaseException | None, traceback: object) -> None:
        match exc:
            case None | ApiError():
                return
            case TimeoutError():
                raise NoAnswer(f"{self._request}: {self._waited} {self._seconds:g} s", timed_out=True) from exc
            case NotSentError():
                raise Unreachable(f"{self._request}: {exc}") from exc
            case Exception():
                what = str(exc) if isinstance(exc, CutError) else f"{type(exc).__name__}: {exc}"
                raise NoAnswer(f"{self._request}: no answer: {what}", timed_out=False) from exc


# Bodies.

INFLATED_BYTES: Final = 1 << 20
"""The most bytes that are decompressed at a time; the next ones are decompressed when they are read."""

GZIP: Final = zlib.MAX_WBITS | 16


@final
class Body:
    """The body of a response, which the caller closes.

    Raises NotKubernetes at once for an encoding that was not requested; in `read_some` if it cannot be decompressed.
    """

    def __init__(self, request: object, response: ClientResponse) -> None:
        """`request` is what errors name."""
        self._request = request
        self.response = response
        encoding = response.header("content-encoding")
        if encoding and (encoding := encoding.strip().lower()) not in ("", "identity", "gzip"):
            raise self._broken(f"it is {encoding[:64]!r}")
        self._inflater = zlib.decompressobj(GZIP) if encoding == "gzip" else None

    async def read_some(self) -> bytes:
        """Returns the next bytes; none at the end. Errors of the carrier are passed on, see `Carried`."""
        inflater = self._inflater
        if inflater is None:
            return await self.response.read_some()
        while not inflater.eof:
            packed = inflater.unconsumed_tail or await self.response.read_some()
            if not packed:
                raise self._broken("it breaks off")
            try:
                plain = inflater.decompress(packed, INFLATED_BYTES)
            except zlib.error as exc:
                raise self._broken(str(exc)) from exc
            if plain:
                return plain
        # The response is read to its end, so that the connection can be reused.
        while await self.response.read_some():
            pass
        return b""

    async def read(self, cap: int) -> bytes:
        """Returns the whole body. Raises NotKubernetes if it has more than `cap` bytes."""
        # Its value is not a copy, so that a list of hundreds of megabytes is in memory once.
        whole = BytesIO()
        read_some = self.response.read_some if self._inflater is None else self.read_some
        while part := await read_some():
            whole.write(part)
            if whole.tell() > cap:
                raise NotKubernetes(
                    f"{self._request}: the answer is longer than {cap} bytes", status=self.response.status
                )
        return whole.getvalue()

    def _broken(self, why: str) -> NotKubernetes:
        return NotKubernetes(f"{self._request}: the answer cannot be decompressed: {why}", status=self.response.status)


@final
class WatchLines(AsyncIterator[bytes]):
    """The events of a watch, each a complete line of JSON without its line feed; an incomplete last one is dropped.

    Raises NoAnswer if nothing came for `silence` seconds, or the connection was cut; NotKubernetes if a line does not
    end.
    """

    def __init__(self, request: object, body: Body, silence: float) -> None:
        self._request = request
        self._body = body
        self._silence = silence
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    async def __anext__(self) -> bytes:
        while not self._lines:
            self._body.response.set_deadline(asyncio.get_running_loop().time() + self._silence)
            with Carried(self._request, "not a byte for", self._silence):
                chunk = await self._body.read_some()
            if not chunk:
                raise StopAsyncIteration
            self._split(chunk)
        return self._lines.popleft()

    def arrived(self) -> Sequence[bytes]:
        """Returns the further lines that have already arrived, without waiting. They are not returned again."""
        lines = tuple(self._lines)
        self._lines.clear()
        return lines

    def _split(self, chunk: bytes) -> None:
        first, *further_parts = chunk.split(b"\n")
        self._rest.append(first)
        self._rest_bytes += len(first)
        if self._rest_bytes > limits.WATCH_EVENT_BYTES:
            raise NotKubernetes(f"{self._request}: an event of more than {limits.WATCH_EVENT_BYTES >> 20} MiB")
        if not further_parts:
            return
        *whole, rest = b"".join(self._rest), *further_parts
        self._lines.extend(line for line in whole if line)
        self._rest = [rest]
        self._rest_bytes = len(rest)
