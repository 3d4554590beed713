"""A transport that goes wrong as its script says, around one that works."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, final

import httpx

from extender.testing.faults.streams import CuttableStream, connection_reset

Forward = Callable[[], Awaitable[httpx.Response]]
"""Sends the request on to the server, which may be done any number of times, or never."""

Action = Callable[["Call", Forward], Awaitable[httpx.Response]]
"""What goes wrong with one request."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@final
@dataclass(frozen=True, slots=True)
class Call:
    """One request, as Kubernetes' RBAC would describe it."""

    verb: str
    """get, list, watch, create, update, patch or delete."""
    resource: str
    """Plural; empty for what is no resource, such as /version."""
    namespace: str
    name: str
    subresource: str
    request: httpx.Request = field(repr=False, compare=False)
    at: float = 0.0
    """The event loop's time."""

    @property
    def params(self) -> httpx.QueryParams:
        """Of the query."""
        return self.request.url.params

    @staticmethod
    def of(request: httpx.Request, at: float) -> "Call":
        """What a request asks for."""
        parts = request.url.path.strip("/").split("/")
        rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("finalize", "status"):
            namespace, rest = rest[1], rest[2:]
        resource, name, subresource = (*rest, "", "", "")[:3]
        verb = _VERBS.get(request.method, "get" if name else "list")
        if verb == "list" and request.url.params.get("watch") in ("1", "true"):
            verb = "watch"
        return Call(verb, resource, namespace, name, subresource, request, at)


@final
@dataclass(slots=True)
class Fault:
    """When something goes wrong, and what.

    Fault(status(500), verb="list", resource="pods", skip=1)     the second list of pods
    Fault(status(503), probability=0.3, times=None)              three in ten requests, for good
    """

    action: Action
    verb: str | None = None
    """None for any; so with the others."""
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    where: Callable[[Call], bool] | None = None
    """A further condition."""
    skip: int = 0
    """So many of the requests that it is about go well before."""
    times: int | None = 1
    """It strikes so often; None for ever."""
    probability: float = 1.0
    struck: int = 0
    """How often it did."""

    def strikes(self, call: Call, rng: Random) -> bool:
        """Whether it is this request's turn; counts."""
        wanted = ((self.verb, call.verb), (self.resource, call.resource), (self.subresource, call.subresource), (self.name, call.name))
        if any(want is not None and want != found for want, found in wanted) or (self.where is not None and not self.where(call)):
            return False
        if self.times is not None and self.struck >= self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.probability < 1.0 and rng.random() >= self.probability:
            return False
        self.struck += 1
        return True


@final
class FaultyTransport(httpx.AsyncBaseTransport):
    """Every request is written down; the first fault whose turn it is decides how it ends.

    `inner` may be exchanged, which is how a server comes back with another past.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, *faults: Fault, rng: Random | None = None) -> None:
        self.inner = inner
        self.faults = list(faults)
        self.calls: list[Call] = []
        self._rng = rng or Random(0)
        self._open: dict[CuttableStream, None] = {}
        """In the order in which they were opened, so that a run can be repeated."""
        self._is_down = False

    def add(self, *faults: Fault) -> None:
        """Further faults, after those that are there."""
        self.faults += faults

    def count(self, verb: str, resource: str | None = None) -> int:
        """How many such requests came."""
        return sum(call.verb == verb and resource in (None, call.resource) for call in self.calls)

    @property
    def missed(self) -> list[Fault]:
        """Faults that never struck: a script that misses its mark tests nothing."""
        return [fault for fault in self.faults if not fault.struck]

    def go_down(self) -> None:
        """Nobody listens any more, and whatever is open is reset."""
        self._is_down = True
        self.cut()

    def come_up(self) -> None:
        """The end of `go_down`."""
        self._is_down = False

    def cut(self, *, cleanly: bool = False) -> None:
        """End all watches: with a reset in the middle of whatever is being said, or as a server does whose time is over."""
        for stream in tuple(self._open):
            stream.cut(None if cleanly else connection_reset())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """What the server answers, or what goes wrong."""
        await request.aread()
        call = Call.of(request, asyncio.get_running_loop().time())
        self.calls.append(call)
        if self._is_down:
            raise httpx.ConnectError("connection refused")

        async def forward() -> httpx.Response:
            return await self.inner.handle_async_request(request)

        fault = next((fault for fault in self.faults if fault.strikes(call, self._rng)), None)
        response = await forward() if fault is None else await fault.action(call, forward)
        if call.verb == "watch" and isinstance(response.stream, httpx.AsyncByteStream):
            response = httpx.Response(response.status_code, headers=response.headers, stream=CuttableStream(response.stream, self._open))
        return response

    async def aclose(self) -> None:
        """Ends what is still open."""
        self.cut()
        await self.inner.aclose()
