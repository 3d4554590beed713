"""Metrics of scheduling: counted while it goes on, shown when somebody asks.

Names, labels and buckets are upstream's. What is counted here is plain numbers: an observation costs a fraction of a microsecond, and a
decision does not depend on any.

Upstream: pkg/scheduler/metrics/metrics.go (v1.36.2).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, final

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"

MOST_ATTEMPTS_SHOWN: Final = 15


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets. Upstream: prometheus.ExponentialBuckets."""
    return tuple(first * factor**number for number in range(count))


@final
class Histogram:
    """How many observations lie in each bucket, for each combination of labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._bounds = list(bounds)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """One more observation."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def collect(self) -> Metric:
        """As Prometheus wants it."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        if not self._labels and not self._counts:
            self._counts[()], self._sums[()] = [0] * (len(self._bounds) + 1), 0.0
        for labels, counts in self._counts.items():
            cumulative, so_far = [], 0
            for bound, count in zip((*(f"{bound:.6g}" for bound in self._bounds), "+Inf"), counts, strict=True):
                so_far += count
                cumulative.append((bound, so_far))
            family.add_metric(labels, cumulative, self._sums[labels])
        return family


@final
class Metrics:
    """What a scheduler has done since its start."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, str]] = Counter()
        """(result, profile) -> how many attempts ended so."""
        self.preemption_attempts = 0
        self.scheduled_after_flush = 0
        """Pods that were scheduled after they had waited too long for an event: none should be."""
        self.points: Final = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Seconds that all plugins of an extension point took together.",
            ("extension_point", "status", "profile"),
            exponential(0.0001, 2, 12),
        )
        self.algorithm: Final = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Seconds from the snapshot to a node, or to the news that there is none.",
            (),
            exponential(0.001, 2, 15),
        )
        self.event_handling: Final = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Seconds that a change of the cluster took to be taken in.",
            ("event",),
            exponential(0.0001, 2, 12),
        )
        self.permit_wait: Final = Histogram(
            "scheduler_permit_wait_duration_seconds", "Seconds that pods were held at Permit.", ("result",), exponential(0.001, 2, 15)
        )
        self.victims: Final = Histogram("scheduler_preemption_victims", "Victims that a preemption has chosen.", (), exponential(1, 2, 7))
        self._durations = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds from the pop of a pod to the end of the attempt, its binding included.",
            ("result", "profile"),
            exponential(0.001, 2, 15),
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from the first wait of a pod to its binding, however many attempts that took.",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
        self._attempts_of_pods = Histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that it took until a pod was bound.", (), exponential(1, 2, 5)
        )

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """An attempt has ended; a successful one with its binding."""
        self.attempts[result, profile] += 1
        self._durations.observe(seconds, result, profile)

    def scheduled(self, attempts: int, seconds: float | None, *, was_flushed: bool) -> None:
        """A pod is bound.

        Arguments:
            attempts: that it took.
            seconds: since it first waited to be tried; None if that is not known.
        """
        self._attempts_of_pods.observe(attempts)
        self.scheduled_after_flush += was_flushed
        if seconds is not None:
            self._sli.observe(seconds, str(attempts) if attempts < MOST_ATTEMPTS_SHOWN else f"{MOST_ATTEMPTS_SHOWN}+")

    def collect(self) -> Iterator[Metric]:
        """All of them, as Prometheus wants them."""
        by_result = CounterMetricFamily(
            "scheduler_schedule_attempts",
            "Attempts by their end: scheduled, unschedulable (nothing suits the pod), or error (something went wrong).",
            labels=("result", "profile"),
        )
        for labels, count in self.attempts.items():
            by_result.add_metric(labels, count)
        yield by_result
        yield CounterMetricFamily(
            "scheduler_preemption_attempts", "How often room was sought by preemption.", value=self.preemption_attempts
        )
        yield CounterMetricFamily(
            "scheduler_pod_scheduled_after_flush",
            "Pods bound after they had waited too long for any event to help them.",
            value=self.scheduled_after_flush,
        )
        for histogram in (
            self._durations,
            self.algorithm,
            self.points,
            self.event_handling,
            self.permit_wait,
            self.victims,
            self._sli,
            self._attempts_of_pods,
        ):
            yield histogram.collect()
