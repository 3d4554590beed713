"""UnschedulablePods: refused pods and gated pods, which wait for a change.

Upstream: pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from collections.abc import Callable, Iterator
from typing import final

from extender.engine.queue.queued_pod_info import QueuedPodInfo

Refusal = tuple[str, frozenset[str]]
"""A profile, and the plugins that refused a pod of it."""


@final
class UnschedulablePods:
    """Pods by key, and by who refused them: there are few different refusals, but may be many pods."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._refusals: dict[str, Refusal] = {}
        self._by_refusal: dict[Refusal, dict[str, QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._pods.values())

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def refused(self, by: Callable[[Refusal], bool]) -> list[QueuedPodInfo]:
        return [info for refusal, pods in self._by_refusal.items() if by(refusal) for info in pods.values()]

    def add_or_update(self, info: QueuedPodInfo) -> None:
        """Adds the pod, or replaces the one of its key. To be called again when other plugins refuse it."""
        self.remove(info.key)
        refusal = info.pod.scheduler_name, info.unschedulable_plugins | info.pending_plugins
        self._pods[info.key] = info
        self._refusals[info.key] = refusal
        self._by_refusal.setdefault(refusal, {})[info.key] = info

    def remove(self, key: str) -> QueuedPodInfo | None:
        info = self._pods.pop(key, None)
        if info is not None:
            refusal = self._refusals.pop(key)
            alike = self._by_refusal[refusal]
            del alike[key]
            if not alike:
                del self._by_refusal[refusal]
        return info

    @property
    def num_gated(self) -> int:
        return sum(info.is_gated for info in self._pods.values())
