"""BackoffQueue: pods that wait for a time before they are tried again. Refused pods and failed pods are kept apart.

Upstream: pkg/scheduler/backend/queue/backoff_queue.go.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from extender.engine.queue.pod_heap import PodHeap
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

DEFAULT_POD_INITIAL_BACKOFF: Final = 1.0
"""Seconds of backoff after the first attempt; each further attempt doubles it."""
DEFAULT_POD_MAX_BACKOFF: Final = 10.0

_LOG: Final = Logger(__name__)


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

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self.refused
        yield from self.failed

    def backoff_time(self, info: QueuedPodInfo) -> float | None:
        """Returns when the backoff after the pod's last attempt ends or ended; None if it has none."""
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
        """Upstream: alignToWindow."""
        return float(math.floor(time)) if self._pops_early else time

    def _backoff_end(self, info: QueuedPodInfo) -> float:
        end = self.backoff_time(info)
        return -math.inf if end is None else end

    def add(self, info: QueuedPodInfo) -> None:
        """Adds a pod, to `failed` if no plugin refused it, or if it was tried with its pod group."""
        own, other = (self.failed, self.refused) if info.has_failed or info.is_member else (self.refused, self.failed)
        own.add_or_update(info)
        if other.remove(info.key) is not None:
            other_name = "podBackoffQ" if info.has_failed else "podErrorBackoffQ"
            _LOG.error(
                None, f"BackoffQueue add() was called with a pod that was already in the {other_name}", pod=info.pod
            )

    def get(self, key: str) -> QueuedPodInfo | None:
        return self.refused.get(key) or self.failed.get(key)

    def update(self, key: str, new: Pod) -> QueuedPodInfo | None:
        """Replaces the pod of this key; returns None if it is not here."""
        for heap in (self.refused, self.failed):
            info = heap.get(key)
            if info is not None:
                info.pod = new
                heap.add_or_update(info)
                return info
        return None

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self.refused.remove(key) or self.failed.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """Pops the refused pod whose backoff ends next; None if there is none, or if that is not wanted."""
        return self.refused.pop() if self._pops_early else None

    def pop_all_backoff_completed(self) -> Iterator[QueuedPodInfo]:
        """Pops all pods whose backoff is over, each as it is asked for."""
        for heap in (self.refused, self.failed):
            while (info := heap.peek()) is not None and not self.is_pod_backing_off(info):
                heap.pop()
                yield info
