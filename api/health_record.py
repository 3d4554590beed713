"""The outcomes of health checks, for /metrics/slis.

Upstream: component-base/metrics/prometheus/slis, metrics.go (v1.36.2).
"""

from collections import Counter
from collections.abc import Iterator
from typing import final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry


@final
class HealthRecord(Collector):
    """Keeps the last outcome of each check, and counts all outcomes."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], bool] = {}
        self._said: Counter[tuple[str, str, str]] = Counter()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def note(self, check: str, path: str, *, is_well: bool) -> None:
        """Records the outcome of a check.

        Arguments:
            path: healthz, livez or readyz.
        """
        self._last[check, path] = is_well
        self._said[check, "success" if is_well else "error", path] += 1

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        last = GaugeMetricFamily(
            "kubernetes_healthcheck", "1 if the check was well when it was run last, else 0.", labels=("name", "type")
        )
        for labels, is_well in self._last.items():
            last.add_metric(labels, is_well)
        yield last
        counted = CounterMetricFamily(
            "kubernetes_healthchecks", "How often checks came out how.", labels=("name", "status", "type")
        )
        for named, times in self._said.items():
            counted.add_metric(named, times)
        yield counted
