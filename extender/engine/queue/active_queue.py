"""ActiveQueue: the pods to be tried next, the pods in flight, and the changes of the cluster since those were popped.

Upstream: pkg/scheduler/backend/queue/active_queue.go.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from extender.engine.queue.pod_heap import PodHeap
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.queueing_hints import ChangeToHint
from extender.values.objects.pod import Pod


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

    def update(self, key: str, new: Pod) -> QueuedPodInfo | None:
        """Replaces the pod of this key; returns None if it is not in activeQ."""
        info = self.queue.get(key)
        if info is not None:
            info.pod = new
            self.queue.add_or_update(info)
        return info

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
        found = self._in_flight.get(uid)
        return None if found is None else [self._changes[number] for number in range(found[1], self._next_change)]

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
