"""Decides everything in a recording again, and says where the decisions are the same and where not.

Each decision is taken in the state in which it was taken then: objects change, and writes are answered, as they did. A
pod that would get another node now is counted on its old one, so that one difference does not make all later ones. The
scheduling cycle and the binding cycle are those of the scheduler; its queue alone is not asked, because the recording
says which pod came next.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final, final

from extender.assembly.scheduling import assemble_scheduler
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.reporter import Decided
from extender.engine.runtime.plugin_calls import with_long_work
from extender.engine.runtime.reserve_to_bind import run_unreserve_plugins
from extender.engine.scheduler.binding_cycle import binding_cycle
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.engine.scheduler.scheduling_cycle import scheduling_cycle
from extender.engine.scheduler.world import AssumedPod, Failure
from extender.values.concurrency import virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.recordings.entries import (
    AnyEntry,
    Assumed,
    BindingFailed,
    Nominated,
    ObjectGone,
    ObjectPut,
    RecordedAttempt,
    Recording,
    RecordingEnded,
    RecordingStarted,
    WriteAnswered,
    key_of,
)
from reprieve.lab.recordings.recorder import BITS
from reprieve.lab.simulation.replayed_answers import ReplayedExtenders, ReplayedWrites
from reprieve.lab.simulation.report import Reported

_MOMENT: Final = 1e-7
"""Virtual seconds after which all immediate consequences have happened."""
_HORIZON: Final = 10 * 366 * 24 * 3600.0


@final
class DecisionDifference(Reported, frozen=True, kw_only=True):
    """A pod about which something else is decided now."""

    at: float
    """Seconds since the recording began."""
    pod: str
    """The pod as namespace/name."""
    recorded: Decided
    replayed: Decided


@final
class UnknownDecision(Reported, frozen=True, kw_only=True):
    """A pod about which an extender would be asked something else than when it was recorded."""

    at: float
    """Seconds since the recording began."""
    pod: str
    """The pod as namespace/name."""
    why: str


@final
class ReplayReport(Reported, frozen=True, kw_only=True):
    """What became of the decisions of a recording."""

    recording: str
    began: str
    seconds: float
    """How much time is recorded."""
    is_complete: bool
    """Whether the recording was ended orderly, so that nothing is missing at its end."""
    decisions: int
    same: int
    different: int
    not_decided: int
    """Decisions that cannot be taken again, such as those of a profile that the configuration lacks, and those that are
    unknown.
    """
    differences: tuple[DecisionDifference, ...]
    unknown: tuple[UnknownDecision, ...]
    """Decisions for which an extender would be asked something that it was not asked then."""


@final
class ReplayedChance(random.Random):
    """Repeats the recorded draws; for any other draw, returns a number that depends on the pod alone."""

    def __init__(self) -> None:
        super().__init__(0)
        self._draws: list[tuple[int, int]] = []
        self._other = random.Random(0)

    def begin(self, attempt: RecordedAttempt) -> None:
        self._draws = list(attempt.draws)
        self._other = random.Random(attempt.uid)

    def getrandbits(self, k: int, /) -> int:
        for place, (bits, value) in enumerate(self._draws):
            if bits == k:
                del self._draws[: place + 1]
                return value
        return self._other.getrandbits(k)

    def random(self) -> float:
        return float(self.getrandbits(BITS) / (1 << BITS))


def replay(
    recording: Recording,
    configuration: Configuration,
    advance: Callable[[int, int], None] = lambda done, expected: None,
) -> ReplayReport:
    """Decides everything in the recording again with this configuration. Equal arguments give equal reports.

    `advance` is called now and then with the number of decisions so far, and 0. Raises RecordingError if it cannot be
    read, or its decisions cannot be taken again; and ConfigErrors.
    """
    return virtual_time.run(_Replay(recording, advance).run(configuration), horizon=_HORIZON)


@final
class _Replay:
    """State: the cluster, its objects by name, pods on their way to nodes, and the differences."""

    def __init__(self, recording: Recording, advance: Callable[[int, int], None]) -> None:
        self._recording = recording
        self._advance = advance
        self._writes = ReplayedWrites()
        self._extenders = ReplayedExtenders(self._writes)
        self._chance = ReplayedChance()
        self._objects: dict[tuple[str, str, str], HasMetadata] = {}
        self._keys: dict[str, str] = {}  # UID -> namespace/name, of pods
        self._pods: dict[str, Pod] = {}
        self._bindings: dict[str, tuple[AssumedPod, asyncio.Task[Failure | None]]] = {}
        self._attempt: asyncio.Task[None] | None = None
        self._counts = {"decisions": 0, "same": 0, "different": 0, "not_decided": 0}
        self._differences: list[DecisionDifference] = []
        self._unknown: list[UnknownDecision] = []

    async def run(self, configuration: Configuration) -> ReplayReport:
        cluster = Cluster()
        began, loop = self._recording.began, asyncio.get_running_loop()
        self._scheduling = assemble_scheduler(
            configuration,
            cluster,
            self._writes,
            self._chance,
            through=self._extenders.calls,
            now=lambda: began + timedelta(seconds=loop.time()),
        )
        self._algorithm, self._imposing = SchedulingAlgorithm(), SchedulingAlgorithm()
        self._percentage = configuration.percentage_of_nodes_to_score or 0
        last: AnyEntry = self._recording.begins
        for last in self._recording.entries():
            await self._take(last)
        await self._end_attempt()
        for _, binding in self._bindings.values():
            binding.cancel()
        await asyncio.sleep(0)
        return ReplayReport(
            recording=self._recording.path.name,
            began=self._recording.begins.began,
            seconds=0.0 if isinstance(last, RecordingStarted) else round(last.seconds, 3),
            is_complete=isinstance(last, RecordingEnded),
            **self._counts,
            differences=tuple(self._differences),
            unknown=tuple(self._unknown),
        )

    async def _take(self, entry: AnyEntry) -> None:
        match entry:
            case ObjectPut():
                self._put(entry)
            case ObjectGone():
                self._change(key_of(entry.kind, entry.namespace, entry.name), None)
            case RecordedAttempt():
                await self._end_attempt()
                # As much time as had passed then, on which some plugins depend.
                await asyncio.sleep(max(entry.seconds - asyncio.get_running_loop().time(), 0))
                self._attempt = asyncio.create_task(self._decide(entry), name=f"attempt {entry.pod}")
                await asyncio.sleep(_MOMENT)
            case WriteAnswered():
                self._writes.answered(entry)
                await asyncio.sleep(_MOMENT)
            case BindingFailed():
                await self._unbind(entry.uid)
            case Assumed():
                self._scheduling.world.cluster.assume(entry.uid, entry.node)
            case Nominated():
                self._nominate(entry.uid, entry.node)

    # The cluster.

    def _put(self, entry: ObjectPut) -> None:
        obj = self._recording.object_of(entry)
        if obj is not None:
            self._change(key_of(entry.kind, obj.metadata.namespace, obj.metadata.name), obj)

    def _change(self, key: tuple[str, str, str], new: HasMetadata | None) -> None:
        old = self._objects.pop(key, None)
        if isinstance(old, Pod) and (new is None or new.metadata.uid != old.uid):
            self._pods.pop(old.uid, None)
        if new is not None:
            self._objects[key] = new
            if isinstance(new, Pod):
                self._pods[new.uid] = new
                self._keys[new.uid] = new.key
        if old is not None or new is not None:
            self._scheduling.handlers.changed(old, new)

    def _nominate(self, uid: str, node: str | None) -> None:
        pod, queue = self._pods.get(uid), self._scheduling.world.queue
        if pod is not None and node != "":
            queue.add_nominated_pod(pod, node)
        elif pod is not None:
            queue.delete_nominated_pod_if_exists(pod)

    # Decisions.

    async def _decide(self, entry: RecordedAttempt) -> None:
        pod = self._pods.get(entry.uid)
        framework = None if pod is None else self._scheduling.frameworks.get(pod.scheduler_name)
        self._counts["decisions"] += 1
        if pod is None or framework is None:
            self._counts["not_decided"] += 1
            self._scheduling.world.cluster.assume(entry.uid, entry.node) if entry.node else self._nominate(
                entry.uid, entry.nominated
            )
            return
        self._chance.begin(entry)
        self._extenders.begin(entry)
        outcome = await self._cycle(self._algorithm, pod)
        recorded, replayed = self._recorded(entry), _decided(outcome)
        going_on = outcome if isinstance(outcome, AssumedPod) else None
        if self._extenders.unasked:
            self._counts["not_decided"] += 1
            if len(self._unknown) < limits.REPLAY_DIFFERENCES:
                self._unknown.append(UnknownDecision(at=entry.seconds, pod=entry.pod, why=self._extenders.unasked[0]))
            going_on = await self._imposed(entry, pod, outcome)
        elif recorded.is_like(replayed):
            self._counts["same"] += 1
        else:
            self._counts["different"] += 1
            if len(self._differences) < limits.REPLAY_DIFFERENCES:
                difference = DecisionDifference(at=entry.seconds, pod=entry.pod, recorded=recorded, replayed=replayed)
                self._differences.append(difference)
            going_on = await self._imposed(entry, pod, outcome)
        if going_on is not None:
            binding = binding_cycle(self._scheduling.world, framework, going_on)
            self._bindings[entry.uid] = going_on, asyncio.create_task(binding, name=f"binding of {entry.pod}")
        elif not entry.node:
            self._nominate(entry.uid, entry.nominated)
        if self._counts["decisions"] % 64 == 0:
            self._advance(self._counts["decisions"], 0)

    async def _cycle(self, algorithm: SchedulingAlgorithm, pod: Pod) -> AssumedPod | Failure:
        world, framework = self._scheduling.world, self._scheduling.frameworks[pod.scheduler_name]
        try:
            return await with_long_work(partial(scheduling_cycle, world, algorithm, framework, pod, self._percentage))
        except Exception as exc:
            world.cluster.forget(pod.uid)
            return Failure(fwk.error(str(exc) or type(exc).__name__))

    async def _imposed(self, entry: RecordedAttempt, pod: Pod, outcome: AssumedPod | Failure) -> AssumedPod | None:
        """Undoes an outcome, and brings about the recorded one."""
        world = self._scheduling.world
        if isinstance(outcome, AssumedPod):
            self._undo(outcome)
        if not entry.node:
            return None
        self._extenders.is_imposing = True
        # A nominated node is tried first, and taken if it fits.
        nominee = replaced(pod, status=replaced(pod.status, nominated_node_name=entry.node))
        attempt = await self._cycle(self._imposing, nominee)
        if isinstance(attempt, AssumedPod) and attempt.node == entry.node:
            return attempt
        if isinstance(attempt, AssumedPod):
            self._undo(attempt)
        world.cluster.assume(entry.uid, entry.node)
        return None

    def _undo(self, assumed: AssumedPod) -> None:
        world = self._scheduling.world
        world.waiting_pods.remove(assumed.pod.uid)
        run_unreserve_plugins(assumed.cycle, assumed.pod, assumed.node)
        world.cluster.forget(assumed.pod.uid)

    async def _end_attempt(self) -> None:
        """Ends an attempt that waits for an answer missing from the recording."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if not attempt.done():
            attempt.cancel()
            self._counts["not_decided"] += 1
        with suppress(asyncio.CancelledError):
            await attempt

    async def _unbind(self, uid: str) -> None:
        under_way = self._bindings.pop(uid, None)
        if under_way is None:
            self._scheduling.world.cluster.forget(uid)
            return
        assumed, binding = under_way
        await asyncio.sleep(_MOMENT)
        if binding.done():
            return  # it has failed by itself, and given everything back
        binding.cancel()
        await asyncio.wait([binding])
        self._undo(assumed)

    def _recorded(self, entry: RecordedAttempt) -> Decided:
        status = "" if entry.node else str(fwk.Code[entry.code])
        victims = tuple(sorted(self._keys.get(uid, uid) for uid in entry.victims))
        return Decided(
            node=entry.node, status=status, message=entry.message, nominated=entry.nominated or "", victims=victims
        )


def _decided(outcome: AssumedPod | Failure) -> Decided:
    if isinstance(outcome, AssumedPod):
        return Decided(node=outcome.node)
    victims = () if outcome.candidate is None else tuple(sorted(victim.key for victim in outcome.candidate.victims))
    return Decided(
        status=str(outcome.status.code),
        message=outcome.status.message,
        nominated=outcome.nominate or "",
        victims=victims,
    )
