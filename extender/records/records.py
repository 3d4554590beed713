"""Records: the attempts and preemptions of late. State: what is known so far of the attempt under way; all else is on the shelf."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import msgspec

from extender import framework as fwk
from extender.framework import Candidates, PreemptionOutcome
from extender.objects.pod import Pod
from extender.objects.preemption_messages import NOT_HELPFUL
from extender.protocol.wire_types import MAX_EXTENDER_PRIORITY
from extender.queue.queued_pod_info import QueuedPodInfo
from extender.records.arrays import KeptScores, KeptVerdicts, keep_scores, keep_verdicts
from extender.records.kept import AttemptMade, Details, KeptAttempt, Outcome, PodId, PreemptionMade, Room, size_of_attempt
from extender.records.reporter import Asked, Reporter
from extender.records.rooms import keep_chosen, keep_rooms, keep_victims, place_of, pod_id
from extender.records.shelf import Limits, Made, Ration, Shelf, is_victim
from extender.runtime.findings import Findings
from extender.snapshot import Rows
from extender.snapshot.axes import Int64s

UNSORTED_SIZE: Final = 1024
"""Bytes of an attempt, at most and about, that is not on the shelf yet."""
BEST_OF_ASKED: Final = 16
"""Nodes kept of the scores that another scheduler asked for."""


_Choice = tuple[Pod, KeptScores]
_Decided = tuple[int, float, str, str, str, int | None, str, int, str, int, int, float, str]
"""What `_attempt_of` reads, so that the pod itself need not be kept."""


@final
@dataclass(slots=True)
class _UnderWay:
    """What has been told of the attempt of a pod before its end."""

    uid: str = ""
    verdicts: KeptVerdicts | None = None
    evaluated: int = 0
    rooms: tuple[Room, ...] = ()
    num_candidates: int = 0
    chosen: Room | None = None
    no_preemption: str = ""
    may_preempt: bool = True
    not_helpful: tuple[tuple[str, int], ...] = ()


@final
class Records(Reporter):
    """Hears of what is decided, and remembers it.

    What it hears costs a cycle microseconds: arrays that were there anyhow are packed. Nothing is put into words before somebody asks.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        now: Callable[[], float] = time.time,
        write: Callable[[Made], None] | None = None,
    ) -> None:
        """Nothing is known yet.

        Arguments:
            now: seconds since 1970.
            write: is given everything that is to outlive the process, as it is by then: what changes is given again, with the same id.
                None if nothing is.
        """
        self.version = 0
        """Rises with everything that is new; see `news`."""
        limits = limits or Limits()
        unsorted = max(1, min(limits.attempts, limits.size // 2 // UNSORTED_SIZE))
        self._store = Shelf(replace(limits, size=limits.size - unsorted * UNSORTED_SIZE))
        # The newest. They are put on the shelf when somebody wants to see them, and most will be pushed out before anybody does.
        self._unsorted: deque[_Decided | AttemptMade] = deque(maxlen=unsorted)
        self._scores, self._verdicts, self._contests = (Ration(limits.details_a_second, now) for _ in range(3))
        self._now = now
        self._write = write
        self._next_id = 1
        self._under_way = _UnderWay()
        self._choice: _Choice | None = None
        self._something_came = asyncio.Event()
        # From the first time on that somebody waits for news.
        self._is_watched = False

    # What is kept.

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self._shelf.size

    @property
    def oldest(self) -> int:
        """The id of the oldest attempt that is kept; 0 if there is none."""
        return self._shelf.oldest

    def attempts(self, pod: str | None = None, *, uid: str | None = None, before: int | None = None) -> Iterator[KeptAttempt]:
        """Attempts, newest first. Nothing is awaited until they are read off.

        Arguments:
            pod: namespace/name; None for all pods.
            uid: only of this pod, if several had the name.
            before: only those with a smaller id.
        """
        return self._shelf.attempts(pod, uid, before)

    def attempt(self, number: int) -> KeptAttempt | None:
        """The attempt of this id; None if it is not kept, or no more."""
        return self._shelf.attempt(number)

    def preemptions(self, pod: str | None = None, *, before: int | None = None) -> Iterator[PreemptionMade]:
        """Preemptions, newest first. Nothing is awaited until they are read off.

        Arguments:
            pod: namespace/name of a victim or of a preemptor; None for all.
            before: only those with a smaller id.
        """
        return self._shelf.preemptions(pod, before)

    def who_preempted(self, pod: str) -> PreemptionMade | None:
        """The last preemption of which namespace/name was a victim; None if none is known, or if none came to anything."""
        return next((made for made in self.preemptions(pod) if made.outcome != "failed" and is_victim(pod, made)), None)

    async def news(self, since: int) -> int:
        """The version, once it is another than `since`: at once, if it is already. It may rise a thousand times a second."""
        while self.version == since:
            self._is_watched = True
            self._something_came.clear()
            await self._something_came.wait()
        return self.version

    def everything(self) -> list[Made]:
        """All that is to outlive the process."""
        return self._shelf.everything()

    def restore(self, made: Iterable[Made]) -> None:
        """What was kept before the process started, of each id the last that is given. Call it before anything else is told."""
        newest = {(type(each), each.id): each for each in made}
        for each in sorted(newest.values(), key=lambda each: each.id):
            self._next_id = max(self._next_id, each.id + 1)
            if isinstance(each, PreemptionMade):
                self._shelf.put_preemption(each)
            else:
                self._shelf.put([each])

    # An attempt.

    def chose(self, pod: Pod, rows: Rows, total: Int64s, highest: int) -> None:
        """Keep the totals for when the attempt ends, unless those of many have been kept in this second."""
        if self._scores.take():
            self._choice = pod, keep_scores(rows, total, highest, self._store.naming.of(rows.snapshot.nodes.index))

    def refused(self, pod: Pod, findings: Findings) -> None:
        """Keep the verdicts for when the attempt ends, unless those of many have been kept in this second."""
        under_way = self._of(pod)
        if self._verdicts.take():
            under_way.verdicts = keep_verdicts(findings, self._store.naming.of(findings.rows.snapshot.nodes.index))
        under_way.evaluated = len(findings.rows)

    def sought_room(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        """Keep the chosen candidate for when the attempt ends, and the best of the others, unless there have been many in this second."""
        under_way, candidates, victims = self._of(pod), outcome.candidates, outcome.chosen
        under_way.may_preempt = outcome.why_not_eligible is None
        under_way.no_preemption = "" if outcome.status.is_success else outcome.status.message
        if under_way.verdicts is not None:
            under_way.not_helpful = _not_helpful(outcome, under_way.verdicts)
        if victims is None:
            return
        place = place_of(candidates, victims.node) if candidates is not None else None
        if candidates is not None and place is not None:
            under_way.num_candidates = len(candidates)
            under_way.rooms = keep_rooms(candidates, pod, place) if self._contests.take() else (keep_chosen(candidates, pod, place),)
            under_way.chosen = under_way.rooms[0]
        else:
            under_way.chosen = keep_victims(victims)

    def decided(self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float) -> None:
        """The attempt ends with a node."""
        # Told thousands of times a second: what can be done later is.
        pod, number = info.pod, self._next_id
        named = pod.metadata
        told = (
            number, self._now(), named.namespace, named.name, named.uid, pod.spec.priority, profile, info.attempts, node,
            evaluated, feasible, seconds, info.woken_by,
        )  # fmt: skip
        self._unsorted.append(told)
        self._next_id = number + 1
        self.version += 1
        if self._choice is not None:
            scores = self._take_scores(pod)
            if scores is not None:
                self._store.put_details(number, Details(scores=scores))
        if self._write is not None:
            self._write(_attempt_of(told))
        if self._is_watched:
            self._something_came.set()

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        """The attempt ends without a node, and perhaps with a preemption."""
        found = self._take(info.pod)
        outcome: Outcome = "Unschedulable" if status.is_rejected else "Error"
        made = self._made(pod_id(info.pod), profile, outcome, info.attempts, status.message, found.evaluated, 0, seconds, info.woken_by)
        if found.no_preemption or not found.may_preempt:
            made = msgspec.structs.replace(made, no_preemption=found.no_preemption, may_preempt=found.may_preempt)
        scores = self._take_scores(info.pod)
        if found.verdicts is not None or scores is not None:
            self._store.put_details(made.id, Details(found.verdicts, scores, not_helpful=found.not_helpful))
        if found.chosen is not None:
            self._preempted(made, found.rooms, found.num_candidates, found.chosen)
        self._keep(made)

    def not_bound(self, pod: Pod, status: fwk.Status) -> None:
        """The last attempt of the pod came to something else after all."""
        last = next(self.attempts(pod.key, uid=pod.uid), None)
        if last is None or last.made.outcome != "Scheduled":
            return
        outcome: Outcome = "Unschedulable" if status.is_rejected else "Error"
        made = msgspec.structs.replace(last.made, outcome=outcome, message=status.message)
        self._store.change(made)
        self._written(made)
        self._is_news()

    def victims_told(self, preemptor: Pod, *, done: bool) -> None:
        """How the last preemption of the pod ended."""
        made = self._shelf.last_preemption_for(preemptor.uid)
        if made is not None and made.outcome == "deciding":
            self._changed(msgspec.structs.replace(made, outcome="told" if done else "failed"))

    # What another scheduler asks.

    def asked_filter(self, asked: Asked, findings: Findings, num_kept: int) -> None:
        """Keep the verdicts."""
        made = self._asked(asked, "Filter", feasible=num_kept, message=findings.pre_filter.message)
        self._store.put_details(made.id, Details(keep_verdicts(findings, self._store.naming.of(findings.rows.snapshot.nodes.index))))
        self._keep(made)

    def asked_prioritize(self, asked: Asked, nodes: Sequence[str], scores: Sequence[int]) -> None:
        """Keep the best."""
        made = self._asked(asked, "Prioritize", feasible=len(nodes))
        self._store.put_details(made.id, Details(best=_best_of(nodes, scores)))
        self._keep(made)

    def asked_preempt(self, asked: Asked, candidates: Candidates) -> None:
        """Keep the best candidates: which one is taken, the other scheduler has not said yet."""
        made = self._asked(asked, "Preempt", feasible=len(candidates))
        rooms = keep_rooms(candidates, asked.pod)
        if rooms:
            self._preempted(made, rooms, len(candidates), None)
        self._keep(made)

    def asked_in_vain(self, asked: Asked, message: str) -> None:
        """An error."""
        self._keep(self._asked(asked, "Error", message=message))

    def nominated(self, pod: Pod) -> None:
        """Now it is known which of the candidates was taken."""
        made, node = self._shelf.last_preemption_for(pod.uid), pod.status.nominated_node_name
        if made is None or made.outcome != "deciding" or made.node:
            return
        taken = next((room for room in made.candidates if room.node == node), None)
        others = tuple(room for room in made.candidates if room is not taken)
        self._changed(
            msgspec.structs.replace(
                made,
                node=node,
                outcome="told",
                victims=taken.victims if taken is not None else (),
                num_pdb_violations=taken.num_pdb_violations if taken is not None else 0,
                candidates=(taken, *others) if taken is not None else others,
            )
        )

    # Keeping.

    def _of(self, pod: Pod) -> _UnderWay:
        """What is known of the pod's attempt; that of another pod, which was never ended, is forgotten."""
        if self._under_way.uid != pod.uid:
            self._under_way = _UnderWay(pod.uid)
        return self._under_way

    def _take(self, pod: Pod) -> _UnderWay:
        found = self._of(pod)
        self._under_way = _UnderWay()
        return found

    def _take_scores(self, pod: Pod) -> KeptScores | None:
        """The scores of the pod's choice, if it had one; not those of an attempt that was never ended."""
        choice, self._choice = self._choice, None
        return choice[1] if choice is not None and choice[0] is pod else None

    @property
    def _shelf(self) -> Shelf:
        """With everything on it."""
        if self._unsorted:
            self._store.put(map(_attempt_of, self._unsorted))
            self._unsorted.clear()
        return self._store

    def _made(
        self,
        pod: PodId,
        profile: str,
        outcome: Outcome,
        number: int,
        message: str,
        evaluated: int,
        feasible: int,
        seconds: float,
        woken_by: str = "",
    ) -> AttemptMade:
        made = AttemptMade(self._next_id, self._now(), pod, profile, outcome, number, "", message, evaluated, feasible, seconds, woken_by)
        self._next_id += 1
        return made

    def _asked(self, asked: Asked, outcome: Outcome, *, feasible: int = 0, message: str = "") -> AttemptMade:
        return self._made(pod_id(asked.pod), asked.profile, outcome, 0, message, asked.num_nodes, feasible, asked.seconds)

    def _preempted(self, made: AttemptMade, rooms: tuple[Room, ...], num_candidates: int, chosen: Room | None) -> None:
        node, victims, violations = ("", (), 0) if chosen is None else (chosen.node, chosen.victims, chosen.num_pdb_violations)
        preemption = PreemptionMade(made.id, made.time, made.pod, node, victims, violations, rooms, num_candidates)
        self._store.put_preemption(preemption)
        self._written(preemption)

    def _keep(self, made: AttemptMade) -> None:
        if size_of_attempt(made) <= UNSORTED_SIZE:
            self._unsorted.append(made)
        else:
            self._shelf.put([made])
        self._written(made)
        self._is_news()

    def _changed(self, made: PreemptionMade) -> None:
        self._shelf.put_preemption(made)
        self._written(made)
        self._is_news()

    def _written(self, made: Made) -> None:
        if self._write is not None:
            self._write(made)

    def _is_news(self) -> None:
        self.version += 1
        if self._is_watched:
            self._something_came.set()


def _attempt_of(told: _Decided | AttemptMade) -> AttemptMade:
    """What was told of a pod that has a node; or what is an attempt already."""
    if isinstance(told, AttemptMade):
        return told
    number, now, namespace, name, uid, priority, profile, attempts, node, evaluated, feasible, seconds, woken_by = told
    pod = PodId(namespace or "default", name, uid, priority or 0)
    return AttemptMade(number, now, pod, profile, "Scheduled", attempts, node, "", evaluated, feasible, seconds, woken_by)


def _best_of(nodes: Sequence[str], scores: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """The nodes with the highest of scores from 0 to 10, in their order."""
    as_bytes = bytes(scores)
    best: list[tuple[str, int]] = []
    for score in range(MAX_EXTENDER_PRIORITY, -1, -1):
        at = as_bytes.find(score)
        while at >= 0:
            if len(best) == BEST_OF_ASKED:
                return tuple(best)
            best.append((nodes[at], score))
            at = as_bytes.find(score, at + 1)
    return tuple(best)


def _not_helpful(outcome: PreemptionOutcome, verdicts: KeptVerdicts) -> tuple[tuple[str, int], ...]:
    """(reason, nodes) where no room can be made, of the most nodes first."""
    if outcome.why_not_eligible is not None:
        return ()
    together = Counter(status.reasons for status in (outcome.statuses or {}).values())
    counts: Counter[str] = Counter()
    for reasons, nodes in together.items():
        for reason in reasons:
            counts[reason] += nodes
    counts[NOT_HELPFUL] += len(verdicts.nodes.names) - len(outcome.potential_nodes)
    return tuple(sorted(((reason, nodes) for reason, nodes in counts.items() if nodes), key=lambda item: (-item[1], item[0])))
