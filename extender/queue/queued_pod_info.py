"""QueuedPodInfo: a pod, and what the queue knows of its attempts.

Upstream: pkg/scheduler/framework/types.go, QueuedPodInfo (v1.36.2).
"""

from collections.abc import Iterable
from typing import final

from extender.framework.events import ClusterEvent
from extender.objects.pod import Pod


@final
class QueuedPodInfo:
    """State of one pod that waits or is being tried. All times are the queue's clock's, in seconds."""

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors_count",
        "gating_plugin",
        "gating_plugin_events",
        "initial_attempt_timestamp",
        "key",
        "pending_plugins",
        "pod",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed_from_unschedulable",
        "woken_by",
    )

    def __init__(self, pod: Pod, timestamp: float) -> None:
        self.pod = pod
        self.key = pod.key
        """namespace/name: what it is queued under."""
        self.timestamp = timestamp
        """When it was queued, or queued again after an attempt."""
        self.attempts = 0
        """How often it was popped."""
        self.unschedulable_count = 0
        """How often it was refused."""
        self.consecutive_errors_count = 0
        """How often its last attempts failed in a row, for another reason than being refused."""
        self.initial_attempt_timestamp: float | None = None
        """When it first was in activeQ."""
        self.backoff_expiration: float | None = None
        """When its pause ends, once that was worked out; a whole second."""
        self.unschedulable_plugins: frozenset[str] = frozenset()
        """Who refused it at the last attempt, or gates it."""
        self.pending_plugins: frozenset[str] = frozenset()
        """Who waits for something to happen for it: when it does, the pod need not pause."""
        self.gating_plugin = ""
        """Who keeps it from being tried at all."""
        self.gating_plugin_events: tuple[ClusterEvent, ...] = ()
        """What that plugin wants to hear of."""
        self.was_flushed_from_unschedulable = False
        """It came back because it had waited too long, rather than because of an event."""
        self.woken_by = ""
        """The label of the event that sent it to activeQ, perhaps by way of a pause; the end of the pause, if there was no event."""

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps it from being tried."""
        return self.gating_plugin != ""

    @property
    def has_failed(self) -> bool:
        """Whether nobody refused it: it comes back because something went wrong."""
        return not self.unschedulable_plugins and not self.pending_plugins

    def set_rejector_plugins(self, unschedulable: Iterable[str], pending: Iterable[str] = ()) -> None:
        """Note who refused the pod at this attempt; nobody, if it failed. What was known from the attempt before is forgotten."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gating_plugin = ""
        self.gating_plugin_events = ()

    def __repr__(self) -> str:
        return f"<QueuedPodInfo {self.key}, {self.attempts} attempts>"
