"""The metrics of a scheduler and of its plugins. Names, labels and buckets are upstream's.

Upstream: pkg/scheduler/metrics/metrics.go; framework/runtime/instrumented_plugins.go. There a Filter is timed and
counted once for each node; here it is called for all nodes at once, so that it is timed once a call and counted once an
attempt.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, final

from extender.values.metrics.tracing import CURRENT

if TYPE_CHECKING:  # it loads an HTTP server, which only a service needs: the first collection does
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Returns the bounds of buckets. Upstream: prometheus.ExponentialBuckets."""
    return tuple(first * factor**number for number in range(count))


@final
class Histogram:
    """The number of observations in each bucket, for each combination of labels.

    The counts are plain numbers until they are collected, so that an observation takes about 2 microseconds, five times
    less than with prometheus_client's histogram.
    """

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self._text = text
        self._labels = tuple(labels)
        self._bounds = list(bounds)
        # Labels -> a count for each bucket, the count of larger values, and the sum.
        length = len(self._bounds) + 2
        self._observed = defaultdict[tuple[str, ...], list[float]](lambda: [0] * length)

    def observe(self, value: float, *labels: str) -> None:
        observed = self._observed[labels]
        observed[bisect_left(self._bounds, value)] += 1
        observed[-1] += value

    def counts(self) -> dict[tuple[str, ...], int]:
        return {labels: int(sum(observed[:-1])) for labels, observed in self._observed.items()}

    def collect(self) -> "Metric":
        from prometheus_client.metrics_core import HistogramMetricFamily  # noqa: PLC0415 - see above

        family = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        if not self._labels and not self._observed:
            self._observed[()] = [0] * (len(self._bounds) + 2)
        for labels, observed in self._observed.items():
            bounds = (*(f"{bound:.6g}" for bound in self._bounds), "+Inf")
            family.add_metric(labels, list(zip(bounds, accumulate(observed[:-1]), strict=True)), observed[-1])
        return family


def counter(name: str, text: str, labels: Sequence[str], counts: Mapping[Any, float]) -> "Metric":
    """Returns a counter by the values of its labels; one label may have a text for a tuple of it."""
    from prometheus_client.metrics_core import CounterMetricFamily  # noqa: PLC0415

    return _filled(CounterMetricFamily(name, text, labels=labels), counts)


def gauge(name: str, text: str, labels: Sequence[str], values: Mapping[Any, float]) -> "Metric":
    """Returns a gauge as `counter`."""
    from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: PLC0415

    return _filled(GaugeMetricFamily(name, text, labels=labels), values)


def _filled(family: "CounterMetricFamily | GaugeMetricFamily", values: Mapping[Any, float]) -> "Metric":
    for labels, value in values.items():
        family.add_metric((labels,) if isinstance(labels, str) else labels, value)
    return family


SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
WAITING_ON_PREEMPTION: Final = "waiting_on_preemption"
ERROR: Final = "error"

ATTEMPTS_TOLD_APART: Final = 15


ObservePlugin = Callable[[float, str, str, str], None]
"""A function of (seconds, plugin, extension point, status)."""

SAMPLED_CYCLES: Final = 10
"""Plugins are timed in one of so many cycles, as it is costly. Upstream: pluginMetricsSamplePercent."""


@final
class PluginMetrics:
    """The metrics of the plugins of all profiles."""

    def __init__(self) -> None:
        self.durations: Final = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            f"Seconds that a plugin took at an extension point, in one of {SAMPLED_CYCLES} cycles.",
            ("plugin", "extension_point", "status"),
            exponential(0.00001, 1.5, 20),
        )
        self.hints: Final = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Seconds that a queueing hint took.",
            ("plugin", "event", "hint"),
            exponential(0.00001, 1.5, 20),
        )
        self.device_waits: Final = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Seconds until a driver reported that devices are ready or have failed, or the wait timed out.",
            ("profile", "driver", "status"),
            exponential(0.1, 2, 14),
        )
        self.volume_errors: Counter[str] = Counter()
        """Operation -> number of failures."""
        self.resource_claim_creates: Counter[str] = Counter()
        """success or failure -> number of claims that were to be created for extended resources."""
        self.preemption_loops: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Returns the number of wasted preemptions, and of those that a pause kept from being carried out."""
        self._cycles: Counter[str] = Counter()

    def sampled(self, kind: str = "scheduling") -> ObservePlugin | None:
        """Returns what records durations in this cycle; the first of each kind and some others are sampled."""
        number = self._cycles[kind]
        self._cycles[kind] = number + 1
        observe, trace = None if number % SAMPLED_CYCLES else self.durations.observe, CURRENT.get()
        if trace is None:
            return observe
        return trace.timed if observe is None else _both(observe, trace.timed)

    def collect(self) -> Iterator["Metric"]:
        yield self.durations.collect()
        yield self.hints.collect()
        yield self.device_waits.collect()
        yield counter(
            "scheduler_dra_bindingconditions_allocations",
            "Attempts in which a driver had to prepare devices, by result.",
            ("profile", "driver", "status"),
            self.device_waits.counts(),
        )
        yield counter(
            "scheduler_volume_scheduling_stage_error",
            "Failures to find, assume or bind volumes for a pod.",
            ("operation",),
            self.volume_errors,
        )
        yield counter(
            "scheduler_resourceclaim_creates",
            "ResourceClaims created for extended resources that device classes back.",
            ("status",),
            self.resource_claim_creates,
        )
        wasted, pauses = self.preemption_loops()
        yield counter(
            "reprieve_wasted_preemptions",
            "Preemptions after which the preemptor still fits on no node, although the victims are gone.",
            (),
            {(): wasted},
        )
        yield counter(
            "reprieve_preemption_pauses",
            "Preemptions that were not carried out, because the last ones for the pod were wasted.",
            (),
            {(): pauses},
        )


def _both(one: ObservePlugin, other: ObservePlugin) -> ObservePlugin:
    def observe(seconds: float, plugin: str, point: str, status: str) -> None:
        one(seconds, plugin, point, status)
        other(seconds, plugin, point, status)

    return observe


class Unanswered(Exception):  # noqa: N818  (it is no error: the block is run again)
    """Ends a `TimedPoint` that is run again later, and only then observed."""


@final
class TimedPoint:
    """A block whose duration is observed with the status that it set, or Error unless it raised `Unanswered`."""

    __slots__ = ("_began", "_metrics", "_point", "_profile", "status")

    def __init__(self, metrics: "Metrics", point: str, profile: str) -> None:
        self.status = "Success"
        self._metrics, self._point, self._profile = metrics, point, profile

    def __enter__(self) -> "TimedPoint":
        # Not the time of the event loop: that of uvloop counts whole milliseconds, in which a pod passes most points.
        self._began = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        status, seconds = self.status, perf_counter() - self._began
        if kind is not None:
            if isinstance(exc, Unanswered):
                return
            status = "Error"
        metrics, point = self._metrics, self._point
        metrics.points.observe(seconds, point, status, self._profile)
        metrics.steps[point] += seconds
        trace = CURRENT.get()
        if trace is not None:
            trace.timed(seconds, "", point, status)


@final
class GroupMetrics:
    """The metrics of pod groups; nothing is shown of them until a group was tried."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, str]] = Counter()
        """(result, profile) -> number of attempts to schedule a pod group."""
        self.algorithm: Final = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Seconds that it took to find nodes for the pods of a group, or that there are none.",
            (),
            exponential(0.001, 2, 15),
        )
        self._durations = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Seconds from the pop of a pod group to its decision.",
            ("result", "profile"),
            exponential(0.001, 2, 15),
        )

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        self.attempts[result, profile] += 1
        self._durations.observe(seconds, result, profile)

    def collect(self) -> Iterator["Metric"]:
        if not self.attempts:
            return
        yield counter(
            "scheduler_podgroup_schedule_attempts",
            "Attempts to schedule a pod group, by result.",
            ("result", "profile"),
            self.attempts,
        )
        yield self._durations.collect()
        yield self.algorithm.collect()


@final
class Metrics:
    """The metrics of one scheduler since its start."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, str]] = Counter()
        """(result, profile) -> number of attempts."""
        self.preemption_attempts = 0
        self.scheduled_after_flush = 0
        """Pods scheduled only after the periodic flush of unschedulable ones: a hint is missing."""
        self.running: Counter[str] = Counter()
        """Operation -> number of tasks that perform it now."""
        self.timed: Final[Callable[[str, str], TimedPoint]] = partial(TimedPoint, self)
        """Returns a block that is observed as one run of all plugins of an extension point, for a profile."""
        # Buckets are upstream's, so that dashboards and alerts for kube-scheduler work.
        self.plugins: Final = PluginMetrics()
        self.points: Final = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Seconds that all plugins of an extension point took together.",
            ("extension_point", "status", "profile"),
            exponential(0.0001, 2, 12),
        )
        self.steps: defaultdict[str, float] = defaultdict(float)
        """Extension point -> seconds, since whoever tells of slow attempts emptied it."""
        self.algorithm: Final = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Seconds from the snapshot until a node was found, or none was feasible.",
            (),
            exponential(0.001, 2, 15),
        )
        self.event_handling: Final = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Seconds that the handling of a change of the cluster took.",
            ("event",),
            exponential(0.0001, 2, 12),
        )
        self.permit_wait: Final = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "Seconds that pods were held at Permit.",
            ("result",),
            exponential(0.001, 2, 15),
        )
        self.victims: Final = Histogram(
            "scheduler_preemption_victims", "Victims chosen in a preemption.", (), exponential(1, 2, 7)
        )
        self.preemptions: Final = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Seconds from the choice of victims until all of them were evicted, or an eviction failed.",
            ("result",),
            exponential(0.01, 2, 20),
        )
        self.groups: Final = GroupMetrics()
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
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took until a pod was bound.",
            (),
            exponential(1, 2, 5),
        )

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Counts an attempt that has ended; a successful one ends with its binding."""
        self.attempts[result, profile] += 1
        self._durations.observe(seconds, result, profile)

    def scheduled(self, attempts: int, seconds: float | None, *, was_flushed: bool) -> None:
        """Counts a pod that is bound, with seconds since it was first queued, if that is known."""
        self._attempts_of_pods.observe(attempts)
        self.scheduled_after_flush += was_flushed
        if seconds is not None:
            self._sli.observe(seconds, str(attempts) if attempts < ATTEMPTS_TOLD_APART else f"{ATTEMPTS_TOLD_APART}+")

    @contextmanager
    def doing(self, operation: str) -> Iterator[None]:
        """Counts a task that performs the operation for as long as the block runs."""
        self.running[operation] += 1
        try:
            yield
        finally:
            self.running[operation] -= 1

    def collect(self) -> Iterator["Metric"]:
        # Counters and gauges are made on collection from plain numbers, which cost less to count.
        yield counter(
            "scheduler_schedule_attempts",
            "Attempts by result: scheduled, unschedulable (no node fits), or error (the attempt failed).",
            ("result", "profile"),
            self.attempts,
        )
        yield counter("scheduler_preemption_attempts", "Preemption attempts.", (), {(): self.preemption_attempts})
        yield counter(
            "scheduler_pod_scheduled_after_flush",
            "Pods bound after the periodic flush of unschedulable pods, because no event had requeued them.",
            (),
            {(): self.scheduled_after_flush},
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
            self.preemptions,
        ):
            yield histogram.collect()
        ended = self.preemptions.counts()
        yield counter("scheduler_preemption_goroutines_execution", "Preemptions by result.", ("result",), ended)
        yield from self.groups.collect()
        yield gauge(
            "scheduler_goroutines",
            "Running tasks by operation; upstream has goroutines for them.",
            ("operation",),
            self.running,
        )
        yield from self.plugins.collect()
