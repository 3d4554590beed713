"""QueuedPodInfo: a pod with its queueing state. UnschedulablePods: refused and gated pods, which wait for a change.

Upstream: pkg/scheduler/framework/types.go, QueuedPodInfo; backend/queue/unschedulable_pods.go.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import final

from extender.engine.framework.events import ClusterEvent
from extender.values.objects.pod import Pod


@final
class QueuedPodInfo:
    """State of one pod that waits or is being tried. Times are seconds of the queue's clock."""

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors_count",
        "gating_plugin",
        "gating_plugin_events",
        "initial_attempt_timestamp",
        "is_member",
        "key",
        "pending_plugins",
        "pod",
        "retry_after",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed_from_unschedulable",
        "woken_by",
    )

    def __init__(self, pod: Pod, timestamp: float) -> None:
        self.pod = pod
        self.key = pod.key
        """namespace/name, the key in all queues."""
        self.timestamp = timestamp
        """The time when the pod was added, or added again after an attempt."""
        self.attempts = 0
        """The number of times it was popped."""
        self.unschedulable_count = 0
        """The number of attempts that ended in a refusal."""
        self.consecutive_errors_count = 0
        """The number of last attempts in a row that ended in an error rather than in a refusal."""
        self.initial_attempt_timestamp: float | None = None
        """The time when it first entered activeQ."""
        self.backoff_expiration: float | None = None
        """The end of its backoff, once computed; a whole second."""
        self.unschedulable_plugins: frozenset[str] = frozenset()
        """The plugins that refused it at the last attempt, or gate it."""
        self.pending_plugins: frozenset[str] = frozenset()
        """Plugins that answered Pending. An event that one of them registered for requeues the pod without backoff."""
        self.gating_plugin = ""
        """The PreEnqueue plugin that gates it; "" if none does."""
        self.gating_plugin_events: tuple[ClusterEvent, ...] = ()
        self.is_member = False
        """True once it was tried with its pod group: the group is tried again when the backoff ends, and not before."""
        self.was_flushed_from_unschedulable = False
        """True if it left the unschedulable pods because it had waited too long, not because of an event."""
        self.retry_after = math.inf
        """Seconds after the last attempt until another one is worth while without any event."""
        self.woken_by = ""
        """The label of the event, or of the end of backoff, that moved it to activeQ, maybe by backoffQ."""

    @property
    def is_gated(self) -> bool:
        """True if a PreEnqueue plugin keeps it from being tried."""
        return self.gating_plugin != ""

    @property
    def has_failed(self) -> bool:
        """True if no plugin refused it, so that it is requeued because of an error."""
        return not self.unschedulable_plugins and not self.pending_plugins

    def set_rejector_plugins(self, unschedulable: Iterable[str], pending: Iterable[str] = ()) -> None:
        """Records the plugins that refused the pod at this attempt; none after an error."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gating_plugin = ""
        self.gating_plugin_events = ()

    def __repr__(self) -> str:
        return f"<QueuedPodInfo {self.key}, {self.attempts} attempts>"


Refusal = tuple[str, frozenset[str]]
"""A profile, and the plugins that refused a pod of it."""


@final
class UnschedulablePods:
    """Pods by key, and by refusal: there are few different refusals, but may be many pods."""

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

    def refused(self, is_match: Callable[[Refusal], bool]) -> list[QueuedPodInfo]:
        return [info for refusal, pods in self._by_refusal.items() if is_match(refusal) for info in pods.values()]

    def add_or_update(self, info: QueuedPodInfo) -> None:
        """Adds the pod, or replaces the one of its key. Call it again when other plugins refuse the pod."""
        self.remove(info.key)
        refusal = info.pod.scheduler_name, info.unschedulable_plugins | info.pending_plugins
        self._pods[info.key] = info
        self._refusals[info.key] = refusal
        self._by_refusal.setdefault(refusal, {})[info.key] = info

    def remove(self, key: str) -> QueuedPodInfo | None:
        info = self._pods.pop(key, None)
        if info is not None:
            refusal = self._refusals.pop(key)
            pods = self._by_refusal[refusal]
            del pods[key]
            if not pods:
                del self._by_refusal[refusal]
        return info

    @property
    def num_gated(self) -> int:
        return sum(info.is_gated for info in self._pods.values())
