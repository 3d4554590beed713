"""RecordStore: what is kept of attempts and preemptions within `Limits`. Records are plain values, as in the file."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

import msgspec

from extender.answers.parts import CandidateNode, Outcome, PodName, PreemptionState, Value, Verdict, Victim
from extender.answers.types import NodeScore, ReasonCount, WaterfallStep

IN_MEMORY: Final = 3
"""A record in memory takes about so many times what it takes encoded."""

_encode: Final = msgspec.msgpack.Encoder().encode


@final
class CandidateRecord(CandidateNode, frozen=True, gc=False, omit_defaults=True):
    """A candidate with its cost, so that it can be said later why it lost. Its most important victims are kept."""

    costs: tuple[int, ...] = ()
    """A `preemption.costs.Costs`; empty if it is not known."""


@final
class AttemptRecord(Value, frozen=True, gc=False, omit_defaults=True, tag="attempt"):
    """One attempt to schedule a pod, without its arrays."""

    id: int
    time: float
    """Seconds since 1970."""
    pod: PodName
    profile: str
    outcome: Outcome
    number: int = 0
    """The number of the attempt among those of the pod, from 1; 0 if another scheduler asked."""
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    seconds: float = 0.0
    woken_by: str = ""
    no_preemption: str = ""
    """Why no pod was evicted for it; empty if pods were, or if preemption was not tried."""
    may_preempt: bool = True
    """False if the pod was not eligible to preempt others."""
    caller: str = ""
    """Which scheduler asked: an authenticated name or an address. Nothing else in such a record is certain."""


@final
class PreemptionRecord(Value, frozen=True, gc=False, omit_defaults=True, tag="preemption"):
    """A preemption that was decided, under the id of its attempt."""

    id: int
    time: float
    by: PodName
    node: str
    """The chosen node; empty while another scheduler has not made its choice known, and for a pod group."""
    victims: tuple[Victim, ...]
    num_pdb_violations: int = 0
    candidates: tuple[CandidateRecord, ...] = ()
    """The chosen one first, then the others as far as they are kept, best first."""
    num_candidates: int = 0
    outcome: PreemptionState = "deciding"
    caller: str = ""
    """As that of the attempt."""
    without_policies: CandidateRecord | None = None
    """What kube-scheduler would have chosen, if the profile has victim policies."""
    verdict: Verdict = ""
    room_taken_by: tuple[PodName, ...] = ()
    """The pods that took the room of a wasted one."""


Record = AttemptRecord | PreemptionRecord


@final
class Details(msgspec.Struct, frozen=True):
    """What is kept of an attempt while there is memory for it."""

    waterfall: tuple[WaterfallStep, ...] = ()
    picture: bytes = b""
    """An encoded `NodePicture`, by far the largest part, decoded where asked for; empty if no Filter was asked."""
    scores: tuple[NodeScore, ...] = ()
    not_helpful: tuple[ReasonCount, ...] = ()
    """Where evictions would not help."""


@final
class KeptAttempt(msgspec.Struct, frozen=True, gc=False):
    """An attempt with what is still kept of it."""

    record: AttemptRecord
    encoded: bytes = b""
    """Its details; empty if they are not kept."""
    preemption: PreemptionRecord | None = None

    @property
    def details(self) -> Details | None:
        return msgspec.msgpack.decode(self.encoded, type=Details) if self.encoded else None


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept. Beyond that the oldest is dropped: details first, then attempts, then preemptions."""

    attempts: int = 10_000
    preemptions: int = 1_000
    attempts_of_a_pod: int = 16
    """A bound for each pod, so that one that is tried again and again does not displace the others."""
    size: int = 64 * 2**20
    """The approximate number of bytes of everything together."""
    details_a_second: int = 10
    """The number of choices with scores, of refusals with verdicts, and of preemptions with other candidates that are
    kept each second; of another scheduler's calls, those of Filter and of Prioritize. Of further ones only the outcome.
    """


@final
class Quota:
    """A number of permits each second. State: how many are left of this second."""

    __slots__ = ("_a_second", "_left", "_now", "_second")

    def __init__(self, a_second: int, now: Callable[[], float]) -> None:
        self._a_second, self._left = a_second, 0
        self._now = now
        self._second = -1

    def take(self) -> bool:
        """Takes a permit; returns whether there was one left."""
        if self._left <= 0:
            second = int(self._now())
            if second == self._second:
                return False
            self._second, self._left = second, self._a_second
        self._left -= 1
        return self._left >= 0


@final
class RecordStore:
    """Attempts, details and preemptions by the id of the attempt; ids rise with time. State: all of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._attempts: OrderedDict[int, AttemptRecord] = OrderedDict()
        self._of_pod: dict[str, tuple[int, ...]] = {}
        self._details: OrderedDict[int, bytes] = OrderedDict()  # encoded
        self._preemptions: OrderedDict[int, PreemptionRecord] = OrderedDict()
        self._last_preemption: dict[str, int] = {}
        self.size = 0
        """The approximate number of bytes."""

    @property
    def oldest(self) -> int:
        """The id of the oldest attempt; 0 if there is none."""
        return next(iter(self._attempts), 0)

    def attempts(self, pod: str | None, uid: str | None, before: int | None) -> Iterator[KeptAttempt]:
        ids: Iterable[int] = reversed(self._attempts) if pod is None else reversed(self._of_pod.get(pod, ()))
        for number in ids:
            kept = self.attempt(number)
            if kept is not None and (before is None or number < before) and (uid is None or kept.record.pod.uid == uid):
                yield kept

    def attempt(self, number: int) -> KeptAttempt | None:
        """See `Records.attempt`."""
        record = self._attempts.get(number)
        if record is None:
            return None
        return KeptAttempt(record, self._details.get(number, b""), self._preemptions.get(number))

    def preemptions(self, pod: str | None) -> Iterator[PreemptionRecord]:
        for record in reversed(self._preemptions.values()):
            if pod is None or record.by.key == pod or is_victim(pod, record) or took_room(pod, record):
                yield record

    def last_preemption_for(self, uid: str) -> PreemptionRecord | None:
        number = self._last_preemption.get(uid)
        return None if number is None else self._preemptions.get(number)

    def everything(self) -> list[Record]:
        """Returns everything except details; each kind oldest first."""
        return [*self._preemptions.values(), *self._attempts.values()]

    # Adding and changing.

    def put(self, attempts: Iterable[AttemptRecord]) -> None:
        """Adds attempts that are newer than all others."""
        everything, of_pod, most = self._attempts, self._of_pod, self._limits.attempts_of_a_pod
        for record in attempts:
            number, key = record.id, record.pod.key
            everything[number] = record
            self.size += _size_of(record)
            ids = of_pod.get(key, ())
            of_pod[key] = (*ids, number)
            if len(ids) >= most:
                self._drop(ids[0])
        self._keep_within_limits()

    def change(self, record: AttemptRecord) -> None:
        self.size += _size_of(record) - _size_of(self._attempts[record.id])
        self._attempts[record.id] = record
        self._keep_within_limits()

    def put_details(self, number: int, details: Details) -> None:
        """Adds details of the newest attempt, or of one that will be put here."""
        self._drop_details(number)
        # A copy: what the encoder returns is the beginning of a longer buffer.
        encoded = self._details[number] = bytes(memoryview(_encode(details)))
        self.size += len(encoded)
        self._keep_within_limits()

    def put_preemption(self, record: PreemptionRecord) -> None:
        """Adds or replaces a preemption."""
        known = self._preemptions.get(record.id)
        self.size += _size_of(record) - (_size_of(known) if known is not None else 0)
        self._preemptions[record.id] = record
        self._last_preemption[record.by.uid] = max(record.id, self._last_preemption.get(record.by.uid, 0))
        self._keep_within_limits()

    # Dropping.

    def _keep_within_limits(self) -> None:
        limits = self._limits
        while len(self._attempts) > limits.attempts:
            self._drop(next(iter(self._attempts)))
        while len(self._preemptions) > limits.preemptions:
            self._drop_preemption()
        while self._details and (len(self._details) > limits.attempts or self.size > limits.size):
            self._drop_details(next(iter(self._details)))
        while self._attempts and self.size > limits.size:
            self._drop(next(iter(self._attempts)))
        while self._preemptions and self.size > limits.size:
            self._drop_preemption()

    def _drop(self, number: int) -> None:
        record = self._attempts.pop(number)
        self.size -= _size_of(record)
        key = record.pod.key
        self._of_pod[key] = tuple(each for each in self._of_pod[key] if each != number)
        if not self._of_pod[key]:
            del self._of_pod[key]
        self._drop_details(number)

    def _drop_details(self, number: int) -> None:
        self.size -= len(self._details.pop(number, b""))

    def _drop_preemption(self) -> None:
        number, record = self._preemptions.popitem(last=False)
        self.size -= _size_of(record)
        if self._last_preemption.get(record.by.uid) == number:
            del self._last_preemption[record.by.uid]


def took_room(pod: str, record: PreemptionRecord) -> bool:
    """Returns whether namespace/name took the room that the preemption had made for another pod."""
    return any(taker.key == pod for taker in record.room_taken_by)


def is_victim(pod: str, record: PreemptionRecord) -> bool:
    """Returns whether namespace/name was a victim."""
    return any(victim.pod.key == pod for victim in record.victims)


def _size_of(record: Record) -> int:
    return IN_MEMORY * len(_encode(record))
