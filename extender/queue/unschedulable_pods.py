"""UnschedulablePods: refused pods and gated pods, which wait for a change.

Upstream: pkg/scheduler/backend/queue/unschedulable_pods.go (v1.36.2).
"""

from collections.abc import Iterator
from typing import final

from extender.queue.queued_pod_info import QueuedPodInfo


@final
class UnschedulablePods:
    """Pods by key; their order does not matter."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._pods.values())

    def get(self, key: str) -> QueuedPodInfo | None:
        """Returns the pod of this key, None if it is not here."""
        return self._pods.get(key)

    def add_or_update(self, info: QueuedPodInfo) -> None:
        """Adds the pod, or replaces the one of its key."""
        self._pods[info.key] = info

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Removes and returns the pod of this key; None if it is not here."""
        return self._pods.pop(key, None)

    @property
    def num_gated(self) -> int:
        """The number of gated pods."""
        return sum(info.is_gated for info in self._pods.values())
