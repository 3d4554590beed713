"""Follows a cluster that another scheduler schedules, and decides each of its pods beside it, in the state that it saw.

A pod that gets its node is decided in the cluster without that binding: with the pods that were bound before it, and
without those bound after. A pod that stays pending is decided when its condition says so. The shadow has a cluster of
its own, a second behind, so that it also knows what came next: where the decisions differ, it looks whether they agree
once what happened at about that time comes in another order, because bindings are written in another order than
decided, and a watch shows changes later to one client than to another.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime
from itertools import islice
from time import thread_time
from typing import Final, final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from extender.answers.parts import PodName
from extender.assembly.backend import Tap
from extender.engine.cache.cluster import Cluster
from extender.engine.reporter import Decided
from extender.values.config.configuration import Configuration
from extender.values.golang.times import rfc3339
from extender.values.klog.logger import Logger
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.agreement import Agreement, Difference, ShadowCosts
from reprieve.lab.shadow.changes import Evictions, ObservedChange, ObservedEviction, Preemptor, decision_in, evicted_in
from reprieve.lab.shadow.comparison import UNSCHEDULABLE, Cause, Compared, DecisionComparer, main_reason
from reprieve.lab.shadow.states import BeforeBinding, Key, in_another_order
from reprieve.lab.shadow.tally import AgreementTally, shape_of, share_of

SETTLING: Final = 1.0
"""Seconds for which a decision waits for events of about the same time."""
LOOKS: Final = 12
"""The number of changes before a decision, and of placements after it, that are tried in another order."""
PEEKED: Final = 200
"""The number of changes after a decision that are searched for placements."""

_LOG: Final = Logger(__name__)


@final
class Shadow:
    """State: a cluster of its own, the changes that wait for it, the last ones it took in, and the tally."""

    def __init__(
        self,
        configuration: Configuration,
        name: str = "default",
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Begins with an empty cluster, in the event loop that will run it. Raises ConfigErrors.

        `name` is the configuration's name in the answer, `now` the time of day.
        """
        self._name = name
        self._now = now
        self._since = now()
        self._cluster = Cluster()
        self._comparer = DecisionComparer(configuration, self._cluster)
        self._has_groups = configuration.feature_gates.enabled("GenericWorkload")
        self._waiting: deque[ObservedChange] = deque()
        self._taken_in: deque[ObservedChange] = deque(maxlen=LOOKS)
        self._has_more = asyncio.Event()
        self._has_none = asyncio.Event()
        self._is_behind = False
        self._decisions, self._seconds = 0, 0.0
        self._chosen: dict[str, str] = {}
        self._evictions = Evictions()
        self._before_binding = BeforeBinding(self._cluster)
        self.tally: Final = AgreementTally()

    def tap(self) -> Tap:
        return Tap(changed=self.changed, run=self.run, metrics=self.metrics)

    # What happens.

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        self._waiting.append(ObservedChange(asyncio.get_running_loop().time(), old, new))
        self._has_more.set()

    async def caught_up(self) -> None:
        """Returns once all changes so far are decided."""
        if self._waiting:
            self._has_none.clear()
            await self._has_none.wait()

    async def run(self) -> None:
        """Decides beside the scheduler until cancelled."""
        while True:
            if not self._waiting:
                self._has_none.set()
                self._has_more.clear()
                await self._has_more.wait()
            try:
                await self._look_at(self._waiting[0])
            except Exception as exc:
                # A plugin is wrong about one pod; the other decisions are compared all the same.
                _LOG.exception(exc, "The shadow could not decide", pod=self._waiting[0].old)
                self.tally.not_decided["an error, which is in the log"] += 1
            self._take_in()
            await asyncio.sleep(0)  # the first sync brings very many changes

    async def _look_at(self, change: ObservedChange) -> None:
        if len(self._waiting) > limits.SHADOW_CHANGES:
            self._is_behind = True
        theirs = decision_in(change.old, change.new)
        pod = change.old
        if theirs is None or not isinstance(pod, Pod):
            self._see_eviction(change)
            return
        if theirs.node and self._is_known_choice(change, pod, theirs.node):
            self._before_binding.forget(pod)
            return
        if self._is_behind and len(self._waiting) > 1:
            self.tally.not_decided["the shadow was behind"] += 1
        elif pod.scheduler_name not in self._comparer.frameworks:
            self.tally.not_decided["pods of other schedulers"] += 1
        elif self._has_groups and pod.spec.scheduling_group is not None:
            self.tally.not_decided["members of pod groups"] += 1
        elif not theirs.node and theirs.status != UNSCHEDULABLE:
            self.tally.not_decided["attempts of the scheduler that ended with an error"] += 1
        else:
            self._is_behind = False
            pause = change.time + SETTLING - asyncio.get_running_loop().time()
            if pause > 0:
                await asyncio.sleep(pause)
            with self._before_binding.of(pod) as unbound:
                await self._decide(change, pod, theirs, unbound)
        if theirs.node:
            self._before_binding.forget(pod)

    def _is_known_choice(self, change: ObservedChange, pod: Pod, node: str) -> bool:
        """Whether the binding follows a nomination of the same node; nominations are noted here."""
        if isinstance(change.new, Pod) and change.new.spec.node_name:
            return self._chosen.pop(pod.uid, "") == node
        self._chosen[pod.uid] = node
        return False

    def _take_in(self) -> None:
        change = self._waiting.popleft()
        self._before_binding.see(change)
        self._cluster.changed(change.old, change.new)
        if change.old is not None and change.new is None:
            self._chosen.pop(change.old.metadata.uid, None)
        if change.matters:
            self._taken_in.append(change)

    # Decisions.

    async def _decide(self, change: ObservedChange, pod: Pod, theirs: Decided, unbound: Container[Key]) -> None:
        compared = await self._compared(pod, theirs, explains=True)
        shape, reason = shape_of(pod), main_reason(theirs.message)
        if compared.verdict == "not-decided":
            self.tally.not_decided[compared.ours.message] += 1
            return
        is_clear = compared.verdict != "different" or not await self._in_another_order(
            change, pod, theirs, unbound, _agrees
        )
        if theirs.nominated and theirs.nominated != pod.status.nominated_node_name:
            would_go = (
                () if compared.verdict == "different" else await self._would_go(change, pod, theirs, unbound, compared)
            )
            for eviction in self._evictions.preempts(theirs.nominated, Preemptor(pod, would_go, is_clear)):
                self._judge(eviction)
        if compared.verdict != "different":
            self.tally.agreed(compared.verdict, shape, reason, compared.plugins)
            return
        cause = compared.cause or Cause("elsewhere")
        difference = Difference(
            time=rfc3339(self._now()),
            pod=PodName.of(pod),
            kind=cause.kind,
            shape=shape,
            plugin=cause.plugin,
            reason=cause.reason,
            theirs=theirs,
            ours=compared.ours,
            is_clear=is_clear,
            victims=tuple(map(PodName.of, compared.victims)),
        )
        self.tally.differed(difference, reason, compared.plugins)

    async def _compared(self, pod: Pod, theirs: Decided, *, explains: bool) -> Compared:
        began = thread_time()
        compared = await self._comparer.compare(pod, theirs, explains=explains)
        self._seconds += thread_time() - began
        self._decisions += explains
        await asyncio.sleep(0)
        return compared

    async def _would_go(
        self, change: ObservedChange, pod: Pod, theirs: Decided, unbound: Container[Key], compared: Compared
    ) -> tuple[Pod, ...]:
        """Returns our victims on their node, in a state that explains the evictions there, if there is one."""
        victims_there = self._evictions.unexplained(theirs.nominated)
        victims = (evicted_in(neighbour.old, neighbour.new) for neighbour in self._near(change))
        victims_there += [
            victim for victim in victims if victim is not None and victim.spec.node_name == theirs.nominated
        ]

        def explains(state: Compared) -> bool:
            return _agrees(state) and all(map(Preemptor(pod, state.victims_there, is_clear=True).needs, victims_there))

        other = None if explains(compared) else await self._in_another_order(change, pod, theirs, unbound, explains)
        return (other or compared).victims_there

    async def _in_another_order(
        self,
        change: ObservedChange,
        pod: Pod,
        theirs: Decided,
        unbound: Container[Key],
        holds: Callable[[Compared], bool],
    ) -> Compared | None:
        """Returns the first comparison that holds, among the states that the scheduler may have seen."""

        async def compares() -> Compared | None:
            compared = await self._compared(pod, theirs, explains=False)
            return compared if holds(compared) else None

        earlier = [
            neighbour
            for neighbour in reversed(self._taken_in)
            if change.time - neighbour.time <= SETTLING and neighbour.key not in unbound
        ]
        later = [neighbour for neighbour in self._near(change) if neighbour.is_placement][:LOOKS]
        return await in_another_order(self._cluster, earlier, later, compares)

    def _near(self, change: ObservedChange) -> list[ObservedChange]:
        """Returns the waiting changes of about the time of the first one."""
        return [
            neighbour for neighbour in islice(self._waiting, 1, 1 + PEEKED) if neighbour.time - change.time <= SETTLING
        ]

    # Victims.

    def _see_eviction(self, change: ObservedChange) -> None:
        victim = evicted_in(change.old, change.new)
        eviction = None if victim is None or self._is_behind else self._evictions.evicted(victim)
        if eviction is not None:
            self._judge(eviction)

    def _judge(self, eviction: ObservedEviction) -> None:
        victim, preemptor = eviction.victim, eviction.preemptor
        if preemptor.needs(victim):
            self.tally.victim(None)
            return
        spared = Difference(
            time=rfc3339(self._now()),
            pod=PodName.of(victim),
            kind="spared",
            shape=shape_of(victim),
            reason=f"{preemptor.pod.key} fits without evicting it",
            theirs=Decided(status="Evicted", nominated=victim.spec.node_name),
            ours=Decided(node=victim.spec.node_name),
            is_clear=preemptor.is_clear,
            preemptor=PodName.of(preemptor.pod),
        )
        self.tally.victim(spared)

    # Findings.

    def metrics(self) -> Iterator[Metric]:
        yield from self.tally.metrics()
        yield CounterMetricFamily(
            "reprieve_shadow_seconds", "CPU time that the shadow took to decide.", value=self._seconds
        )
        yield GaugeMetricFamily(
            "reprieve_shadow_behind_seconds", "How far the shadow is behind the cluster.", value=self.behind
        )

    def agreement(self, limit: int = 100) -> Agreement:
        tally = self.tally
        kinds: Counter[str] = Counter()
        for (kind, _), count in tally.kinds.items():
            kinds[kind] += count
        return Agreement(
            configuration=self._name,
            since=rfc3339(self._since),
            until=rfc3339(self._now()),
            total=share_of(tally.total, "all"),
            not_decided=tally.not_decided.total(),
            by_kind=dict(kinds),
            by_plugin=tally.shares(tally.by_plugin),
            by_shape=tally.shares(tally.by_shape),
            by_reason=tally.shares(tally.by_reason),
            evicted=tally.evicted,
            spared=tally.spared,
            differences=tuple(islice(reversed(tally.differences), limit)),
            costs=ShadowCosts(
                seconds=round(self._seconds, 6),
                per_decision=round(self._seconds / self._decisions, 6) if self._decisions else 0.0,
                behind=round(self.behind, 3),
                waiting=len(self._waiting),
            ),
            notes=self._notes(),
        )

    @property
    def behind(self) -> float:
        """The seconds for which the next change has waited too long."""
        if not self._waiting:
            return 0.0
        return max(0.0, asyncio.get_running_loop().time() - self._waiting[0].time - SETTLING)

    def _notes(self) -> tuple[str, ...]:
        notes = [f"not compared: {count} x {why}" for why, count in self.tally.not_decided.most_common(5)]
        if len(self._cluster.nodes) > MIN_SAMPLED:
            notes.append(
                f"with more than {MIN_SAMPLED} nodes kube-scheduler evaluates only a part of them, unless "
                "percentageOfNodesToScore is 100; the shadow evaluates all"
            )
        return tuple(notes)


MIN_SAMPLED: Final = 100
"""Clusters of up to so many nodes are not sampled by kube-scheduler. Upstream: minFeasibleNodesToFind."""


def _agrees(compared: Compared) -> bool:
    return compared.verdict in ("same", "tie")
