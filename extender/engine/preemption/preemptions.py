"""Preemptions that are running: their preemptors are gated until all victims were evicted.

Upstream: pkg/scheduler/framework/preemption/executor.go, IsPodRunningPreemption (v1.36.2).
"""

from collections.abc import Iterable
from typing import Final, final

from extender.engine import framework as fwk
from extender.values.objects.pod import Pod

CHOSEN_LATELY: Final = 60.0
"""A victim counts as chosen lately for so many seconds."""


@final
class RunningPreemptions:
    """The pods for which victims are being evicted, by UID. All profiles share one.

    State: for each its last victim, once its eviction was requested; and the victims that were chosen lately.
    """

    def __init__(self) -> None:
        self._last_victims: dict[str, Pod | None] = {}
        self._chosen: dict[str, float] = {}

    def choose(self, victims: Iterable[Pod], now: float) -> None:
        """Records that these pods are about to be evicted, in seconds since 1970."""
        self._chosen |= dict.fromkeys((victim.uid for victim in victims), now)

    def chosen_lately(self, now: float) -> tuple[str, ...]:
        """Returns the UIDs of victims chosen within `CHOSEN_LATELY`; an eviction not seen by then has failed."""
        self._chosen = {uid: when for uid, when in self._chosen.items() if now - when < CHOSEN_LATELY}
        return tuple(self._chosen)

    def begin(self, uid: str) -> None:
        """Records that victims are going to be evicted for the pod."""
        self._last_victims[uid] = None

    def evict_last(self, uid: str, victim: Pod) -> None:
        """Records that all other victims were evicted, and that the last one is being evicted now."""
        self._last_victims[uid] = victim

    def end(self, uid: str) -> None:
        """Records that the preemption is over, whatever its result. Idempotent."""
        self._last_victims.pop(uid, None)

    def is_running(self, uid: str, live: fwk.LiveCluster | None) -> bool:
        """Returns whether the pod has to wait. It no longer does once its last victim is terminating or gone."""
        if uid not in self._last_victims:
            return False
        victim = self._last_victims[uid]
        if victim is None or live is None:
            return True
        known = live.pod(victim.uid)
        return known is not None and not known.is_terminating


PREEMPTIONS: Final = fwk.StateKey[RunningPreemptions]("Preemptions")
"""The key of the RunningPreemptions of all profiles under `Handle.shared`."""
