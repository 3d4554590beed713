"""What the routes share: the service behind them, and how requests are decoded and answered."""

import asyncio
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, TypeVar, final

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.callers.access import Access, OpenAccess
from api.callers.http_refusals import Refusal, unreadable_refused
from api.callers.memory import FreedMemory
from api.health_record import HealthRecord
from api.kubernetes import KubernetesApp
from api.verb_metrics import VerbMetrics
from extender.assembly.backend import Backend
from extender.lab.shadow import Shadow
from extender.values.concurrency.abandoned import in_thread
from extender.values.concurrency.child_process import ChildEndedError, in_child
from extender.values.metrics.tracing import Tracer
from extender.values.protocol.node_lists import DecodedNodes

T = TypeVar("T")

DECODED_IN_THREAD: Final = 2**20
"""Bodies of more bytes are decoded in a thread, so that other callers are heard meanwhile."""

MAX_EVALUATIONS: Final = 8
"""At one time, counting those that wait."""


@final
class SharedText:
    """A text that is made once for all who wait for it: it takes long, and callers may hang up and ask again faster
    than it is made.

    State: the next text, and when the last one was made and how long that took. A fifth of the time goes into making
    it, if need be.
    """

    def __init__(self) -> None:
        self._next: asyncio.Task[bytes] | None = None
        self._not_before = 0.0

    async def of(self, make: Callable[[], bytes]) -> bytes:
        """Returns what `make` returns when it is called after this."""
        if self._next is None:
            self._next = asyncio.create_task(self._made(make), name="text for all who ask")
        return await asyncio.shield(self._next)

    async def _made(self, make: Callable[[], bytes]) -> bytes:
        await asyncio.sleep(
            max(self._not_before - perf_counter(), 0)
        )  # requests that have arrived with the first one ask, too
        self._next = None
        began = perf_counter()
        try:
            return make()
        finally:
            ended = perf_counter()
            self._not_before = ended + 4 * (ended - began)


@final
@dataclass(frozen=True, slots=True)
class Face:
    """A service and the state of its routes."""

    backend: Backend
    access: Access = field(default_factory=OpenAccess)
    """Decides whose names a caller is shown."""
    kubernetes: KubernetesApp | None = None
    """Serves the Kubernetes API of the embedded cluster; None if a real cluster is followed."""
    cluster: str = ""
    """The URL of the API server of the cluster, as a kubeconfig for it has it; empty if it is not known."""
    checks: HealthRecord = field(default_factory=HealthRecord)
    """How health checks have come out."""
    verb_metrics: VerbMetrics = field(default_factory=VerbMetrics)
    """Counts the calls of the verbs."""
    metrics: SharedText = field(default_factory=SharedText)
    """The text of the metrics, for those who ask for it at the same time."""
    decoded_nodes: DecodedNodes = field(default_factory=DecodedNodes)
    """The nodes that callers have sent, decoded."""
    admitted: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_EVALUATIONS))
    """Held by every evaluation that waits or runs, so that the verbs always find room among the requests in flight."""
    evaluating: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while a small evaluation runs: it takes a processor for a while, and the verbs need one, too."""
    tracer: Tracer | None = None
    """Traces the calls of the verbs; None if nothing is traced."""
    shadow: Shadow | None = None
    """Decides beside the scheduler of the cluster, and compares; None if nothing does."""
    freed: FreedMemory = field(default_factory=FreedMemory)
    """Gives back the memory that questions took."""
    simulating: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while a what-if or a large evaluation runs: that takes much longer, and small evaluations do not wait for
    it.

    While a child process works on one, the first use of each page of memory copies it: nobody should walk over the
    cluster meanwhile.
    """


def face_of(request: HTTPConnection) -> Face | None:
    """Returns the application's face; None while it is starting."""
    face: Face | None = getattr(request.app.state, "face", None)
    return face


LONG: Final = 2**16
"""Bytes of a body that takes more than a millisecond to decode."""


B = TypeVar("B", bound=Sized)


async def decoded(decode: Callable[[B], T], body: B, in_thread_from: int = DECODED_IN_THREAD) -> T:
    """Returns what `decode` makes of the body; JSON that it cannot read is refused.

    Arguments:
        in_thread_from: bodies of more bytes are decoded in a thread.
    """
    with unreadable_refused():
        if len(body) > in_thread_from:
            return await in_thread(lambda _: decode(body))
        value = decode(body)
        if len(body) > LONG:
            await asyncio.sleep(0)  # What is long to read is long to decide about: others get their turn in between.
        return value


async def answered_in_child(answer: Callable[[], T]) -> T:
    """Returns the answer to a large question, which a child process finds."""
    try:
        return await in_child(answer)
    except ChildEndedError as exc:
        raise Refusal(503, f"there is no answer, perhaps for want of memory: {exc}") from exc


def json_response(body: bytes) -> Response:
    """Returns a 200 with a JSON body."""
    return Response(body, media_type="application/json")


@final
class JsonInParts(Response):
    """A 200 with a JSON body whose parts are not put together in memory: some are as large as all nodes of a
    cluster.
    """

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__(media_type="application/json", headers={"content-length": str(sum(map(len, parts)))})
        self._parts: Final = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": self._parts[-1]})
