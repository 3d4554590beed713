"""backoffQ: pods that pause before they are tried again. Pods that were refused and pods that failed pause apart from each other.

Upstream: pkg/scheduler/backend/queue/backoff_queue.go (v1.36.2).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from extender.klog.logger import Logger
from extender.objects.pod import Pod
from extender.queue.pod_heap import PodHeap
from extender.queue.queued_pod_info import QueuedPodInfo

DEFAULT_POD_INITIAL_BACKOFF: Final = 1.0
"""Seconds that a pod pauses after its first attempt; twice as long after each further one."""
DEFAULT_POD_MAX_BACKOFF: Final = 10.0
"""Seconds that no pause exceeds."""

_MAX_DOUBLINGS: Final = 62
_LOG: Final = Logger(__name__)


@final
class BackoffQueue:
    """Pods by when their pause ends. Pauses end on whole seconds, so that the pods of a second can be put into trying order."""

    def __init__(
        self,
        now: Callable[[], float],
        sort_key: Callable[[QueuedPodInfo], Any],
        initial_backoff: float = DEFAULT_POD_INITIAL_BACKOFF,
        max_backoff: float = DEFAULT_POD_MAX_BACKOFF,
    ) -> None:
        """Make an empty queue.

        Arguments:
            max_backoff: 0 for no pauses at all.
        """
        self._now = now
        self._initial_backoff = initial_backoff
        self._max_backoff = max_backoff
        self.refused = PodHeap(lambda info: (self._end_of_pause(info), sort_key(info)))
        self.failed = PodHeap(self._end_of_pause)
        """Whatever went wrong may still be wrong: nobody pops these early."""

    def __len__(self) -> int:
        return len(self.refused) + len(self.failed)

    def __contains__(self, key: str) -> bool:
        return key in self.refused or key in self.failed

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self.refused
        yield from self.failed

    def backoff_time(self, info: QueuedPodInfo) -> float | None:
        """When the pause after the pod's last attempt ends, or ended; None if there was no reason to pause."""
        count = info.consecutive_errors_count or info.unschedulable_count
        if not count or not self._max_backoff:
            return None
        if info.backoff_expiration is None:
            pause = min(self._initial_backoff * 2 ** min(count - 1, _MAX_DOUBLINGS), self._max_backoff)
            info.backoff_expiration = float(math.floor(info.timestamp + pause))
        return info.backoff_expiration

    def is_pod_backing_off(self, info: QueuedPodInfo) -> bool:
        """Whether the pod's pause is not over; in the second in which it ends, it is not."""
        end = self.backoff_time(info)
        return end is not None and end >= math.floor(self._now())

    def _end_of_pause(self, info: QueuedPodInfo) -> float:
        end = self.backoff_time(info)
        return -math.inf if end is None else end

    def add(self, info: QueuedPodInfo) -> None:
        """The pod pauses; with those that failed, if nobody refused it."""
        own, other = (self.failed, self.refused) if info.has_failed else (self.refused, self.failed)
        own.add_or_update(info)
        if other.remove(info.key) is not None:
            other_one = "podBackoffQ" if info.has_failed else "podErrorBackoffQ"
            _LOG.error(None, f"BackoffQueue add() was called with a pod that was already in the {other_one}", pod=info.pod)

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod of this key, None if it does not pause."""
        return self.refused.get(key) or self.failed.get(key)

    def update(self, key: str, new: Pod) -> QueuedPodInfo | None:
        """The pod of this key, as it is now; None if it does not pause."""
        for heap in (self.refused, self.failed):
            info = heap.get(key)
            if info is not None:
                info.pod = new
                heap.add_or_update(info)
                return info
        return None

    def remove(self, key: str) -> QueuedPodInfo | None:
        """The pod that was here under this key and is no more; None if there was none."""
        return self.refused.remove(key) or self.failed.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """The refused pod whose pause ends next, though it has not ended; None if there is none."""
        return self.refused.pop()

    def pop_all_backoff_completed(self) -> list[QueuedPodInfo]:
        """The pods whose pause is over, which are here no more."""
        completed: list[QueuedPodInfo] = []
        for heap in (self.refused, self.failed):
            while (info := heap.peek()) is not None and not self.is_pod_backing_off(info):
                heap.pop()
                completed.append(info)
        return completed
