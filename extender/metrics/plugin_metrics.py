"""PluginMetrics: how long plugins and their hints take, and in how many attempts a plugin had a say.

Upstream: pkg/scheduler/metrics/metrics.go; framework/runtime/instrumented_plugins.go (v1.36.2). There a Filter is timed and counted once
for each node; here it is asked about all nodes at once, so that it is timed once a question and counted once an attempt.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, final

from prometheus_client.metrics_core import CounterMetricFamily, Metric

from extender.metrics.histogram import Histogram, exponential

ObservePlugin = Callable[[float, str, str, str], None]
"""Takes (seconds, plugin, extension point, status)."""

SAMPLED_CYCLES: Final = 10
"""Plugins are timed in one cycle of so many: timing costs more than some plugins do. Upstream: pluginMetricsSamplePercent."""


@final
class PluginMetrics:
    """What plugins do in the attempts of all profiles."""

    def __init__(self) -> None:
        self.durations: Final = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            f"Seconds that a plugin took at an extension point, in one cycle of {SAMPLED_CYCLES}.",
            ("plugin", "extension_point", "status"),
            exponential(0.00001, 1.5, 20),
        )
        self.hints: Final = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Seconds that a plugin took to say whether a change may help a pod that it had refused.",
            ("plugin", "event", "hint"),
            exponential(0.00001, 1.5, 20),
        )
        self.device_waits: Final = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Seconds until a driver had said that devices can be used, or that they cannot, or had not said anything in time.",
            ("profile", "driver", "status"),
            exponential(0.1, 2, 14),
        )
        self.volume_errors: Counter[str] = Counter()
        """Operation -> how often it failed."""
        self._cycles: Counter[str] = Counter()

    def sampled(self, kind: str = "scheduling") -> ObservePlugin | None:
        """Who is to be told how long plugins take in this cycle; None if it is none of those that are sampled.

        Arguments:
            kind: cycles of a kind are counted by themselves; the first of each is sampled.
        """
        number = self._cycles[kind]
        self._cycles[kind] = number + 1
        return None if number % SAMPLED_CYCLES else self.durations.observe

    def collect(self) -> Iterator[Metric]:
        """As Prometheus wants them."""
        yield self.durations.collect()
        yield self.hints.collect()
        yield self.device_waits.collect()
        allocations = CounterMetricFamily(
            "scheduler_dra_bindingconditions_allocations",
            "Attempts in which a driver had to get devices ready, by how that ended.",
            labels=("profile", "driver", "status"),
        )
        for labels, times in self.device_waits.counts().items():
            allocations.add_metric(labels, times)
        yield allocations
        errors = CounterMetricFamily(
            "scheduler_volume_scheduling_stage_error", "Failures to find, keep or bind volumes for a pod.", labels=("operation",)
        )
        for operation, times in self.volume_errors.items():
            errors.add_metric((operation,), times)
        yield errors
