"""PodHeap: a heap of pods that are also found by key; and the order of pods in it, as the QueueSort plugin gives it.

Upstream: pkg/scheduler/backend/heap/heap.go.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, final

from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

SortKey = Callable[[Pod, float], tuple[Any, ...]]
"""The sort key of a pod, given the seconds at which it was queued."""

_LOG: Final = Logger(__name__)
_REMOVED_ALLOWED: Final = 64

_Entry = tuple[Any, int, int, QueuedPodInfo]
"""(sort key, order of arrival, unique number, pod): equal sort keys by arrival; no two are equal."""


@final
class PodHeap:
    """A binary heap with lazy deletion: removed entries stay in it until they come up or outnumber the live ones."""

    __slots__ = ("_entries", "_heap", "_numbers", "_sort_key")

    def __init__(self, sort_key: Callable[[QueuedPodInfo], Any]) -> None:
        """Takes the sort key, whose value for a pod may only change with `add_or_update`."""
        self._sort_key = sort_key
        self._entries: dict[str, _Entry] = {}
        self._heap: list[_Entry] = []
        self._numbers = count()

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
        entry = (self._sort_key(info), number if old is None else old[1], number, info)
        self._entries[info.key] = entry
        heapq.heappush(self._heap, entry)
        self._compact()

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
