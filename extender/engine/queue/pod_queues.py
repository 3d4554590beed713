"""The queues that pods leave in an order, both heaps of pods that are also found by key.

The active queue has the pods to be tried next, the pods in flight, and the changes of the cluster since those were
popped; the backoff queue has pods that wait for a while after they failed.

Upstream: pkg/scheduler/backend/heap/heap.go; backend/queue/active_queue.go, backoff_queue.go.
"""

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, final

from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.queueing_hints import ChangeToHint
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

SortKey = Callable[[Pod, float], tuple[Any, ...]]
"""The sort key of a pod, given the seconds at which it was queued."""

_LOG: Final = Logger(__name__)
_REMOVED_ALLOWED: Final = 64

_Entry = tuple[Any, int, int, QueuedPodInfo]
"""(sort key, order of arrival, unique number, pod): equal sort keys by arrival; no two are equal."""


@final
@dataclass(slots=True, eq=False)
class PodHeap:
    """A binary heap with lazy deletion: removed entries stay in it until they come up or outnumber the live ones."""

    sort_key: Callable[[QueuedPodInfo], Any]
    """Its value for a pod may only change with `add_or_update`."""
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _heap: list[_Entry] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Yields the pods in the order in which they would be popped. The heap must not change meanwhile."""
        return (entry[3] for entry in sorted(self._entries.values()))

    def get(self, key: str) -> QueuedPodInfo | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[3]

    def add_or_update(self, info: QueuedPodInfo) -> None:
        """Adds the pod, or replaces the one of its key and moves it to its new place."""
        old, number = self._entries.get(info.key), next(self._numbers)
        entry = (self.sort_key(info), number if old is None else old[1], number, info)
        self._entries[info.key] = entry
        heapq.heappush(self._heap, entry)
        self._compact()

    def update(self, key: str, new: Pod) -> QueuedPodInfo | None:
        """Replaces the pod of this key; returns None if it is not here."""
        info = self.get(key)
        if info is not None:
            info.pod = new
            self.add_or_update(info)
        return info

    def remove(self, key: str) -> QueuedPodInfo | None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._compact()
        return entry[3]

    def peek(self) -> QueuedPodInfo | None:
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[3].key) is entry:
                return entry[3]
            heapq.heappop(heap)
        return None

    def pop(self) -> QueuedPodInfo | None:
        info = self.peek()
        if info is not None:
            heapq.heappop(self._heap)
            del self._entries[info.key]
        return info

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _REMOVED_ALLOWED:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)


def in_order(sort_key: SortKey) -> Callable[[QueuedPodInfo], tuple[Any, ...]]:
    """Returns a sort key that never raises: a pod that the plugin cannot order comes last."""

    def safe_key(info: QueuedPodInfo) -> tuple[Any, ...]:
        try:
            key = sort_key(info.pod, info.timestamp)
            if isinstance(key, tuple):
                return 0, key
            raise TypeError(f"{key!r} is no tuple")
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed", extensionPoint="QueueSort", pod=info.pod)
            return 1, (info.timestamp,)

    return safe_key


@final
class ActiveQueue:
    """The pods in the order in which they are tried, and those in flight: popped, and not done.

    All changes since the first of them was popped are kept: when a pod is refused, a change that came meanwhile may
    already make it worth another attempt.
    """

    def __init__(self, sort_key: Callable[[QueuedPodInfo], Any]) -> None:
        self.queue = PodHeap(sort_key)
        self.scheduling_cycle = 0
        """The number of pods popped."""
        # UID -> the pod, and the number of the first change after it was popped; in the order of popping, which is also
        # that of the numbers.
        self._in_flight: OrderedDict[str, tuple[QueuedPodInfo, int]] = OrderedDict()
        self._changes: dict[int, ChangeToHint] = {}
        self._first_change = 0
        self._next_change = 0

    def move_to_in_flight(self, info: QueuedPodInfo) -> bool:
        """Counts an attempt, and keeps changes for the pod; False if it is in flight and must not be tried."""
        info.attempts += 1
        if info.pod.uid in self._in_flight:
            return False
        self._in_flight[info.pod.uid] = (info, self._next_change)
        self.scheduling_cycle += 1
        return True

    def done(self, uid: str) -> None:
        """Ends the attempt, if there is one, and drops changes that no other pod in flight needs."""
        if self._in_flight.pop(uid, None) is None:
            return
        _, first_wanted = next(iter(self._in_flight.values()), (None, self._next_change))
        while self._first_change < first_wanted:
            del self._changes[self._first_change]
            self._first_change += 1

    def add_changes_if_in_flight(self, uid: str, changes: Iterable[ChangeToHint]) -> bool:
        """Keeps changes that concern a pod in flight; returns False if it is not in flight."""
        if uid not in self._in_flight:
            return False
        for change in changes:
            self._keep(change)
        return True

    def add_change_if_any_in_flight(self, change: ChangeToHint) -> bool:
        """Keeps a change for all pods in flight; returns False if there are none."""
        if self._in_flight:
            self._keep(change)
        return bool(self._in_flight)

    def changes_for(self, uid: str) -> list[ChangeToHint] | None:
        """Returns the changes since the pod was popped, in order; None if it is not in flight."""
        in_flight = self._in_flight.get(uid)
        return (
            None if in_flight is None else [self._changes[number] for number in range(in_flight[1], self._next_change)]
        )

    def in_flight_pods(self) -> list[QueuedPodInfo]:
        return [info for info, _ in self._in_flight.values()]

    def in_flight_log(self) -> Iterator[QueuedPodInfo | ChangeToHint]:
        """Yields the pods in flight and the changes kept for them, in the order in which they came."""
        number = self._first_change
        for info, first_change in self._in_flight.values():
            yield from (self._changes[before] for before in range(number, first_change))
            number = first_change
            yield info
        yield from (self._changes[after] for after in range(number, self._next_change))

    def _keep(self, change: ChangeToHint) -> None:
        self._changes[self._next_change] = change
        self._next_change += 1


DEFAULT_POD_INITIAL_BACKOFF: Final = 1.0
"""Seconds of backoff after the first attempt; each further attempt doubles it."""
DEFAULT_POD_MAX_BACKOFF: Final = 10.0


@final
class BackoffQueue:
    """Pods by the end of their backoff. It ends on whole seconds, so that pods whose backoff ends in the same second
    are tried in queue order, unless no pod is popped early.
    """

    def __init__(
        self,
        now: Callable[[], float],
        sort_key: Callable[[QueuedPodInfo], Any],
        initial_backoff: float = DEFAULT_POD_INITIAL_BACKOFF,
        max_backoff: float = DEFAULT_POD_MAX_BACKOFF,
        *,
        pops_early: bool = True,
    ) -> None:
        """A `max_backoff` of 0 is no backoff; unless it `pops_early`, backoffs end at any moment."""
        self._now = now
        self._initial_backoff = initial_backoff
        self._max_backoff = max_backoff
        self._pops_early = pops_early
        self.refused = PodHeap(
            lambda info: (self._backoff_end(info), sort_key(info)) if pops_early else self._backoff_end(info)
        )
        self.failed = PodHeap(self._backoff_end)
        """Never popped early, since the cause of the error may persist."""

    def __len__(self) -> int:
        return len(self.refused) + len(self.failed)

    def __contains__(self, key: str) -> bool:
        return key in self.refused or key in self.failed

    def backoff_time(self, info: QueuedPodInfo) -> float | None:
        """Returns the end of the backoff after the pod's last attempt; None if it has none."""
        count = info.consecutive_errors_count or info.unschedulable_count
        if not count or not self._max_backoff:
            return None
        if info.backoff_expiration is None:
            # 62 doublings are more than any longest backoff allows, and few enough for a float.
            duration = min(self._initial_backoff * 2 ** min(count - 1, 62), self._max_backoff)
            info.backoff_expiration = self._aligned(info.timestamp + duration)
        return info.backoff_expiration

    def is_pod_backing_off(self, info: QueuedPodInfo) -> bool:
        """True until the backoff is over; in the second in which it ends, it is over."""
        end = self.backoff_time(info)
        return end is not None and end >= self._aligned(self._now())

    def _aligned(self, time: float) -> float:
        """Returns the second in which a backoff ends, where pods are popped early. Upstream: alignToWindow."""
        return float(math.floor(time)) if self._pops_early else time

    def _backoff_end(self, info: QueuedPodInfo) -> float:
        end = self.backoff_time(info)
        return -math.inf if end is None else end

    def add(self, info: QueuedPodInfo) -> None:
        """Adds a pod, to `failed` if no plugin refused it, or if it was tried with its pod group."""
        queue, other = (self.failed, self.refused) if info.has_failed or info.is_member else (self.refused, self.failed)
        queue.add_or_update(info)
        if other.remove(info.key) is not None:
            other_name = "podBackoffQ" if info.has_failed else "podErrorBackoffQ"
            _LOG.error(
                None, f"BackoffQueue add() was called with a pod that was already in the {other_name}", pod=info.pod
            )

    def get(self, key: str) -> QueuedPodInfo | None:
        return self.refused.get(key) or self.failed.get(key)

    def update(self, key: str, new: Pod) -> QueuedPodInfo | None:
        return self.refused.update(key, new) or self.failed.update(key, new)

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self.refused.remove(key) or self.failed.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """Pops the refused pod whose backoff ends next; None if there is none, or unless it `pops_early`."""
        return self.refused.pop() if self._pops_early else None

    def pop_all_backoff_completed(self) -> Iterator[QueuedPodInfo]:
        """Pops all pods whose backoff is over, one at a time."""
        for heap in (self.refused, self.failed):
            while (info := heap.peek()) is not None and not self.is_pod_backing_off(info):
                heap.pop()
                yield info
