"""One caller and what he may ask: the questions, with the names that he may see in their answers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

import msgspec
from fastapi import Request

from api.access import Sight, as_seen_by
from api.face import Face, face_of
from api.hang_up import until_hang_up
from api.refusals import RETRY_SOON, Refusal
from extender.answers.cluster_map import ClusterMap, NodeOnMap, hiding
from extender.answers.questions import Questions
from extender.answers.types import Attempt, Capacity, Decisions, Explanation, Preemptions, Queue, WhatIf, WhatIfRequest


@final
@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever has sent a request; `now` is when, and `version` what the cluster was then.

    What may take long ends with a ClientDisconnect when he hangs up: see `api.hang_up`.
    """

    request: Request
    face: Face
    questions: Questions
    sight: Sight
    now: datetime
    version: str

    async def map(self) -> ClusterMap:
        """The cluster."""
        shown = self.questions.map()
        may_see = await self._may_see(shown.nodes)
        return shown if may_see is None else msgspec.structs.replace(shown, nodes=tuple(hiding(node, may_see) for node in shown.nodes))

    async def node(self, name: str) -> NodeOnMap | None:
        """One node with its pods; None if there is none of this name."""
        found = self.questions.node(name)
        may_see = None if found is None else await self._may_see((found,))
        return found if found is None or may_see is None else hiding(found, may_see)

    async def explain(self, namespace: str, name: str, *, picture: bool) -> Explanation | None:
        """Why the pod is where it is; None if nothing is known of it; Refusal 403 if it is not for this caller."""
        if not await self.sight.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        async with until_hang_up(self.request), self.face.evaluating:
            answer = await self.questions.explain(namespace, name, picture=picture)
        return None if answer is None else await as_seen_by(self.sight, answer)

    async def what_if(self, question: WhatIfRequest) -> WhatIf:
        """What would become of every pod concerned."""
        async with self._place_to_simulate():
            answer = await self.questions.what_if(question)
        return await as_seen_by(self.sight, answer)

    async def capacity(self, namespace: str, name: str, limit: int) -> Capacity | None:
        """How many more pods like this one fit; None if there is no such pod; Refusal 403 if it is not for this caller."""
        if not await self.sight.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        async with self._place_to_simulate():
            answer = await self.questions.capacity(namespace, name, limit)
        return None if answer is None else await as_seen_by(self.sight, answer)

    async def capacity_of(self, pod: Mapping[str, object], limit: int) -> Capacity:
        """How many of such a pod would fit."""
        async with self._place_to_simulate():
            answer = await self.questions.capacity_of(pod, limit)
        return await as_seen_by(self.sight, answer)

    async def queue(self) -> Queue:
        """Who waits."""
        return await as_seen_by(self.sight, self.questions.queue())

    async def decisions(self, limit: int, pod: str | None = None, before: int | None = None) -> Decisions:
        """The last attempts, of all pods or of namespace/name."""
        return await as_seen_by(self.sight, self.questions.decisions(pod, limit, before))

    async def decision(self, number: int, *, picture: bool) -> Attempt | None:
        """The attempt of this id; None if it is not remembered."""
        found = self.questions.decision(number, picture=picture)
        return None if found is None else await as_seen_by(self.sight, found)

    async def preemptions(self, limit: int, pod: str | None = None) -> Preemptions:
        """The last preemptions, all or those that concern namespace/name."""
        return await as_seen_by(self.sight, self.questions.preemptions(pod, limit))

    @asynccontextmanager
    async def _place_to_simulate(self) -> AsyncIterator[None]:
        """One question at a time takes a processor for long; only a few wait for that."""
        if self.face.admitted.locked():
            raise Refusal(503, "too many evaluations at one time", RETRY_SOON)
        async with until_hang_up(self.request), self.face.admitted, self.face.simulating:
            yield

    async def _may_see(self, nodes: tuple[NodeOnMap, ...]) -> frozenset[str] | None:
        """The namespaces of pods on the nodes that the caller may see; None if these are all of them."""
        there = {each.pod.namespace for node in nodes for each in node.pods}
        may_see = await self.sight.namespaces(there) if there else frozenset()
        return None if may_see >= there else may_see


async def caller_of(request: Request) -> Caller:
    """The caller; Refusal 503 as long as nothing can be answered, 401 if nobody knows who he is."""
    face = face_of(request)
    if face is None or face.backend.questions is None or not face.backend.verbs.is_ready:
        raise Refusal(503, "the service is starting, or does not know the cluster at the moment", RETRY_SOON)
    version = face.backend.questions.version()
    return Caller(request, face, face.backend.questions, await face.access.of(request), datetime.now(UTC), version)
