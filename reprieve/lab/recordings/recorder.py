"""Takes note of what a scheduler sees, decides and is answered.

The recorder hears of changes as a subscriber and of decisions as a reporter; writes and chance pass through it. What it
takes note of are frozen values, in a list that a `RecordingFile` empties, so that a decision costs a microsecond or two
more and waits for nothing.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.cache import CacheError
from extender.engine.cache.cluster import Cluster
from extender.engine.framework import storage_calls
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.reporter import Reporter
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.scoring import Choice
from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.recordings.entries import (
    Assumed,
    BindingFailed,
    Entry,
    ExtenderAnswer,
    Nominated,
    ObjectGone,
    ObjectPut,
    RecordedAttempt,
    WriteAnswered,
)

T = TypeVar("T")

EXTENDER_BINDING: Final = "ExtenderBinding"
"""The call of an extender that binds a pod."""
BITS: Final = 53
"""Longer draws are names of new objects, on which no decision depends."""


@final
@dataclass(frozen=True, slots=True)
class ClusterAtOnce:
    """A cluster at one moment, collected without looking at single objects."""

    seconds: float
    nodes: Sequence[HasMetadata] = ()
    objects: Sequence[HasMetadata] = ()
    placed: Sequence[Pod] = ()
    pending: Sequence[Pod] = ()
    assumed: frozenset[str] = frozenset()
    nominated: Sequence[tuple[str, str]] = ()

    def entries(self) -> list[Entry]:
        entries: list[Entry] = [self._put(obj) for group in (self.nodes, self.objects) for obj in group]
        entries += [self._put(pod) for pod in self.placed if pod.uid not in self.assumed]
        entries += [self._put(pod) for pod in self.pending]
        entries += [
            Assumed(self.seconds, pod.uid, pod.spec.node_name) for pod in self.placed if pod.uid in self.assumed
        ]
        return entries + [Nominated(self.seconds, uid, node) for uid, node in self.nominated]

    def _put(self, obj: HasMetadata) -> ObjectPut:
        return ObjectPut(self.seconds, kind_of(obj).name, obj)


@final
class RecordedChance(random.Random):
    """Draws from another generator, and remembers the numbers of the attempt under way."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(0)
        self.drawn: list[tuple[int, int]] = []
        """(number of bits, value) since the last attempt ended."""
        self._source = source

    def getrandbits(self, k: int, /) -> int:
        value = self._source.getrandbits(k)
        if k <= BITS and len(self.drawn) < limits.RECORDED_DRAWS:
            self.drawn.append((k, value))
        return value

    def random(self) -> float:
        return float(self.getrandbits(BITS) / (1 << BITS))


@final
class Recorder(Reporter):
    """Collects entries. State: the entries that wait for the file, and the attempt under way."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Takes a clock of the seconds since the beginning."""
        self.is_on = True
        """Whether entries are kept. Off while the file takes none."""
        self.lost = 0
        """The number of entries that it missed while off."""
        self._now = now
        self._waiting: list[Entry] = []
        self._begun_at: int | None = None  # the place of the attempt under way among those that wait
        self._asking = ""  # the UID of the pod about which extenders are asked
        self._answers: list[ExtenderAnswer] = []
        self._length_of_answers = 0  # of all that wait
        self._length_of_attempt = 0
        self._preemption: fwk.PreemptionOutcome | None = None
        self._chance: RecordedChance | None = None
        self._cluster: tuple[Cluster, SchedulingQueue | None] | None = None

    # The doors.

    def chance(self, source: random.Random) -> random.Random:
        self._chance = RecordedChance(source)
        return self._chance

    def watch(self, cluster: Cluster, queue: SchedulingQueue | None) -> None:
        """Sets the cluster whose state begins later files; without a queue nothing is decided."""
        self._cluster = cluster, queue

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if new is not None:
            self._note(ObjectPut(self._time(), kind_of(new).name, new))
        elif old is not None:
            self._note(ObjectGone(self._time(), kind_of(old).name, old.metadata.namespace, old.name))

    def written(self, call: fwk.ApiCall[Any], result: object, error: fwk.CallError | None) -> None:
        kind = kind_of(result).name if isinstance(result, HasMetadata) else ""
        why = ("", "") if error is None else (type(error).__name__, str(error))
        self._note(
            WriteAnswered(self._time(), type(call).__name__, key_of_call(call), *why, kind, result if kind else None)
        )

    # Decisions.

    def asked(self, pod: Pod) -> None:
        """Notes that an extender is asked about a pod, whose decision begins here."""
        if self._asking != pod.uid:
            self._asking, self._begun_at = pod.uid, len(self._waiting)
            self._answers, self._length_of_attempt = [], 0

    def answered(self, answer: ExtenderAnswer) -> None:
        """Records an extender's answer about that pod, unless it is too long."""
        length = len(msgspec.json.encode(answer))  # bytes of memory, roughly
        if length > limits.RECORDED_ANSWER_BYTES or self._length_of_answers + length > limits.RECORDED_ANSWERS_BYTES:
            answer, length = ExtenderAnswer(answer.extender, answer.verb, answer.question, is_left_out=True), 0
        self._length_of_answers += length
        self._length_of_attempt += length
        self._answers.append(answer)

    def bound_by_extender(self, extender: str, pod: Pod, error: str | None) -> None:
        kind = "" if error is None else "CallError"
        self._note(WriteAnswered(self._time(), EXTENDER_BINDING, f"{extender}/{pod.uid}", kind, error or ""))

    def scored(self, pod: Pod, choice: Choice) -> None:
        self._begun(pod)

    def refused(self, pod: Pod, findings: Findings) -> None:
        self._begun(pod)

    def _begun(self, pod: Pod) -> None:
        if self._asking != pod.uid:
            self._begun_at = len(self._waiting)

    def preemption_tried(self, pod: Pod, outcome: fwk.PreemptionOutcome) -> None:
        self._preemption = outcome

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self._attempted(info.pod, node, fwk.SUCCESS)

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        self._attempted(info.pod, "", status)

    def binding_failed(self, pod: Pod, status: fwk.Status) -> None:
        self._note(BindingFailed(self._time(), pod.uid))

    def _attempted(self, pod: Pod, node: str, status: fwk.Status) -> None:
        outcome, self._preemption = self._preemption, None
        nominated = "" if outcome is None else outcome.nominated_node
        victims = [] if outcome is None or outcome.chosen is None else [victim.uid for victim in outcome.chosen.victims]
        drawn = [] if self._chance is None else self._chance.drawn.copy()
        if self._chance is not None:
            self._chance.drawn.clear()
        code = "" if node else status.code.name
        answers = self._answers if self._asking == pod.uid else []
        attempt = RecordedAttempt(
            self._time(), pod.uid, pod.key, node, code, status.message, nominated, victims, drawn, answers
        )
        self._note(attempt, self._begun_at)
        self._begun_at, self._asking, self._answers, self._length_of_attempt = None, "", [], 0

    # Entries that wait for the file.

    def take(self) -> list[Entry]:
        """Removes and returns the waiting entries up to the beginning of an attempt under way."""
        end = len(self._waiting) if self._begun_at is None else self._begun_at
        entries = self._waiting[:end]
        del self._waiting[:end]
        if self._begun_at is not None:
            self._begun_at = 0
        self._length_of_answers = self._length_of_attempt
        return entries

    def stop(self) -> None:
        self.is_on = False
        self.lost += len(self._waiting)
        self._waiting.clear()
        self._begun_at, self._length_of_answers = None, self._length_of_attempt

    def cluster_at_once(self) -> ClusterAtOnce | None:
        """Returns the state to begin a file with; None amid an attempt, whose snapshot has to last."""
        if self._begun_at is not None or self._asking:
            return None
        return ClusterAtOnce(self._time()) if self._cluster is None else self._at_once(*self._cluster)

    def _at_once(self, cluster: Cluster, queue: SchedulingQueue | None) -> ClusterAtOnce:
        try:
            # In the scheduler's order: chance picks among equal nodes by it.
            nodes = list(cluster.cache.update_snapshot().nodes.objects)
        except CacheError:
            nodes = list(cluster.nodes.values())
        by_node = {} if queue is None else queue.nominated_pods()
        nominated = [(pod.uid, node) for node, pods in by_node.items() for pod in pods]
        pods, pending, assumed = cluster.cache.pods, list(cluster.pending.values()), cluster.cache.assumed_pods
        return ClusterAtOnce(
            self._time(), nodes, list(cluster.cache.objects.everything()), pods, pending, assumed, nominated
        )

    def _note(self, entry: Entry, place: int | None = None) -> None:
        if len(self._waiting) >= limits.RECORDED_ENTRIES:
            self.stop()
        if self.is_on:
            self._waiting.insert(len(self._waiting) if place is None else place, entry)
        else:
            self.lost += 1

    def _time(self) -> float:
        return round(self._now(), 4)


def key_of_call(call: fwk.ApiCall[Any]) -> str:
    """Returns the key of a call among those of its type."""
    if isinstance(call, storage_calls.CreateResourceClaim):
        # The name and UID of the claim are only known afterwards.
        return ",".join(owner.uid for owner in call.claim.metadata.owner_references)
    return call.object_key


def is_answered(call: fwk.ApiCall[Any]) -> bool:
    """Returns whether a pod's binding depends on the answer. Other writes come back as changes alone."""
    return not isinstance(call, fwk.PatchPodStatus | fwk.DeletePod | fwk.RecordEvent)


@final
class RecordingDispatcher(fwk.Dispatcher):
    """Passes writes on, and records the answers about bindings, volumes and devices."""

    def __init__(self, recorder: Recorder, dispatcher: fwk.Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        if not is_answered(call):
            return await self._dispatcher.perform(call)
        try:
            result = await self._dispatcher.perform(call)
        except fwk.CallError as exc:
            self._recorder.written(call, None, exc)
            raise
        self._recorder.written(call, result, None)
        return result

    def submit(self, call: fwk.ApiCall[T]) -> "asyncio.Future[T | None]":
        future = self._dispatcher.submit(call)
        if is_answered(call):
            future.add_done_callback(
                lambda done: self._recorder.written(call, None if done.cancelled() else done.result(), None)
            )
        return future
