"""The memory of preemptions: RunningPreemptions gates preemptors until all victims were evicted, and LoopGuard pauses
preemptors after wasted ones.

Upstream: pkg/scheduler/framework/preemption/executor.go, IsPodRunningPreemption.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.snapshot import Snapshot
from extender.values import limits
from extender.values.objects.pod import Pod

CHOSEN_LATELY: Final = 60.0
"""Seconds for which a victim counts as chosen lately."""


@final
class RunningPreemptions:
    """The pods for which victims are being evicted, by UID. All profiles share one.

    State: the last victim of each, once its eviction was requested; and the victims that were chosen lately.
    """

    def __init__(self) -> None:
        self._last_victims: dict[str, Pod | None] = {}
        self._chosen: dict[str, float] = {}

    def choose(self, victims: Iterable[Pod], now: float) -> None:
        """Records that these pods are about to be evicted, in seconds since 1970."""
        self._chosen |= dict.fromkeys((victim.uid for victim in victims), now)

    def chosen_lately(self, now: float) -> tuple[str, ...]:
        """Returns the UIDs of victims chosen within `CHOSEN_LATELY`; an eviction not seen by then has failed."""
        self._chosen = {uid: when for uid, when in self._chosen.items() if now - when < CHOSEN_LATELY}
        return tuple(self._chosen)

    def begin(self, uid: str) -> None:
        self._last_victims[uid] = None

    def evict_last(self, uid: str, victim: Pod) -> None:
        """Records that all other victims were evicted, and that the last one is being evicted now."""
        self._last_victims[uid] = victim

    def end(self, uid: str) -> None:
        """Records that the preemption is over, whatever its result. Idempotent."""
        self._last_victims.pop(uid, None)

    def is_running(self, uid: str, live: fwk.LiveCluster | None) -> bool:
        """Returns whether the pod has to wait. It no longer does once its last victim is terminating or gone."""
        if uid not in self._last_victims:
            return False
        victim = self._last_victims[uid]
        if victim is None or live is None:
            return True
        observed = live.pod(victim.uid)
        return observed is not None and not observed.is_terminating


PREEMPTIONS: Final = fwk.StateKey[RunningPreemptions]("Preemptions")

UNPAUSED: Final = 1
"""This many wasted preemptions in a row cause no pause: races are ordinary."""
FIRST_PAUSE: Final = 10.0
"""Seconds; doubled with each further wasted preemption."""
LAST_PAUSE: Final = 3600.0
STOPPED_AFTER: Final = 8
"""The preemptor is stopped after this many in a row."""
STOPPED_FOR: Final = 24 * 3600.0
"""The seconds for which a preemptor is stopped."""
_NAMED: Final = 3


@final
@dataclass(slots=True)
class _Record:
    """The preemptions of one pod since it was created."""

    node: str
    victims: tuple[Pod, ...]
    uids: frozenset[str]
    """UIDs of the victims and of the other pods on the node."""
    wasted: int = 0
    """The number of wasted preemptions in a row."""
    is_judged: bool = False
    since: float = 0.0
    """The time at which the last preemption was judged wasted."""
    taken_by: tuple[Pod, ...] | None = None
    """The pods that took the room of the last one; None unless it was wasted."""


@final
class Pause(msgspec.Struct, frozen=True):
    """The reason why a preemptor may not preempt now, and the seconds until it may."""

    reason: str
    seconds: float


@final
class LoopGuard:
    """Pauses preemptors whose preemptions help nobody. All profiles share one.

    A preemption is wasted if its victims are gone, the room was kept for its preemptor, and the preemptor fits nowhere
    all the same: somebody else has taken the room, such as another scheduler that works on the same nodes, or a
    controller that puts the victims back (kubernetes/kubernetes#130429). Upstream preempts again at once, forever.

    State: the last preemption of each preemptor that is not known to have a node.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self.num_wasted = 0
        self.num_pauses = 0
        """The number of preemptions that were not carried out because of a pause."""

    def pause(self, preemptor: Pod, snapshot: Snapshot, live: fwk.LiveCluster, now: float) -> Pause | None:
        """Returns a pause if the preemptor may not preempt now, in seconds since 1970; None the first time."""
        record = self._records.get(preemptor.uid)
        if record is None:
            return None
        if not record.is_judged:
            if any(live.pod(victim.uid) is not None for victim in record.victims):
                return None  # it is not over
            record.is_judged = True
            # Without its nomination the room was not kept for it: it was given up, for example because the node was
            # cordoned meanwhile.
            if preemptor.status.nominated_node_name == record.node:
                record.since = now
                record.wasted += 1
                self.num_wasted += 1
                newcomers = (pod for pod in _on_node(record.node, snapshot) if pod.uid not in record.uids)
                record.taken_by = tuple(newcomers)
        if record.wasted <= UNPAUSED:
            return None
        stops = record.wasted >= STOPPED_AFTER
        pause = STOPPED_FOR if stops else min(FIRST_PAUSE * 2 ** (record.wasted - UNPAUSED - 1), LAST_PAUSE)
        wait = record.since + pause - now
        if wait <= 0:
            return None
        self.num_pauses += 1
        word = "stopped" if stops else "paused"
        reason = (
            f"{word} for another {wait:.0f}s after {record.wasted} wasted preemptions in a row; {_why_wasted(record)}"
        )
        return Pause(reason, wait)

    def room_taken_by(self, preemptor: Pod) -> tuple[Pod, ...] | None:
        """Returns the pods that took the room of the preemptor's last preemption, if that is known to be wasted."""
        record = self._records.get(preemptor.uid)
        return None if record is None else record.taken_by

    def chosen(self, preemptor: Pod, candidate: fwk.Candidate, snapshot: Snapshot) -> None:
        """Records that victims are going to be evicted for the preemptor."""
        uids = frozenset(pod.uid for pod in (*candidate.victims, *_on_node(candidate.node, snapshot)))
        previous = self._records.pop(preemptor.uid, None)
        wasted = 0 if previous is None else previous.wasted
        if len(self._records) >= limits.PREEMPTORS_KEPT:
            del self._records[next(iter(self._records))]
        self._records[preemptor.uid] = _Record(candidate.node, candidate.victims, uids, wasted)


GUARD: Final = fwk.StateKey[LoopGuard]("LoopGuard")


def _why_wasted(record: _Record) -> str:
    came = [pod.key for pod in record.taken_by or ()]
    if not came:
        return f"on node {record.node} the room was not enough"
    more = f" and {len(came) - _NAMED} more" if len(came) > _NAMED else ""
    return f"the room on node {record.node} was taken by {', '.join(came[:_NAMED])}{more}"


def _on_node(node: str, snapshot: Snapshot) -> Sequence[Pod]:
    place = snapshot.nodes.index.get(node)
    return () if place is None else [snapshot.pod_at(slot) for slot in snapshot.pods.on_node[place]]
