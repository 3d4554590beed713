"""The log line of a slow attempt, with its steps.

Upstream: pkg/scheduler/schedule_one.go, schedulePod, whose trace is logged if it is long (v1.36.2). Here extension
points are the steps, and what is left of the time was spent in between: on the snapshot, and on extenders.
"""

from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.reporter import Reporter
from extender.values.klog.logger import Logger
from extender.values.metrics import Metrics

_LOG: Final = Logger(__name__)

SLOW: Final = 0.1
"""Seconds from which on an attempt is logged. Upstream: schedulePod."""

_POINTS: Final = ("PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Permit")
"""The points of an attempt. Those of a binding may be another pod's."""


@final
class SlowAttempts(Reporter):
    """Logs attempts that took long. State: none, but it empties the steps of the metrics after each attempt."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self._ended(info, seconds)

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        self._ended(info, seconds)

    def _ended(self, info: QueuedPodInfo, seconds: float) -> None:
        steps = {point: self._metrics.steps[point] for point in _POINTS if point in self._metrics.steps}
        self._metrics.steps.clear()
        # The steps of a pod group count for its first pod.
        if seconds >= SLOW and steps:
            in_words = {point: f"{took * 1000:.1f}ms" for point, took in steps.items()}
            _LOG.info(0, "Scheduling took long", pod=info.pod, total=f"{seconds * 1000:.1f}ms", **in_words)
