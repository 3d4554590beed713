"""Records: the recent attempts and preemptions. State: what is known so far of the attempt under way; the rest is on
two stores.

What another scheduler asked is in a store of its own: callers of the verbs can neither add to what was decided here nor
push it out.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Final, final

import msgspec
import numpy as np

from extender.answers.explain.preemption import not_helpful
from extender.answers.parts import Outcome, PodName, Verdict
from extender.answers.records.record_store import (
    BEST_NODES,
    AttemptRecord,
    CandidateRecord,
    Details,
    KeptAttempt,
    Limits,
    PreemptionRecord,
    Quota,
    Record,
    RecordStore,
    best_scores,
    is_victim,
    keep_candidate,
    keep_candidates,
    verdict_details,
)
from extender.answers.types import NodeScore
from extender.engine import framework as fwk
from extender.engine.framework import Candidate, Candidates, PreemptionOutcome
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.reporter import Reporter, VerbCall
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.scoring import Choice
from extender.values import limits
from extender.values.objects.pod import Pod

LIMITS_OF_CALLS: Final = Limits(size=16 * 2**20)
"""How much is kept of what another scheduler asked."""

_CALLS: Final = ("Filter", "Prioritize", "Preempt")
"""Outcomes of calls, which earlier versions recorded without their callers."""


@final
@dataclass(slots=True)
class _UnderWay:
    uid: str = ""
    details: Details | None = None
    num_nodes: int = 0
    evaluated: int = 0
    candidates: tuple[CandidateRecord, ...] = ()
    num_candidates: int = 0
    chosen: CandidateRecord | None = None
    without_policies: CandidateRecord | None = None
    no_preemption: str = ""
    may_preempt: bool = True


@final
class Records(Reporter):
    """Keeps what is decided. Recording costs microseconds: a few attempts a second keep more than the outcome."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        limits_of_calls: Limits | None = None,
        now: Callable[[], float] = time.time,
        write: Callable[[Record], None] | None = None,
    ) -> None:
        """Begins without records.

        Arguments:
            limits_of_calls: of what another scheduler asked; by default a quarter of the bytes of decisions.
            now: seconds since 1970.
            write: takes every record that is to outlive the process, again, with the same id, when it has changed.
        """
        self.version = 0
        """A number that rises with every record; see `news`."""
        limits = limits or Limits()
        of_calls = limits_of_calls or replace(LIMITS_OF_CALLS, size=limits.size // 4)
        self._store = RecordStore(limits)
        self._calls = RecordStore(of_calls)
        # The newest attempts that found a node. They are put in the store when attempts are read; most are dropped
        # before. Preemptions are there at once. More of these, of about a KiB each, would not fit into the store.
        self._new: deque[AttemptRecord] = deque(maxlen=max(1, min(limits.attempts, limits.size // 1024)))
        self._scores, self._verdicts, self._preemptions = (Quota(limits.details_a_second, now) for _ in range(3))
        self._filters, self._prioritizes = (Quota(of_calls.details_a_second, now) for _ in range(2))
        self._now = now
        self._write = write
        self._next_id = 1
        self._under_way = _UnderWay()
        self._choice: tuple[Pod, tuple[NodeScore, ...]] | None = None
        self._something_came = asyncio.Event()
        self._is_watched = False
        """Whether `news` has been called."""

    # Reading.

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._with_newest.size + self._calls.size

    @property
    def newest(self) -> int:
        """The id of the attempt or call that was recorded last; 0 before there was one."""
        return self._next_id - 1

    @property
    def oldest(self) -> int:
        """The id of the oldest attempt that is kept; 0 if there is none."""
        return min(filter(None, (self._with_newest.oldest, self._calls.oldest)), default=0)

    def attempts(
        self, pod: str | None = None, *, uid: str | None = None, before: int | None = None
    ) -> Iterator[KeptAttempt]:
        """Yields attempts of namespace/name or a UID, before an id, newest first. Read them before awaiting."""
        stores = (store.attempts(pod, uid, before) for store in (self._with_newest, self._calls))
        return merge(*stores, key=lambda attempt: attempt.record.id, reverse=True)

    def names(self) -> set[str]:
        """Returns namespace/name of the pods of which something is recorded, be they there or gone."""
        return self._with_newest.names() | self._calls.names()

    def attempt(self, number: int) -> KeptAttempt | None:
        """Returns the attempt of this id; None if it is not kept."""
        return self._with_newest.attempt(number) or self._calls.attempt(number)

    def preemptions(self, pod: str | None = None) -> Iterator[PreemptionRecord]:
        """Yields preemptions by or of namespace/name, newest first. Read them off before awaiting anything."""
        stores = (store.preemptions(pod) for store in (self._with_newest, self._calls))
        return merge(*stores, key=lambda preemption: preemption.id, reverse=True)

    def who_preempted(self, pod: str) -> PreemptionRecord | None:
        """Returns the last preemption with namespace/name as a victim; None if there is none, or all of them failed."""
        return next(
            (
                preemption
                for preemption in self.preemptions(pod)
                if preemption.outcome != "failed" and is_victim(pod, preemption)
            ),
            None,
        )

    async def news(self, since: int) -> int:
        """Returns the version once it differs from `since`, perhaps at once. It may rise a thousand times a second."""
        while self.version == since:
            self._is_watched = True
            self._something_came.clear()
            await self._something_came.wait()
        return self.version

    def everything(self) -> list[Record]:
        """Returns all records that are to outlive the process."""
        return [*self._calls.everything(), *self._with_newest.everything()]

    def restore(self, records: Iterable[Record]) -> None:
        """Takes the records of an earlier process, of each id the last one. Call it before anything is recorded."""
        newest = {(type(record), record.id): record for record in records}
        calls = {
            record.id for record in newest.values() if isinstance(record, AttemptRecord) and record.outcome in _CALLS
        }
        for record in sorted(newest.values(), key=lambda record: record.id):
            self._next_id = max(self._next_id, record.id + 1)
            store = self._calls if record.caller or record.id in calls else self._with_newest
            if isinstance(record, PreemptionRecord):
                store.put_preemption(record)
            else:
                store.put_attempts([record])

    # Recording an attempt.

    def scored(self, pod: Pod, choice: Choice) -> None:
        """Keeps the best nodes' scores until the attempt ends, unless those of many pods were kept in this second."""
        if self._scores.take():
            self._choice = pod, best_scores(choice)

    def refused(self, pod: Pod, findings: Findings) -> None:
        """Keeps the verdicts until the attempt ends, unless many have been kept in this second."""
        under_way = self._attempt_of(pod)
        if self._verdicts.take():
            under_way.details = verdict_details(findings, refuses_all=True)
        under_way.evaluated, under_way.num_nodes = len(findings.rows), len(findings.rows.snapshot.nodes)

    def preemption_tried(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Keeps the chosen candidate and the best others until the attempt ends, unless there were many lately."""
        under_way, candidates, chosen = self._attempt_of(pod), outcome.candidates, outcome.chosen
        under_way.may_preempt = outcome.why_not_eligible is None
        under_way.no_preemption = "" if outcome.status.is_success else outcome.status.message
        if under_way.details is not None and under_way.may_preempt:
            reasons = not_helpful(outcome, under_way.num_nodes)
            under_way.details = msgspec.structs.replace(under_way.details, not_helpful=reasons)
        self._judge(pod.uid, "wasted", outcome.last_room_taken_by)
        if chosen is None:
            return
        now, alone = self._now(), outcome.without_policies
        under_way.without_policies = None if alone is None else keep_candidate(alone, now)
        place = candidates.snapshot.nodes.index.get(chosen.node, -1) if candidates is not None else -1
        if candidates is None or place not in candidates.node:
            under_way.chosen = keep_candidate(chosen, now)
            return
        under_way.num_candidates = len(candidates)
        if self._preemptions.take():
            under_way.candidates = keep_candidates(candidates, pod, now, chosen.node)
        else:
            violates = broken_budgets(candidates.snapshot, np.array([place]), pod, candidates.rules)
            under_way.candidates = (keep_candidate(chosen, now, violates),)
        under_way.chosen = under_way.candidates[0]

    def group_preempts(self, first: Pod, chosen: Candidate, without_policies: Candidate | None) -> None:
        """Keeps the victims under the first member, without a node: they are on any number of nodes."""
        under_way, now = self._attempt_of(first), self._now()
        under_way.may_preempt, under_way.no_preemption = True, ""
        under_way.chosen = keep_candidate(msgspec.structs.replace(chosen, node=""), now)
        alone = without_policies
        under_way.without_policies = (
            None if alone is None else keep_candidate(msgspec.structs.replace(alone, node=""), now)
        )

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        """The attempt ends with a node. This is called thousands of times a second: what can be done later is."""
        pod, number = info.pod, self._next_id
        record = AttemptRecord(
            number,
            self._now(),
            PodName.of(pod),
            profile,
            "Scheduled",
            info.attempts,
            node,
            "",
            evaluated,
            feasible,
            seconds,
            info.woken_by,
        )
        self._new.append(record)
        self._judge(pod.uid, "used", ())
        self._next_id = number + 1
        if self._choice is not None:
            scores = self._take_scores(pod)
            if scores:
                self._store.put_details(number, Details(scores=scores))
        self._tell(record)

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """The attempt ends without a node, and perhaps with a preemption."""
        under_way, self._under_way = self._attempt_of(info.pod), _UnderWay()
        outcome: Outcome = "Unschedulable" if status.is_rejected else "Error"
        attempt = AttemptRecord(
            self._take_id(),
            self._now(),
            PodName.of(info.pod),
            profile,
            outcome,
            info.attempts,
            message=status.message,
            evaluated=under_way.evaluated,
            seconds=seconds,
            woken_by=info.woken_by,
            no_preemption=under_way.no_preemption,
            may_preempt=under_way.may_preempt,
        )
        scores = self._take_scores(info.pod)
        if under_way.details is not None or scores:
            details = msgspec.structs.replace(under_way.details or Details(), scores=scores)
            self._store.put_details(attempt.id, details)
        if under_way.chosen is not None:
            self._put_preemption(self._store, attempt, under_way)
        self._keep(self._with_newest, attempt)

    def binding_failed(self, pod: Pod, status: fwk.Status) -> None:
        """The last attempt of the pod, which had a node, has failed."""
        last = next(self._with_newest.attempts(pod.key, pod.uid, None), None)
        if last is None or last.record.outcome != "Scheduled":
            return
        outcome: Outcome = "Unschedulable" if status.is_rejected else "Error"
        attempt = msgspec.structs.replace(last.record, outcome=outcome, message=status.message)
        self._store.change(attempt)
        self._tell(attempt)

    def _judge(self, uid: str, verdict: Verdict, taken_by: Sequence[Pod] | None) -> None:
        """Notes what the last preemption for the pod was good for; `taken_by` is None while it is not over."""
        preemption = None if taken_by is None else self._store.last_preemption_for(uid)
        if preemption is not None and taken_by is not None and not preemption.verdict:
            names = tuple(PodName.of(pod) for pod in taken_by[: limits.TAKERS_KEPT])
            self._changed(self._store, msgspec.structs.replace(preemption, verdict=verdict, room_taken_by=names))

    def preemption_ended(self, preemptor: Pod, *, done: bool) -> None:
        """Notes how the last preemption of the pod ended."""
        preemption = self._store.last_preemption_for(preemptor.uid)
        if preemption is not None and preemption.outcome == "deciding":
            self._changed(self._store, msgspec.structs.replace(preemption, outcome="told" if done else "failed"))

    # Recording the calls of another scheduler.

    def filter_called(self, call: VerbCall, findings: Findings, num_kept: int) -> None:
        """Keeps the verdicts, unless those of many calls have been kept in this second."""
        attempt = self._of_call(call, "Filter", feasible=num_kept, message=findings.pre_filter.message)
        if self._filters.take():
            self._calls.put_details(attempt.id, verdict_details(findings, refuses_all=not num_kept))
        self._keep(self._calls, attempt)

    def prioritize_called(self, call: VerbCall, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """Keeps the best nodes, unless those of many calls have been kept in this second."""
        attempt = self._of_call(call, "Prioritize", feasible=len(nodes))
        if self._prioritizes.take():
            self._calls.put_details(attempt.id, Details(scores=_best_of(nodes, scores)))
        self._keep(self._calls, attempt)

    def preempt_called(self, call: VerbCall, candidates: Candidates, without_policies: Candidate | None) -> None:
        """Keeps the best candidates; which one the other scheduler takes is not known yet."""
        attempt = self._of_call(call, "Preempt", feasible=len(candidates))
        now = self._now()
        under_way = _UnderWay(candidates=keep_candidates(candidates, call.pod, now), num_candidates=len(candidates))
        under_way.without_policies = None if without_policies is None else keep_candidate(without_policies, now)
        if under_way.candidates:
            self._put_preemption(self._calls, attempt, under_way)
        self._keep(self._calls, attempt)

    def call_failed(self, call: VerbCall, message: str) -> None:
        self._keep(self._calls, self._of_call(call, "Error", message=message))

    def nominated(self, pod: Pod) -> None:
        """Notes which candidate the other scheduler has taken. A nomination that was decided here is not its."""
        preemption, node = self._calls.last_preemption_for(pod.uid), pod.status.nominated_node_name
        own_preemption = self._store.last_preemption_for(pod.uid)
        if (
            preemption is None
            or preemption.outcome != "deciding"
            or preemption.node
            or (own_preemption is not None and own_preemption.node == node)
        ):
            return
        in_order = sorted(preemption.candidates, key=lambda candidate: candidate.node != node)
        candidate = in_order[0] if in_order and in_order[0].node == node else CandidateRecord(node, (), 0)
        self._changed(
            self._calls,
            msgspec.structs.replace(
                preemption,
                node=node,
                outcome="told",
                victims=candidate.victims,
                num_pdb_violations=candidate.num_pdb_violations,
                candidates=tuple(in_order),
            ),
        )

    # The attempt under way, and the stores.

    def _attempt_of(self, pod: Pod) -> _UnderWay:
        """What is known of the pod's attempt. An attempt of another pod, which was never ended, is forgotten."""
        if self._under_way.uid != pod.uid:
            self._under_way = _UnderWay(pod.uid)
        return self._under_way

    def _take_scores(self, pod: Pod) -> tuple[NodeScore, ...]:
        """The scores of the pod's choice, if it had one. Those of an attempt that was never ended are dropped."""
        choice, self._choice = self._choice, None
        return choice[1] if choice is not None and choice[0] is pod else ()

    @property
    def _with_newest(self) -> RecordStore:
        if self._new:
            self._store.put_attempts(self._new)
            self._new.clear()
        return self._store

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _of_call(self, call: VerbCall, outcome: Outcome, *, feasible: int = 0, message: str = "") -> AttemptRecord:
        """A call as a record, with as much of its texts as valid ones can have: they are the caller's."""
        max_characters, pod = limits.CALL_NAME_CHARACTERS, PodName.of(call.pod)
        return AttemptRecord(
            self._take_id(),
            self._now(),
            PodName(pod.namespace[:max_characters], pod.name[:max_characters], pod.uid[:max_characters], pod.priority),
            call.profile[:max_characters],
            outcome,
            message=message[: limits.CALL_MESSAGE_CHARACTERS],
            evaluated=call.num_nodes,
            feasible=feasible,
            seconds=call.seconds,
            caller=call.caller[:max_characters],
        )

    def _put_preemption(self, store: RecordStore, attempt: AttemptRecord, under_way: _UnderWay) -> None:
        chosen = under_way.chosen or CandidateRecord("", (), 0)
        preemption = PreemptionRecord(
            attempt.id,
            attempt.time,
            attempt.pod,
            chosen.node,
            chosen.victims,
            chosen.num_pdb_violations,
            under_way.candidates,
            under_way.num_candidates,
            caller=attempt.caller,
            without_policies=under_way.without_policies,
        )
        store.put_preemption(preemption)
        if self._write is not None:
            self._write(preemption)

    def _keep(self, store: RecordStore, attempt: AttemptRecord) -> None:
        store.put_attempts([attempt])
        self._tell(attempt)

    def _changed(self, store: RecordStore, preemption: PreemptionRecord) -> None:
        store.put_preemption(preemption)
        self._tell(preemption)

    def _tell(self, record: Record) -> None:
        if self._write is not None:
            self._write(record)
        self.version += 1
        if self._is_watched:
            self._something_came.set()


def _best_of(nodes: Sequence[str], scores: Sequence[int]) -> tuple[NodeScore, ...]:
    best = np.argsort(-np.array(scores, np.int64), kind="stable")[:BEST_NODES].tolist()
    return tuple(
        NodeScore(node=nodes[place][: limits.CALL_NAME_CHARACTERS], total=scores[place], others=scores[place])
        for place in best
    )
