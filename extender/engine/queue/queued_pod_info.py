"""QueuedPodInfo: a pod with its queueing state. UnschedulablePods: refused and gated pods, which wait for a change.

Upstream: pkg/scheduler/framework/types.go, QueuedPodInfo; backend/queue/unschedulable_pods.go.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import final

from extender.engine.framework.events import ClusterEvent
from extender.values.objects.pod import Pod


@final
@dataclass(slots=True, eq=False, repr=False)
class QueuedPodInfo:
    """State of one pod that waits or is being tried. Times are seconds of the queue's clock."""

    pod: Pod
    key: str = field(init=False)
    """namespace/name, the key in all queues."""
    timestamp: float
    """The time when the pod was added, or added again after an attempt."""
    attempts: int = 0
    """The number of times it was popped."""
    unschedulable_count: int = 0
    """The number of attempts that ended in a refusal."""
    consecutive_errors_count: int = 0
    """The number of last attempts in a row that ended in an error rather than in a refusal."""
    initial_attempt_timestamp: float | None = None
    """The time when it first entered activeQ."""
    backoff_expiration: float | None = None
    """The end of its backoff, once computed; a whole second."""
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that refused it at the last attempt, or gate it."""
    pending_plugins: frozenset[str] = frozenset()
    """Plugins that answered Pending. An event that one of them registered for requeues the pod without backoff."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that gates it; "" if none does."""
    gating_plugin_events: tuple[ClusterEvent, ...] = ()
    is_member: bool = False
    """True once it was tried with its pod group: the group is tried again when the backoff ends, and not before."""
    was_flushed_from_unschedulable: bool = False
    """True if it left the unschedulable pods because it had waited too long, not because of an event."""
    retry_after: float = math.inf
    """Seconds after the last attempt until another one is worth while without any event."""
    woken_by: str = ""
    """The label of the event, or of the end of backoff, that moved it to activeQ, maybe by backoffQ."""

    def __post_init__(self) -> None:
        self.key = self.pod.key

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
