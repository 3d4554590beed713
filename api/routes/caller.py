"""Questions asked for one caller: their answers show only the names that the caller may see."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar, final

import msgspec
from fastapi import Request

from api.callers.access import Visibility, as_seen_by
from api.callers.http_refusals import RETRY_SOON, Refusal, unreadable_refused
from api.callers.streaming import until_hang_up
from api.service_state import ServiceState, service_of
from extender.answers.cluster_map import hiding
from extender.answers.history import PastQuery, past
from extender.answers.overviews import ClusterMap, FoundNames, NodeOnMap, Past, PodList
from extender.answers.pending import Pending, pending
from extender.answers.plan.answer import PlanAnswer, PlanRequest
from extender.answers.questions import Questions
from extender.answers.search import find, namespaces_with_pods, pods_of, seen
from extender.answers.types import (
    Answer,
    Attempt,
    Capacity,
    Decisions,
    Explanation,
    Preemptions,
    Queue,
    WhatIf,
    WhatIfRequest,
)
from extender.client.pod_events import PodEvents
from extender.lab.agreement import Agreement
from extender.values.objects.label_selectors import EVERYTHING, Selector
from extender.values.objects.pod import Pod

A = TypeVar("A", bound=Answer)


@final
@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, with the time and the cluster's version when it came.

    A question that may take long ends with a ClientDisconnect when the caller hangs up (`api.callers.streaming`). One
    about a namespace whose pods the caller may not list is refused with 403.
    """

    request: Request
    service: ServiceState
    questions: Questions
    visibility: Visibility
    now: datetime
    version: str

    async def map(self) -> ClusterMap:
        shown = self.questions.map()
        may_see = await self._may_see(shown.nodes)
        return (
            shown
            if may_see is None
            else msgspec.structs.replace(shown, nodes=tuple(hiding(node, may_see) for node in shown.nodes))
        )

    async def node(self, name: str) -> NodeOnMap | None:
        """Returns one node with its pods; None if there is no node of this name."""
        found = self.questions.node(name)
        may_see = None if found is None else await self._may_see((found,))
        return found if found is None or may_see is None else hiding(found, may_see)

    async def explain(self, namespace: str, name: str, *, picture: bool) -> Explanation | None:
        """Returns why the pod is where it is; None if nothing is known of it."""
        if not await self.visibility.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        async with until_hang_up(self.request):
            answer = await self.questions.explain(namespace, name, picture=picture)
        return None if answer is None else await as_seen_by(self.visibility, answer)

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod as the scheduler knows it; None if there is none, or the caller may not see it."""
        return self.questions.pod(namespace, name) if await self.visibility.namespaces({namespace}) else None

    async def events(self, namespace: str, name: str) -> PodEvents:
        """Returns the Events about the pod, or why they are not shown."""
        ask = self.service.backend.events
        if ask is None:
            return PodEvents(why_none="the service has no API server to ask")
        if not await self.visibility.events(namespace):
            return PodEvents(why_none="you may not list the events of this namespace")
        async with until_hang_up(self.request):
            return await ask(namespace, name)

    async def explain_of(self, read: Callable[[], Mapping[str, object]], *, picture: bool) -> Explanation:
        """Returns why a pod that does not exist would be on its node, or on none. Arguments as `what_if`."""
        # By the worker: to create thousands of objects in a copy of the cluster takes more than a second.
        return await self._simulated(lambda: asyncio.run(self.questions.explain_of(read(), picture=picture)))

    async def what_if(self, read: Callable[[], WhatIfRequest]) -> WhatIf:
        """Returns what would become of every pod concerned.

        Arguments:
            read: returns the question; called by the worker.
        """
        return await self._simulated(lambda: self.questions.what_if(read()))

    async def plan(self, read: Callable[[], PlanRequest]) -> PlanAnswer:
        """Returns the moves of running pods after which new pods fit. Arguments as `what_if`."""
        return await self._simulated(lambda: self.questions.plan(read()))

    async def capacity(self, namespace: str, name: str, limit: int | None) -> Capacity | None:
        """Returns how many more pods like this one fit; None if there is no such pod."""
        if not await self.visibility.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        answer = await self.service.worker.answer(self.request, lambda: self.questions.capacity(namespace, name, limit))
        return None if answer is None else await as_seen_by(self.visibility, answer)

    async def capacity_of(self, read: Callable[[], Mapping[str, object]], limit: int | None) -> Capacity:
        """Returns how many of such a pod would fit. Arguments as `what_if`."""
        return await self._simulated(lambda: self.questions.capacity_of(read(), limit))

    async def queue(self) -> Queue:
        """Returns the pods that wait."""
        return await as_seen_by(self.visibility, self.questions.queue())

    async def pending(self) -> Pending:
        """Returns the pods that wait, by reason and workload."""
        return pending(await self.queue())

    async def find(self, query: str, limit: int) -> FoundNames:
        """Returns what has a name that contains all words of the query, as far as the caller may see it."""
        found = find(self.questions.population(), query)
        return seen(
            found, await self.visibility.namespaces({each.namespace for each in found.items if each.namespace}), limit
        )

    async def pods(
        self, namespace: str, workload: str, group: str, limit: int, selector: Selector = EVERYTHING
    ) -> PodList:
        """Returns the pods of a namespace, a workload or a group; without a namespace, the namespaces that the caller
        may see.
        """
        if namespace and not await self.visibility.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        population = self.questions.population()
        if namespace:
            return pods_of(population, namespace, workload, group, limit, selector)
        there = namespaces_with_pods(population)
        may_see = await self.visibility.namespaces({each.namespace for each in there.namespaces})
        return msgspec.structs.replace(
            there, namespaces=tuple(each for each in there.namespaces if each.namespace in may_see)
        )

    async def decisions(self, limit: int, pod: str | None = None, before: int | None = None) -> Decisions:
        """Returns the last attempts, of all pods or of namespace/name."""
        return await as_seen_by(self.visibility, self.questions.decisions(pod, limit, before))

    async def decision(self, number: int, *, picture: bool) -> Attempt | None:
        """Returns the attempt of this id; None if it is not kept any more."""
        found = self.questions.decision(number, picture=picture)
        return None if found is None else await as_seen_by(self.visibility, found)

    async def preemptions(self, limit: int, pod: str | None = None) -> Preemptions:
        """Returns the last preemptions, all or those that concern namespace/name."""
        return await as_seen_by(self.visibility, self.questions.preemptions(pod, limit))

    async def past(self, query: PastQuery) -> Past:
        """Returns what was decided in a time, by the names that the caller may see."""
        kept, made = self.questions.recorded(query.since)
        named = {each.record.pod.namespace for each in kept} | {
            pod.namespace for each in made for pod in (each.by, *(victim.pod for victim in each.victims))
        }
        may_see = await self.visibility.namespaces(named) if named else frozenset[str]()
        return await as_seen_by(self.visibility, past(kept, made, query, may_see, self.now.timestamp()))

    async def agreement(self, limit: int) -> Agreement | None:
        """Returns how far a shadow agrees with the scheduler; None without a shadow."""
        shadow = self.service.shadow
        return None if shadow is None else await as_seen_by(self.visibility, shadow.agreement(limit))

    async def _simulated(self, ask: Callable[[], A]) -> A:
        with unreadable_refused():
            answer = await self.service.worker.answer(self.request, ask)
        return await as_seen_by(self.visibility, answer)

    async def _may_see(self, nodes: tuple[NodeOnMap, ...]) -> frozenset[str] | None:
        """Returns the namespaces of pods on these nodes that the caller may see; None if the caller may see all of
        them.
        """
        there = {each.pod.namespace for node in nodes for each in node.pods}
        may_see = await self.visibility.namespaces(there) if there else frozenset()
        return None if may_see >= there else may_see


async def caller_of(request: Request) -> Caller:
    """Returns the caller of a request.

    Raises:
        Refusal: 503 while nothing can be answered, 401 if the caller is not known.
    """
    service = service_of(request)
    if service is None or service.backend.questions is None or not service.backend.verbs.is_ready:
        raise Refusal(503, "the service is starting, or does not know the cluster at the moment", RETRY_SOON)
    version = service.backend.questions.version()
    return Caller(
        request, service, service.backend.questions, await service.access.of(request), datetime.now(UTC), version
    )
