"""What the routes share: the service behind them, and how requests are decoded, answered, and given up."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import reprieve.lab.shadow
from api.callers.access import Access, OpenAccess
from api.callers.http_refusals import RETRY_SOON, Refusal, unreadable_refused
from api.callers.streaming import Streams
from api.kubernetes import KubernetesApp
from api.verb_metrics import VerbMetrics
from extender.assembly.backend import Backend
from extender.values import limits
from extender.values.concurrency.child_process import (
    ChildEndedError,
    DeadlineError,
    LongAnswerError,
    NoChildError,
    in_child,
)
from extender.values.metrics.metrics import counter, gauge
from extender.values.metrics.tracing import Tracer
from extender.values.protocol.node_lists import DecodedNodes

B = TypeVar("B")
T = TypeVar("T")

_MIB: Final = 2**20


@final
class HealthRecord(Collector):
    """Keeps the last outcome of each check, and counts all outcomes."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], bool] = {}
        self._said: Counter[tuple[str, str, str]] = Counter()

    def note(self, check: str, path: str, *, is_well: bool) -> None:
        """Records the outcome of a check at healthz, livez or readyz."""
        self._last[check, path] = is_well
        self._said[check, "success" if is_well else "error", path] += 1

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        text = "1 if the last run of the check succeeded, else 0."
        yield gauge("kubernetes_healthcheck", text, ("name", "type"), self._last)
        labels = ("name", "status", "type")
        yield counter("kubernetes_healthchecks", "Results of checks, by check and status.", labels, self._said)


@final
class QuestionWorker:
    """Simulates for one question at a time, in a child process bounded in time and memory; for callers in turn, so that
    none waits for more than one question of each of the others.

    State: how many questions of each caller are worked on or wait for their turn.
    """

    def __init__(self, seconds: float = limits.QUESTION_SECONDS, memory: int = limits.QUESTION_MEMORY) -> None:
        self._seconds: Final = seconds
        self._memory: Final = memory
        # One at a time: it takes a processor, and its first use of each page of memory copies it.
        self.turn: Final = asyncio.Lock()
        self._turns: Final[dict[str, asyncio.Lock]] = {}
        self.taken: Final[Counter[str]] = Counter()

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """Returns the result of the work, or raises its exception. The work is as for `in_child`; it reads the question
        as well, so that waiting questions are bytes. When the caller hangs up, the child ends.

        Raises ClientDisconnect then, and Refusal: 503 if too many wait or there is no answer in time, 413 if the answer
        takes too much memory.
        """
        caller = _name_of_caller(request)
        if (self.taken[caller] or len(self.taken)) >= limits.QUESTIONS_AT_ONE_TIME:
            raise Refusal(503, "too many evaluations at one time", RETRY_SOON)
        self.taken[caller] += 1
        turn = self._turns.setdefault(caller, asyncio.Lock())
        try:
            async with UntilHangUp(request), turn, self.turn:
                return await in_child(
                    work, seconds=self._seconds, memory=self._memory, answer=limits.QUESTION_ANSWER_BYTES
                )
        except DeadlineError as exc:
            raise Refusal(503, f"no answer within {self._seconds:g} s: ask about less") from exc
        except MemoryError as exc:
            max_mebibytes = self._memory // _MIB
            raise Refusal(413, f"the answer takes more than {max_mebibytes} MiB of memory: ask about less") from exc
        except LongAnswerError as exc:
            raise Refusal(413, f"{exc}: ask about less") from exc
        except ChildEndedError as exc:
            raise Refusal(413, f"{exc}, perhaps out of memory: the limit is {self._memory // _MIB} MiB") from exc
        except NoChildError as exc:
            raise Refusal(503, f"no process can be started for the answer: {exc}", RETRY_SOON) from exc
        finally:
            self.taken[caller] -= 1
            if not self.taken[caller]:
                del self.taken[caller], self._turns[caller]


def _name_of_caller(request: HTTPConnection) -> str:
    """Returns the user, if there is one that is known, else the address."""
    user = getattr(request.state, "user", None)
    return f"user {user.username}" if user is not None else "" if request.client is None else request.client.host


@final
@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service and the state of its routes."""

    backend: Backend
    access: Access = field(default_factory=OpenAccess)
    """Decides whose names a caller is shown."""
    kubernetes: KubernetesApp | None = None
    """The Kubernetes API of the embedded cluster; None if a real cluster is followed."""
    cluster: str = ""
    """The URL of the API server of the cluster, as a kubeconfig for it has it; empty if it is not known."""
    checks: HealthRecord = field(default_factory=HealthRecord)
    verb_metrics: VerbMetrics = field(default_factory=VerbMetrics)
    decoded_nodes: DecodedNodes = field(default_factory=DecodedNodes)
    """The nodes that callers have sent, decoded."""
    worker: QuestionWorker = field(default_factory=QuestionWorker)
    tracer: Tracer | None = None
    streams: Streams = field(default_factory=Streams)
    """Tells open pages of what changes."""
    shadow: "reprieve.lab.shadow.Shadow | None" = None
    """Decides beside the scheduler of the cluster, and compares; None if nothing does."""

    unsaved: Callable[[], str] = str
    """Returns why the state of the embedded cluster can no longer be saved; empty while it can."""

    def why_over(self) -> str:
        """Returns why the service stopped without being asked to; empty while it runs."""
        return self.backend.why_over() or self.unsaved()


def service_of(request: HTTPConnection) -> ServiceState | None:
    """Returns the application's service; None while it is starting."""
    service: ServiceState | None = getattr(request.app.state, "service", None)
    return service


def decoded(decode: Callable[[B], T], body: B) -> T:
    """Returns what `decode` makes of the body; JSON that it cannot read is refused."""
    with unreadable_refused():
        return decode(body)


@final
class UntilHangUp:
    """Cancels what is awaited in its block when the caller hangs up, and raises ClientDisconnect: nothing is sent."""

    def __init__(self, request: Request, *, is_read: bool = False) -> None:
        """Begins with the block; `is_read` says that the body was read as a stream."""
        self._request: Final = request
        self._is_read: Final = is_read
        self._patience: Final = asyncio.timeout(None)
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if not self._is_read:
            await self._request.body()  # then there is only one thing that can still come
        await self._patience.__aenter__()
        # Most blocks end before the next turn of the loop, and need nobody to listen.
        self._beginning = asyncio.get_running_loop().call_soon(self._listen)

    async def __aexit__(self, *exc: Any) -> None:
        self._beginning.cancel()
        # The frames of a task that was cancelled refer to this object; it must not refer to them.
        listening, self._listening = self._listening, None
        try:
            # First, as it awaits nothing: a hang-up that has just been heard would cancel the wait below.
            await self._patience.__aexit__(*exc)
        except TimeoutError as late:
            # As in `unreadable_refused`: the traceback of the cancellation would hold the request.
            (late.__cause__ or late).with_traceback(None)
            raise ClientDisconnect from None
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.wait([listening])

    def _listen(self) -> None:
        # Not in a TaskGroup, which would wrap whatever the block raises; the task does not outlive the block.
        self._listening = asyncio.create_task(self._hear(), name="listening for a hang-up")

    async def _hear(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self._patience.reschedule(asyncio.get_running_loop().time())


def json_response(body: bytes) -> Response:
    return Response(body, media_type="application/json")


@final
class JsonInParts(Response):
    """A 200 with a JSON body sent in parts: some are as large as all nodes of a cluster."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__(media_type="application/json", headers={"content-length": str(sum(map(len, parts)))})
        self._parts: Final = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts[:-1]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": self._parts[-1]})
