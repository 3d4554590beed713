"""RecordStore: what is kept of attempts and preemptions within `Limits`. Records are plain values, as in the file.

Details are kept of a few attempts a second: encoded at once, since their arrays hold for one snapshot only.
"""

import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import msgspec
import numpy as np

from extender.answers.explain.preemption import OwnScores, best_first, own_scores, victim
from extender.answers.explain.verdict_tables import OTHER_REASONS, node_scores, step
from extender.answers.parts import CandidateNode, Outcome, PodName, PreemptionState, Value, Verdict, Victim
from extender.answers.types import NodePicture, NodeScore, PluginVerdict, ReasonCount, WaterfallStep
from extender.engine.framework import Candidate, Candidates, Code, Status
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.preemption.costs import costs_of
from extender.engine.runtime.findings import Findings, out_of_play_reason
from extender.engine.runtime.scoring import Choice
from extender.values import limits
from extender.values.objects.pod import Pod

IN_MEMORY: Final = 3
"""A record in memory takes about so many times what it takes encoded."""

_encode: Final = msgspec.msgpack.Encoder().encode


@final
class CandidateRecord(CandidateNode, frozen=True, gc=False, omit_defaults=True):
    """A candidate with its cost, so that it can be said later why it lost. Its most important victims are kept."""

    costs: tuple[int, ...] = ()
    """A `preemption.costs.Costs`; empty if it is not known."""
    own_scores: OwnScores | None = None
    """By the criteria of a plugin's own rules, where they choose."""


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
            attempt = self.attempt(number) if before is None or number < before else None
            if attempt is not None and (uid is None or attempt.record.pod.uid == uid):
                yield attempt

    def names(self) -> set[str]:
        """Returns namespace/name of the pods that were tried or evicted."""
        victims = (victim for record in self._preemptions.values() for victim in record.victims)
        return {*self._of_pod, *(victim.pod.key for victim in victims)}

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

    def put_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """Adds attempts that are newer than all others."""
        everything, of_pod, max_attempts = self._attempts, self._of_pod, self._limits.attempts_of_a_pod
        for record in attempts:
            number, key = record.id, record.pod.key
            everything[number] = record
            self.size += _size_of(record)
            ids = of_pod.get(key, ())
            of_pod[key] = (*ids, number)
            if len(ids) >= max_attempts:
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
        previous_record = self._preemptions.get(record.id)
        self.size += _size_of(record) - (_size_of(previous_record) if previous_record is not None else 0)
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
        self._of_pod[key] = tuple(attempt_id for attempt_id in self._of_pod[key] if attempt_id != number)
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


EXTENDERS: Final = "extenders"
"""Stands for the configured extenders, in place of a plugin."""
BEST_NODES: Final = 16
"""The number of nodes of which scores are kept."""


def picture_of(details: Details) -> NodePicture | None:
    """Returns every node with the first plugin that refused it; the others were not asked."""
    return msgspec.msgpack.decode(zlib.decompress(details.picture), type=NodePicture) if details.picture else None


# What the Filters said.


def verdict_details(findings: Findings, *, refuses_all: bool) -> Details:
    """Returns what PreFilter, the Filters and the extenders said, without a node that was asked about twice."""
    keep = partial(step, limit=limits.REASONS_KEPT)
    names, pre_filter = tuple(findings.rows.snapshot.nodes.index), findings.pre_filter
    narrowing = ", ".join(findings.narrowed_by)
    if not pre_filter.is_success:
        return Details((keep(pre_filter.plugin or narrowing, {pre_filter: len(names)}, 0),))
    asked_nodes, rows = np.unique(findings.rows.node, return_index=True)
    num_left, steps = len(asked_nodes), list[WaterfallStep]()
    if num_left < len(names) and narrowing:  # other nodes outside were not in question
        outside = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (out_of_play_reason(findings.narrowed_by),))
        steps.append(keep(narrowing, {outside: len(names) - num_left}, num_left))
    refused = findings.verdicts.codes[rows] != Code.SUCCESS
    # Many nodes have one of a few statuses; `which` says which.
    statuses, which = findings.verdicts.distinct_statuses(rows[refused])
    counts = np.bincount(which, minlength=len(statuses)).tolist()
    plugins = tuple(dict.fromkeys(plugin for plugin, _ in findings.verdicts.refused_by))
    for plugin in plugins:
        of_plugin = {status: nodes for status, nodes in zip(statuses, counts, strict=True) if status.plugin == plugin}
        num_left -= sum(of_plugin.values())
        if of_plugin:
            steps.append(keep(plugin, of_plugin, num_left))
    if refuses_all and num_left and findings.by_extenders:
        steps.append(keep(EXTENDERS, Counter(findings.by_extenders.values()), 0, refused=num_left))
    if not len(asked_nodes):
        return Details(tuple(steps))
    verdicts = dict[PluginVerdict, int]()
    place_of = [verdicts.setdefault(_verdict(status), len(verdicts)) for status in statuses]
    cells = [(-1,) * len(plugins)] * len(names)
    cells_of = [
        tuple(place if plugin == status.plugin else -1 for plugin in plugins)
        for status, place in zip(statuses, place_of, strict=True)
    ]
    for node, which_status in zip(asked_nodes[refused].tolist(), which.tolist(), strict=True):
        cells[node] = cells_of[which_status]
    picture = NodePicture(plugins=plugins, nodes=names, verdicts=tuple(verdicts), cells=tuple(cells))
    return Details(tuple(steps), zlib.compress(msgspec.msgpack.encode(picture), 1))


def _verdict(status: Status) -> PluginVerdict:
    reasons = tuple(dict.fromkeys(status.reasons))
    if len(reasons) > limits.REASONS_KEPT:
        reasons = (*reasons[: limits.REASONS_KEPT], OTHER_REASONS)
    return PluginVerdict(plugin=status.plugin, code=str(status.code), reasons=reasons)


# Scores.


def best_scores(choice: Choice) -> tuple[NodeScore, ...]:
    """Returns the scores of the chosen node, then of the other best, best first; equals in the order of the nodes."""
    total, chosen = choice.total, choice.chosen
    if len(total) > BEST_NODES:
        candidates = np.flatnonzero(total >= np.partition(total, -BEST_NODES)[-BEST_NODES])
    else:
        candidates = np.arange(len(total))
    best = candidates[np.argsort(-total[candidates], kind="stable")[:BEST_NODES]].tolist()
    rows = np.array([chosen, *(row for row in best if row != chosen)][:BEST_NODES], np.intp)
    scores = choice.scores_at(rows)
    return node_scores(choice.rows.take(rows).names, total[rows], scores.weights, scores.raw, scores.weighted)


# Candidates of a preemption.


def keep_candidates(
    candidates: Candidates, preemptor: Pod, now: float, chosen: str | None = None
) -> tuple[CandidateRecord, ...]:
    """Returns the best candidates, the chosen one first; while any may be chosen, all victims of each are kept."""
    if not len(candidates):
        return ()
    candidates = best_first(candidates, chosen, limits.CANDIDATES_KEPT)
    violates = broken_budgets(candidates.snapshot, candidates.node, preemptor, candidates.rules)
    max_victims = limits.VICTIMS_KEPT if chosen is None else limits.OTHER_VICTIMS_KEPT
    costed_candidates = zip(candidates.listed(), costs_of(candidates), own_scores(candidates), strict=True)
    return tuple(
        keep_candidate(candidate, now, violates, max_victims if place else limits.VICTIMS_KEPT, costs, its)
        for place, (candidate, costs, its) in enumerate(costed_candidates)
    )


def keep_candidate(
    candidate: Candidate,
    now: float,
    violates: Mapping[str, tuple[str, ...]] = {},
    max_victims: int = limits.VICTIMS_KEPT,
    costs: tuple[int, ...] = (),
    its: OwnScores | None = None,
) -> CandidateRecord:
    """Returns one candidate; `violates` has the names of the budgets that the eviction of a UID violates."""
    victims = tuple(victim(pod, now, violates.get(pod.uid, ())) for pod in candidate.victims[:max_victims])
    return CandidateRecord(candidate.node, victims, candidate.num_pdb_violations, costs=costs, own_scores=its)
