"""Preemptions that are under way, so that the preemptor is held back from the queue until its victims were asked to leave.

Upstream: pkg/scheduler/framework/preemption/executor.go, IsPodRunningPreemption (v1.36.2).
"""

from typing import Final, final

from extender import framework as fwk
from extender.objects.pod import Pod


@final
class Preemptions:
    """The pods for which victims are being evicted, by UID. All profiles share one.

    State: for each of them its last victim, once the eviction of that one has been requested.
    """

    def __init__(self) -> None:
        self._last_victims: dict[str, Pod | None] = {}

    def begin(self, uid: str) -> None:
        """Note that victims are going to be evicted for the pod."""
        self._last_victims[uid] = None

    def evict_last(self, uid: str, victim: Pod) -> None:
        """Note that all other victims were evicted, and that the last one is being evicted now."""
        self._last_victims[uid] = victim

    def end(self, uid: str) -> None:
        """Note that the preemption is over, whatever came of it. Idempotent."""
        self._last_victims.pop(uid, None)

    def is_running(self, uid: str, live: fwk.LiveCluster | None) -> bool:
        """Returns whether it is too early to try the pod again. It no longer is once the last victim is terminating or gone."""
        if uid not in self._last_victims:
            return False
        victim = self._last_victims[uid]
        if victim is None or live is None:
            return True
        known = live.pod(victim.uid)
        return known is not None and not known.is_terminating


PREEMPTIONS: Final = fwk.StateKey[Preemptions]("Preemptions")
"""The key of the Preemptions of all profiles under `Handle.shared`."""
