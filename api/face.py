"""What the routes share: the engine, the node bodies it has seen, and how bytes become answers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from api.access import Access, OpenAccess
from api.health_record import HealthRecord
from api.refusals import unreadable_refused
from extender.answers.questions import Questions
from extender.apiserver.informers.health import Health
from extender.config import Configuration
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.protocol.node_lists import DecodedNodes
from extender.verbs.verbs import FilterResult, Victims

T = TypeVar("T")

DECODED_IN_THREAD: Final = 2**20
"""Bodies of more bytes are decoded in a thread, so that other callers are heard meanwhile."""

MAX_EVALUATIONS: Final = 8
"""At one time, counting those that wait."""


class AnswersVerbs(Protocol):
    """What the faces ask of an `extender.verbs.engine.Engine`."""

    @property
    def is_ready(self) -> bool:
        """Whether it can answer."""
        ...

    def filter(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> FilterResult:
        """Which of the asked nodes the pod can run on; VerbError if that cannot be said."""
        ...

    def prioritize(self, pod: Pod, *, node_names: Sequence[str] | None = None, nodes: Sequence[Node] | None = None) -> list[int]:
        """A score for each asked node; VerbError if that cannot be said."""
        ...

    def preempt(self, pod: Pod, candidates: Mapping[str, Victims]) -> dict[str, Victims]:
        """The victims that have to go; VerbError if that cannot be said."""
        ...

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """Bind; VerbError if that did not happen."""
        ...

    async def evaluate(self, scenario: Mapping[str, object]) -> dict[str, object]:
        """All that can be said about a scenario."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Face:
    """The engine behind the routes, and the node bodies of its callers.

    Attributes:
        health: how each resource that is followed is doing.
        leadership: what is wrong with how this replica leads, empty if nothing is; None if there is no other.
        metrics: all of them now, in Prometheus' text format.
        resource_metrics: the same of what every pod asks for.
        configuration: the one that is in force; None if that is not known.
        questions: answers what people ask; None if only the verbs are served.
        access: whose names a caller is shown.
        checks: how health checks have come out.
        admitted: who may wait for an evaluation, so that the verbs always find room among the requests in flight.
        evaluating: who may evaluate: that takes a processor for a while, and the verbs need one too.
        simulating: who may simulate: that takes much longer, and the evaluations of others do not wait for it.
    """

    engine: AnswersVerbs
    health: Callable[[], Sequence[Health]] = tuple
    leadership: Callable[[], str] | None = None
    metrics: Callable[[], bytes] = bytes
    configuration: Configuration | None = None
    questions: Questions | None = None
    access: Access = field(default_factory=OpenAccess)
    resource_metrics: Callable[[], bytes] = bytes
    checks: HealthRecord = field(default_factory=HealthRecord)
    decoded_nodes: DecodedNodes = field(default_factory=DecodedNodes)
    admitted: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_EVALUATIONS))
    evaluating: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    simulating: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))


def face_of(request: HTTPConnection) -> Face | None:
    """The application's face; None while it is starting."""
    face: Face | None = getattr(request.app.state, "face", None)
    return face


async def decoded(decode: Callable[[bytes], T], body: bytes) -> T:
    """Returns what `decode` makes of the body; JSON that it cannot read is refused."""
    with unreadable_refused():
        return await asyncio.to_thread(decode, body) if len(body) > DECODED_IN_THREAD else decode(body)


def json_response(body: bytes) -> Response:
    """200 with a JSON body."""
    return Response(body, media_type="application/json")
