"""PrioritySort: pods of higher priority first, then those that have waited longest."""

from typing import final

from extender.engine import framework as fwk


@final
class PrioritySort(fwk.QueueSortPlugin):
    """Orders the queue by spec.priority, then by time of entry.

    Upstream: framework/plugins/queuesort/priority_sort.go (v1.36.2).
    """

    def sort_key(self, pod: fwk.Pod, timestamp: float) -> tuple[int, float]:
        return -pod.priority, timestamp
