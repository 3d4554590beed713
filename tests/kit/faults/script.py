"""A transport with scripted faults around one that works."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, final

import httpx

from tests.kit.faults.streams import CuttableStream, connection_reset

Forward = Callable[[], Awaitable[httpx.Response]]
"""Sends the request to the server; may be called any number of times, or never."""

Action = Callable[["Call", Forward], Awaitable[httpx.Response]]
"""Answers one request with a fault."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@final
@dataclass(frozen=True, slots=True)
class Call:
    """One request, in the terms of Kubernetes' RBAC."""

    verb: str
    """get, list, watch, create, update, patch or delete."""
    resource: str
    """Plural; empty for paths that are no resource, such as /version."""
    namespace: str
    name: str
    subresource: str
    request: httpx.Request = field(repr=False, compare=False)
    at: float = 0.0
    """The event loop's time."""
    group: str = ""
    """The API group; empty for the core group."""

    @property
    def params(self) -> httpx.QueryParams:
        return self.request.url.params

    @staticmethod
    def of(request: httpx.Request, at: float) -> "Call":
        """Returns the call that a request makes."""
        parts = request.url.path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
        rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("finalize", "status"):
            namespace, rest = rest[1], rest[2:]
        resource, name, subresource = (*rest, "", "", "")[:3]
        verb = _VERBS.get(request.method, "get" if name else "list")
        if verb == "list" and request.url.params.get("watch") in ("1", "true"):
            verb = "watch"
        return Call(verb, resource, namespace, name, subresource, request, at, group)


@final
@dataclass(slots=True)
class Fault:
    """Which requests fail, and how.

    Fault(status(500), verb="list", resource="pods", skip=1)     the second list of pods
    Fault(status(503), probability=0.3, times=None)              three in ten requests, for good
    """

    action: Action
    verb: str | None = None
    """None for any, as with the following."""
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    where: Callable[[Call], bool] | None = None
    """A further condition."""
    skip: int = 0
    """The number of matching requests that succeed first."""
    times: int | None = 1
    """The number of times that it strikes; None for no limit."""
    probability: float = 1.0
    struck: int = 0
    """The number of times that it has struck."""

    def strikes(self, call: Call, rng: Random) -> bool:
        """Returns whether the fault strikes this request, and counts it."""
        pairs = (
            (self.verb, call.verb),
            (self.resource, call.resource),
            (self.subresource, call.subresource),
            (self.name, call.name),
        )
        if any(expected is not None and expected != actual for expected, actual in pairs) or (
            self.where is not None and not self.where(call)
        ):
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
    """Records every request, and applies the first fault that strikes it.

    `inner` may be exchanged, which is how a server comes back with another past.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, *faults: Fault, rng: Random | None = None) -> None:
        self.inner = inner
        self.faults = list(faults)
        self.calls: list[Call] = []
        self._rng = rng or Random(0)
        self._open: dict[CuttableStream, None] = {}
        """In the order in which they were opened, so that runs are repeatable."""
        self._is_down = False

    def add(self, *faults: Fault) -> None:
        """Adds faults after the existing ones."""
        self.faults += faults

    def count(self, verb: str, resource: str | None = None) -> int:
        """Returns the number of such requests."""
        return sum(call.verb == verb and resource in (None, call.resource) for call in self.calls)

    @property
    def missed(self) -> list[Fault]:
        """The faults that never struck: a script that misses its target tests nothing."""
        return [fault for fault in self.faults if not fault.struck]

    def go_down(self) -> None:
        """Refuses all connections from now on, and resets the open ones."""
        self._is_down = True
        self.cut()

    def come_up(self) -> None:
        self._is_down = False

    def cut(self, *, cleanly: bool = False) -> None:
        """Ends all watches: with a reset, or as a server does when their time is over."""
        for stream in tuple(self._open):
            stream.cut(None if cleanly else connection_reset())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
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
            response = httpx.Response(
                response.status_code, headers=response.headers, stream=CuttableStream(response.stream, self._open)
            )
        return response

    async def aclose(self) -> None:
        self.cut()
        await self.inner.aclose()
