"""Questions about one cluster, which the engine that decides answers.

An explanation reads the live columns, on the event loop, as the verbs do. A simulation, such as a what-if, works on a
copy of the cluster, in a child process. A question changes nothing. What places pods is loaded when the first question
needs it; a service loads it with its routes (`api/routes/questions.py`), so that its child processes have it.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final

import msgspec

from extender.answers import history, types
from extender.answers.cluster_map import ClusterMaps, DeviceRoom, node_on_map
from extender.answers.explain import queue_places
from extender.answers.explain.explanation import explain, reason_now, settled, unreadable
from extender.answers.explain.queue_places import Registered, WallClock, with_claims
from extender.answers.explain.verdict_tables import as_decided, worked_out_again
from extender.answers.overviews import ClusterMap, Decisions, FoundNames, NodeOnMap, Past, PodList, Preemptions
from extender.answers.parts import PodName
from extender.answers.pending import FITS, NOT_OURS, Pending, pending
from extender.answers.phrases import last_words
from extender.answers.profiles import SingleProfile, stand_in_notes
from extender.answers.records.records import Records
from extender.answers.redaction import SEES_ALL, Visibility, as_seen_by
from extender.answers.search import Population, find, namespaces_with_pods, pods_of, visible_names
from extender.answers.standing import NO_WAITING_PODS, notes_on_hand_placed, placed_on, standing, unbound_claims
from extender.answers.story import story
from extender.answers.what_if.admission import Admits
from extender.engine.cache.cluster import Cluster
from extender.engine.framework import Plugin
from extender.engine.plugins import IN_TREE
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.runtime.cycle import Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import with_long_work
from extender.engine.runtime.queueing_hints import registrations
from extender.engine.runtime.registry import Registry
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.values import limits
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from extender.values.objects.grouping import GroupKey
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.label_syntax import parse_selector
from extender.values.objects.listed_events import ListedEvents
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod

if TYPE_CHECKING:
    from extender.answers.trial import Trial

A = TypeVar("A")

EventsOf = Callable[[str, str, str], Awaitable[ListedEvents]]
"""(kind, namespace, name) -> the Events about that object."""

ATTEMPTS_EXPLAINED: Final = 10
"""The number of attempts in an explanation."""
CLAIMS_ASKED: Final = 3
"""The number of claims of a pod whose Events are asked for."""


@final
class Questions:
    """Answers about one cluster, and about what was decided in it. State: frameworks that only answer."""

    def __init__(
        self,
        configuration: Configuration,
        cluster: Cluster,
        admits: Admits,
        *,
        queue: SchedulingQueue | None = None,
        waiting: WaitingPodsMap = NO_WAITING_PODS,
        records: Records | None = None,
        events: EventsOf | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Makes frameworks of its own. Raises ConfigErrors.

        Arguments:
            cluster: read and never changed.
            admits: makes the API server that objects of questions pass through; called in child processes as well.
            queue: where pods wait; None if another scheduler decides.
            waiting: the pods that Permit plugins hold.
            events: returns the Events about an object; None where nobody can be asked.
        """
        self.configuration: Final = configuration
        self._cluster = cluster
        self._queue = queue
        self._waiting = waiting
        self._records = records or Records()
        self._events = events
        self._now = now
        self._last_clock: WallClock | None = None
        self._reasons: tuple[int, dict[object, str]] = (-1, {})
        """(number of changes, reason by signature of the pod), dropped at the next change."""
        self._maps = ClusterMaps(cluster)
        self._devices = DeviceRoom(cluster)
        self.admits: Final = admits
        self._frameworks = Registry(IN_TREE).make_frameworks(
            configuration, random.Random(0), live=cluster.cache, is_exhaustive=True, may_defer=True
        )
        cluster.narrow(self._frameworks.values())
        self._registered: Mapping[str, Registered] = {
            name: registrations(framework.plugins, has_extenders=bool(configuration.extenders))
            for name, framework in self._frameworks.items()
        }

    @staticmethod
    def of(configuration: Configuration, state: ClusterState, admits: Admits, **options: Any) -> "Questions":
        """Returns the questions about a cluster in a file; `events` may be given further."""
        return Questions(configuration, Cluster.of(state), admits, **options)

    @property
    def about(self) -> Cluster:
        """What is asked about. It is only read."""
        return self._cluster

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of nodes and of pods that every copy of the cluster has."""
        return len(self._cluster.nodes), self._cluster.cache.num_pods + len(self._cluster.pending)

    async def explain(
        self, namespace: str, pod: str, *, picture: bool = False, events: bool = False,
        visibility: Visibility = SEES_ALL,
    ) -> types.Explanation | None:  # fmt: skip
        """Returns why the pod is where it is, and what happened to it; None if nothing is known of such a pod."""
        key = f"{namespace}/{pod}"
        now, itself = await with_long_work(partial(self._as_things_are, namespace, pod, picture=picture))
        listed_events = await self._events_of("Pod", key, visibility) if events else None
        kept_attempts, preemptions = (
            [*self._records.attempts(key)],
            [*islice(self._records.preemptions(key), limits.PREEMPTIONS_TOLD)],
        )
        if (
            now is None
            and not kept_attempts
            and not preemptions
            and not (listed_events is not None and listed_events.items)
        ):
            return None
        queue = self._queue
        place = None if queue is None else queue_places.queue_place(queue, key, self._registered, self._clock())
        since = place.since if place is not None else None if itself is None else itself.metadata.creation_timestamp
        records = [attempt.record for attempt in reversed(kept_attempts)]
        attempts = tuple(map(history.attempt, kept_attempts[:ATTEMPTS_EXPLAINED]))
        pod_story = story(key, itself, self._cluster, records, preemptions[::-1], listed_events, since)
        if now is None:
            victims = (victim for record in preemptions for victim in record.victims)
            names = (*(record.pod for record in records), *(victim.pod for victim in victims))
            name = next((pod_name for pod_name in names if pod_name.key == key), PodName(namespace=namespace, name=pod))
            now = types.Explanation(pod=name, state="Finished", summary=pod_story.text)
        elif now.state in ("Scheduled", "Binding"):
            now = as_decided(now, attempts) or await self._scored_again(now)
        notes = now.notes if itself is None else (*now.notes, *await self._claim_notes(itself, visibility))
        now = msgspec.structs.replace(
            now, queue=place, attempts=attempts, story=pod_story, events=listed_events, notes=notes
        )
        return await as_seen_by(visibility, now)

    async def _events_of(self, kind: str, key: str, visibility: Visibility) -> ListedEvents:
        namespace, _, name = key.partition("/")
        if self._events is None:
            return ListedEvents(why_none="the service has no API server to ask")
        may_list = await visibility.events(namespace)
        why_none = ListedEvents(why_none="you may not list the events of this namespace")
        return await self._events(kind, namespace, name) if may_list else why_none

    async def _claim_notes(self, pod: Pod, visibility: Visibility) -> tuple[str, ...]:
        """Returns notes on the claims of the pod that wait for a volume: what the Events of the first say last."""
        is_stuck = pod.spec.node_name and pod.status.phase != "Running"
        notes = notes_on_hand_placed(pod, self._cluster) if is_stuck else ()
        unbound = unbound_claims(pod, self._cluster.cache.objects) if self._events is not None else ()
        claims = [*islice(unbound, CLAIMS_ASKED)]
        requests = (self._events_of("PersistentVolumeClaim", claim.key, visibility) for claim in claims)
        claim_events = await asyncio.gather(*requests)
        last = (
            last_words(f"the claim {claim.name}", events) for claim, events in zip(claims, claim_events, strict=True)
        )
        return *notes, *last

    def items(self) -> Iterator[HasMetadata]:
        """Yields the objects of the cluster, with the fields that the scheduler reads."""
        return self._cluster.items()

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod with the fields that the scheduler reads; None if there is none."""
        return self._cluster.find(f"{namespace}/{name}")

    async def _as_things_are(
        self, namespace: str, name: str, *, picture: bool
    ) -> tuple[types.Explanation | None, Pod | None]:
        cluster = self._cluster
        nominated = Nominations(cluster.nominees(self._frameworks))  # finds out which pods cannot be read
        pod = cluster.find(f"{namespace}/{name}")
        if pod is None:
            for uid, (unread, why) in cluster.unreadable.items():
                if unread == f"{namespace}/{name}":
                    return unreadable(PodName(namespace=namespace, name=name, uid=uid), why), None
            return None, None
        if pod.spec.node_name:
            return settled(pod, "Scheduled"), pod
        its = self._standing(pod)
        if its.state in ("waiting", "binding"):
            state: Literal["Waiting", "Binding"] = "Waiting" if its.state == "waiting" else "Binding"
            return msgspec.structs.replace(settled(pod, state, its.node, its.text), standing=its), pod
        framework, notes = self._framework_of(pod)
        if framework is None:
            return msgspec.structs.replace(settled(pod, "NotOurs"), standing=its), pod
        if self._placed_by_others():
            with self.trial() as trial:
                cycle = trial.cycle(pod)
                answer = await explain(cycle.framework, cycle.snapshot, pod, cycle.nominations, picture=picture)
        else:
            answer = await explain(framework, cluster.cache.update_snapshot(), pod, nominated, picture=picture)
        its = msgspec.structs.replace(its, now="fits" if answer.feasible_nodes else "refused")
        key = framework.group_of(pod)
        group = None if key is None else await self._group(key)
        summary = answer.summary if group is None else f"{answer.summary} {group.text}."
        notes = *notes, *answer.notes
        return msgspec.structs.replace(answer, summary=summary, group=group, notes=notes, standing=its), pod

    def _standing(self, pod: Pod) -> types.Standing:
        return standing(pod, self._cluster, self._frameworks, self._waiting, self._placed_at)

    def _standing_beyond_message(self, pod: Pod) -> types.Standing | None:
        """Returns None for a pod of which the message of its scheduler says all, as it does of most in a queue."""
        says_little = not pod.status.conditions or pod.metadata.deletion_timestamp or pod.status.nominated_node_name
        return self._standing(pod) if says_little or self._cluster.cache.pod(pod.uid) is not None else None

    def _placed_at(self, pod: Pod) -> str | None:
        last = next(self._records.attempts(pod.key, uid=pod.uid), None)
        return None if last is None or last.record.outcome != "Scheduled" else history.time_text(last.record.time)

    def _placed_by_others(self) -> bool:
        """Returns whether another scheduler has chosen a node for a pod that is still pending here."""
        objects = self._cluster.cache.objects
        return self._queue is None and any(placed_on(pod, objects) for pod in self._cluster.pending.values())

    def _framework_of(self, pod: Pod) -> tuple[Framework | None, tuple[str, ...]]:
        """Returns what decides about the pod, None if another scheduler does, and notes about it."""
        framework = self._frameworks.get(pod.scheduler_name)
        if framework is not None or self._queue is not None or len(self._frameworks) > 1:
            return framework, ()
        # Another scheduler calls the extender, on behalf of a profile of any name.
        only = SingleProfile(*self._frameworks.values())
        return only[pod.scheduler_name], stand_in_notes(only)

    async def _scored_again(self, answer: types.Explanation) -> types.Explanation:
        pod = self._cluster.cache.pod(answer.pod.uid)
        if pod is None:
            return answer
        from extender.answers.trial import recreated  # noqa: PLC0415 - most questions need none of this: see above

        with self.trial() as trial:
            trial.remove(pod)
            return await worked_out_again(trial, recreated(pod), answer)

    async def _group(self, key: GroupKey) -> types.GroupOutcome | None:
        from extender.answers.what_if.group_outcomes import outcome_now  # noqa: PLC0415

        with self.trial() as trial:
            return await outcome_now(trial, key)

    async def explain_of(self, obj: Mapping[str, Any], *, picture: bool = False) -> types.Explanation:
        """Returns why a pod that does not exist would be on its node, or on none.

        It is a pod, a workload, of which one pod is looked at, or a List with one of them and what it refers to. Raises
        QuestionError if it cannot be created, DecodeError if it has the wrong form.
        """
        from extender.answers.what_if.manifests import apply_manifests  # noqa: PLC0415

        items = obj.get("items") if obj.get("kind") == "List" else [obj]
        with self.trial() as trial:
            applied = apply_manifests(trial, items if isinstance(items, list) else [], self.admits)
            if not applied.pods:
                raise types.QuestionError("it has no pods, and nothing creates one now")
            pod, *other_pods = applied.pods
            more = (f"{len(other_pods)} more pods would be created; this is the first",) if other_pods else ()
            if trial.frameworks.get(pod.scheduler_name) is None:
                return settled(pod, "NotOurs")
            cycle = trial.cycle(pod)
            answer = await explain(cycle.framework, cycle.snapshot, pod, cycle.nominations, picture=picture)
            notes = (*stand_in_notes(trial.frameworks), *applied.notes, *more, *answer.notes)
            return msgspec.structs.replace(answer, notes=notes)

    def fork(self) -> Cluster:
        """Returns a copy of the cluster, for those who try something on it."""
        return self._cluster.fork()

    # Simulations. They take long, and are called where nothing waits: in a child process, or in a thread.

    def what_if(self, request: types.WhatIfRequest) -> types.WhatIf:
        """Returns what becomes of every pod concerned. Raises QuestionError, DecodeError or ConfigErrors."""
        from extender.answers.what_if.what_if import what_if  # noqa: PLC0415

        cluster, configuration = self._cluster, self.configuration
        return what_if(cluster, configuration, request, self.admits, for_everybody=self._queue is None)

    def simulate(self, simulation: Callable[..., A], request: object) -> A:
        """Returns what a simulation of a room above answers to its request about this cluster."""
        cluster, configuration = self._cluster, self.configuration
        return simulation(cluster, configuration, request, self.admits, self._now, for_everybody=self._queue is None)

    def capacity(self, pod: str, limit: int | None) -> types.Capacity | None:
        """Returns how many more pods like namespace/name fit; None if there is no such pod."""
        from extender.answers.what_if.capacity import capacity_with_gangs  # noqa: PLC0415

        model_pod = self._cluster.find(pod)
        if model_pod is None:
            return None
        with self.trial() as trial:
            return capacity_with_gangs(trial, model_pod, limit)

    def capacity_of(self, pod: Mapping[str, Any], limit: int | None) -> types.Capacity:
        """Returns how many of such a pod, or of a workload's pods, would fit. Raises QuestionError."""
        from extender.answers.what_if.capacity import capacity_of  # noqa: PLC0415

        with self.trial() as trial:
            return capacity_of(trial, pod, self.admits, limit)

    def trial(
        self,
        configuration: Configuration | None = None,
        plugins: Mapping[str, type[Plugin]] | None = None,
        *,
        asks_for_names: bool = False,
    ) -> AbstractContextManager["Trial"]:
        """Opens a trial in a copy of the cluster; see `Trial.of`. With `asks_for_names`, pods are sorted by their names
        once for all such trials.
        """
        from extender.answers.trial import Trial  # noqa: PLC0415

        if asks_for_names:
            self._cluster.named("")
        configuration, is_alone = configuration or self.configuration, self._queue is None
        return Trial.of(self._cluster, configuration, plugins=plugins, for_everybody=is_alone)

    def decisions(self, pod: str | None, limit: int, before: int | None = None) -> Decisions:
        """Returns the last attempts, of all pods or of namespace/name; newest first."""
        return Decisions(items=tuple(self._attempts(pod, limit, before)), oldest=self._records.oldest)

    def decision(self, number: int, *, picture: bool = False) -> types.Attempt | None:
        """Returns the attempt of this id, with the plugin that refused each node if wanted; None if it is not kept."""
        attempt = self._records.attempt(number)
        return None if attempt is None else history.attempt(attempt, picture=picture)

    def preemptions(self, pod: str | None, limit: int) -> Preemptions:
        """Returns the last preemptions, all or those that concern namespace/name; newest first."""
        return Preemptions(items=tuple(map(history.preemption, islice(self._records.preemptions(pod), limit))))

    async def history(self, *, visibility: Visibility = SEES_ALL, **filters: Any) -> Past:
        """Returns what `PastQuery.of_address` asks for, found by names the caller may see. Raises QuestionError."""
        now = self._now().timestamp()
        query = history.PastQuery.of_address(now, **filters)
        of_time = takewhile(lambda attempt: attempt.record.time >= query.since, self._records.attempts())
        attempts, preemptions = list(islice(of_time, limits.HISTORY_SEARCHED)), list(self._records.preemptions())
        namespaces = {attempt.record.pod.namespace for attempt in attempts}
        namespaces |= {
            pod.namespace for record in preemptions for pod in (record.by, *(victim.pod for victim in record.victims))
        }
        may_see = await visibility.namespaces(namespaces) if namespaces else frozenset[str]()
        return await as_seen_by(visibility, history.past(attempts, preemptions, query, may_see, now))

    async def queue(self) -> types.Queue:
        """Returns the pods that wait, each with its reason."""
        if self._queue is not None:
            queue = queue_places.queue_view(self._queue, self._registered, self._clock())
            queue = self._with_others(queue)
        else:
            queue = queue_places.without_a_queue(self._cluster.pending.values())
            queue = await self._with_reasons(queue_places.with_standings(queue, self._cluster, self._standing))
        return with_claims(queue, self._cluster)

    def _with_others(self, queue: types.Queue) -> types.Queue:
        """Returns the queue with the pods that wait and are in none: placed ones, and those of other schedulers."""
        queued = {place.pod.uid for place in queue.items}
        other_pods = [pod for uid, pod in self._cluster.pending.items() if uid not in queued]
        places = queue_places.without_a_queue(other_pods)
        other_places = queue_places.with_standings(places, self._cluster, self._standing).items
        waiting = tuple(
            place for place in other_places if place.standing is not None and place.standing.state != "binding"
        )
        counts = queue.counts | ({"others": len(waiting)} if waiting else {})
        queue = queue_places.with_standings(queue, self._cluster, self._standing_beyond_message)
        return msgspec.structs.replace(queue, items=(*queue.items, *waiting), counts=counts)

    async def pending(self, *, visibility: Visibility = SEES_ALL) -> Pending:
        """Returns the pods that wait, by reason and workload."""
        return pending(await as_seen_by(visibility, await self.queue()))

    async def _with_reasons(self, queue: types.Queue) -> types.Queue:
        """Returns the queue with a reason for each pod for which no scheduler has given one, as `explain` finds it."""
        if self._reasons[0] != self._cluster.changes:
            self._reasons = self._cluster.changes, {}
        reasons, items = self._reasons[1], []
        for place in queue.items:
            items.append(place)
            is_told = place.message or place.gated_by or (place.standing is not None and place.standing.reason)
            pod = None if is_told else self._cluster.pending.get(place.pod.uid)
            if pod is not None:
                differs = pod.metadata.labels, pod.spec, pod.status.resource_claim_statuses
                signature = pod.namespace, place.workload, msgspec.json.encode(differs)
                if signature not in reasons:
                    reasons[signature] = await with_long_work(partial(self._reason, pod))
                    await asyncio.sleep(0)  # others have their turn
                items[-1] = msgspec.structs.replace(place, message=reasons[signature])
        return msgspec.structs.replace(queue, items=tuple(items))

    async def _reason(self, pod: Pod) -> str:
        framework, _ = self._framework_of(pod)
        if framework is None:
            return NOT_OURS
        nominated = Nominations(self._cluster.nominees(self._frameworks))
        reason = reason_now(framework, self._cluster.cache.update_snapshot(), pod, nominated)
        key = framework.group_of(pod)
        group = None if reason or key is None else await self._group(key)
        return reason or (FITS if group is None or group.scheduled else group.message)

    async def find(self, query: str, limit: int, *, visibility: Visibility = SEES_ALL) -> FoundNames:
        """Returns what has, or had, a name that contains all words of the query."""
        matches = find(Population.of(self._cluster, self._records.names()), query)
        namespaces = {found_name.namespace for found_name in matches.items if found_name.namespace}
        return visible_names(matches, await visibility.namespaces(namespaces), limit)

    async def pods(
        self,
        namespace: str,
        workload: str,
        group: str,
        selector: str,
        query: str,
        state: str,
        sort: str,
        limit: int,
        *,
        visibility: Visibility = SEES_ALL,
    ) -> PodList:
        """Returns the pods that are asked for; without a namespace, also the namespaces. Raises QuestionError."""
        population = Population.of(self._cluster)
        try:
            selected = parse_selector(selector)
        except SelectorError as exc:
            raise types.QuestionError(f"label selector {selector!r}: {exc}") from exc
        choices = () if namespace else namespaces_with_pods(population, self._cluster.cache.update_snapshot())
        may_see = {namespace} if namespace else await visibility.namespaces({choice.namespace for choice in choices})
        pod_list = pods_of(population, may_see, workload, group, selected, query, state, sort, limit)
        return msgspec.structs.replace(
            pod_list, namespaces=tuple(choice for choice in choices if choice.namespace in may_see)
        )

    def cluster(self) -> ClusterMap:
        """Returns the nodes and what is on them; without the pods of a large cluster."""
        return self._maps.now(self._devices.now())

    def node(self, node: str) -> NodeOnMap | None:
        """Returns one node with its pods; None if there is none of this name."""
        return node_on_map(self._cluster, node, self._devices.now())

    def version(self) -> str:
        """Returns a version that changes whenever the cluster, the queue or the records may have changed."""
        cycles = 0 if self._queue is None else self._queue.scheduling_cycle
        return f"{self._cluster.changes}.{self._records.version}.{cycles}"

    def _attempts(self, pod: str | None, limit: int, before: int | None) -> Iterator[types.Attempt]:
        return map(history.attempt, islice(self._records.attempts(pod, before=before), limit))

    def _clock(self) -> WallClock:
        """Returns one clock until the wall clock is set, so that a moment is told in the same second each time."""
        clock, last = WallClock(self._now(), asyncio.get_running_loop().time()), self._last_clock
        if last is None or abs(last.moment(0.0) - clock.moment(0.0)) > timedelta(seconds=1):
            self._last_clock = last = clock
        return last
