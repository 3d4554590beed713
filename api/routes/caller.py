"""Questions asked for one caller: their answers show only the names that the caller may see."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar, final

import msgspec
from fastapi import Request

from api.callers.access import Sight, as_seen_by
from api.callers.hang_up import until_hang_up
from api.callers.http_refusals import RETRY_SOON, Refusal, unreadable_refused
from api.face import Face, answered_in_child, face_of
from extender.answers.cluster_map import ClusterMap, NodeOnMap, hiding
from extender.answers.questions import Questions
from extender.answers.redaction import namespaces_in, redacted
from extender.answers.types import Attempt, Capacity, Decisions, Explanation, Preemptions, Queue, WhatIf, WhatIfRequest
from extender.concurrency.abandoned import in_thread
from extender.evaluation.memory_needs import LARGE, needs_of_objects

Q = TypeVar("Q")
A = TypeVar("A", WhatIf, Capacity)


@final
@dataclass(frozen=True, slots=True)
class _Asked(Generic[Q, A]):
    """A question whose answer takes a simulation, and the ways to it."""

    read: Callable[[], Q]
    created: Callable[[Q], Iterable[object]]
    in_thread: Callable[[Q], Awaitable[A]]
    in_child: Callable[[Q], A]
    kind: type[A]


@final
@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, with the time and the cluster's version when it came.

    A question that may take long ends with a ClientDisconnect when the caller hangs up (`api.callers.hang_up`). One about a namespace whose
    pods the caller may not list is refused with 403.
    """

    request: Request
    face: Face
    questions: Questions
    sight: Sight
    now: datetime
    version: str

    async def map(self) -> ClusterMap:
        shown = self.questions.map()
        may_see = await self._may_see(shown.nodes)
        return shown if may_see is None else msgspec.structs.replace(shown, nodes=tuple(hiding(node, may_see) for node in shown.nodes))

    async def node(self, name: str) -> NodeOnMap | None:
        """Returns one node with its pods; None if there is no node of this name."""
        found = self.questions.node(name)
        may_see = None if found is None else await self._may_see((found,))
        return found if found is None or may_see is None else hiding(found, may_see)

    async def explain(self, namespace: str, name: str, *, picture: bool) -> Explanation | None:
        """Returns why the pod is where it is; None if nothing is known of it."""
        if not await self.sight.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        async with until_hang_up(self.request), self.face.evaluating:
            answer = await self.questions.explain(namespace, name, picture=picture)
        return None if answer is None else await as_seen_by(self.sight, answer)

    async def what_if(self, read: Callable[[], WhatIfRequest], *, is_large: bool = False) -> WhatIf:
        """Returns what would become of every pod concerned.

        Arguments:
            read: returns the question; called in a thread or a child process, once it is its turn.
            is_large: whether the question takes much memory as soon as it is read.
        """
        questions = self.questions
        asked = _Asked(read, lambda question: question.create, questions.what_if, questions.what_if_in_child, WhatIf)
        return await self._simulated(asked, is_large)

    async def capacity(self, namespace: str, name: str, limit: int) -> Capacity | None:
        """Returns how many more pods like this one fit; None if there is no such pod."""
        if not await self.sight.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        async with self._place_to_simulate():
            answer = await self.questions.capacity(namespace, name, limit)
        return None if answer is None else await as_seen_by(self.sight, answer)

    async def capacity_of(self, read: Callable[[], Mapping[str, object]], limit: int, *, is_large: bool = False) -> Capacity:
        """Returns how many of such a pod would fit.

        Arguments:
            read, is_large: as for `what_if`.
        """
        questions = self.questions
        asked = _Asked(
            read,
            lambda pod: [pod],
            lambda pod: questions.capacity_of(pod, limit),
            lambda pod: questions.capacity_of_in_child(pod, limit),
            Capacity,
        )
        return await self._simulated(asked, is_large)

    async def queue(self) -> Queue:
        """Returns the pods that wait."""
        return await as_seen_by(self.sight, self.questions.queue())

    async def decisions(self, limit: int, pod: str | None = None, before: int | None = None) -> Decisions:
        """Returns the last attempts, of all pods or of namespace/name."""
        return await as_seen_by(self.sight, self.questions.decisions(pod, limit, before))

    async def decision(self, number: int, *, picture: bool) -> Attempt | None:
        """Returns the attempt of this id; None if it is not kept any more."""
        found = self.questions.decision(number, picture=picture)
        return None if found is None else await as_seen_by(self.sight, found)

    async def preemptions(self, limit: int, pod: str | None = None) -> Preemptions:
        """Returns the last preemptions, all or those that concern namespace/name."""
        return await as_seen_by(self.sight, self.questions.preemptions(pod, limit))

    @asynccontextmanager
    async def _place_to_simulate(self) -> AsyncIterator[None]:
        """Admits a simulation: one runs at a time, because it takes a processor for long, and only a few wait."""
        if self.face.admitted.locked():
            raise Refusal(503, "too many evaluations at one time", RETRY_SOON)
        async with until_hang_up(self.request), self.face.admitted, self.face.simulating:
            with self.face.freed.given_back():
                yield

    async def _simulated(self, asked: "_Asked[Q, A]", is_large: bool) -> A:
        nodes, pods = self.questions.size
        limit = self.request.app.state.settings.question_memory

        def read_and_checked() -> Q:
            question = asked.read()
            needs_of_objects(asked.created(question), nodes, pods).check(limit)
            return question

        async with self._place_to_simulate():
            with unreadable_refused():
                if is_large:
                    return await self._apart(asked, read_and_checked)
                question = await in_thread(lambda _: read_and_checked())
            if needs_of_objects(asked.created(question), 0, 0).bytes > LARGE:
                return await self._apart(asked, lambda: question)
            return await as_seen_by(self.sight, await asked.in_thread(question))

    async def _apart(self, asked: "_Asked[Q, A]", read: Callable[[], Q]) -> A:
        """Returns the answer of a child process. It may be large itself, so that whatever walks over it does so in a thread."""
        written = await answered_in_child(lambda: msgspec.msgpack.encode(asked.in_child(read())))
        answer = await in_thread(lambda _: msgspec.msgpack.decode(written, type=asked.kind))
        named = await in_thread(lambda _: namespaces_in(answer))
        may_see = await self.sight.namespaces(named) if named else named
        return await in_thread(lambda _: redacted(answer, may_see))

    async def _may_see(self, nodes: tuple[NodeOnMap, ...]) -> frozenset[str] | None:
        """Returns the namespaces of pods on these nodes that the caller may see; None if the caller may see all of them."""
        there = {each.pod.namespace for node in nodes for each in node.pods}
        may_see = await self.sight.namespaces(there) if there else frozenset()
        return None if may_see >= there else may_see


async def caller_of(request: Request) -> Caller:
    """Returns the caller of a request.

    Raises:
        Refusal: 503 while nothing can be answered, 401 if the caller is not known.
    """
    face = face_of(request)
    if face is None or face.backend.questions is None or not face.backend.verbs.is_ready:
        raise Refusal(503, "the service is starting, or does not know the cluster at the moment", RETRY_SOON)
    version = face.backend.questions.version()
    return Caller(request, face, face.backend.questions, await face.access.of(request), datetime.now(UTC), version)
