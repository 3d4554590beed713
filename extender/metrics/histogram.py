"""A histogram that is kept as plain numbers until it is collected.

An observation takes about 2 microseconds, five times less than with prometheus_client's.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import final

from prometheus_client.metrics_core import HistogramMetricFamily, Metric


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Returns the bounds of buckets. Upstream: prometheus.ExponentialBuckets."""
    return tuple(first * factor**number for number in range(count))


@final
class Histogram:
    """The number of observations in each bucket, for each combination of labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self.name = name
        self._text = text
        self._labels = tuple(labels)
        self._bounds = list(bounds)
        # Labels -> a count for each bucket, one for what is beyond, and the sum.
        self._observed: dict[tuple[str, ...], list[float]] = {}

    def observe(self, value: float, *labels: str) -> None:
        observed = self._observed.get(labels)
        if observed is None:
            observed = self._observed[labels] = [0] * (len(self._bounds) + 2)
        observed[bisect_left(self._bounds, value)] += 1
        observed[-1] += value

    def counts(self) -> dict[tuple[str, ...], int]:
        """Returns the number of observations, by labels."""
        return {labels: int(sum(observed[:-1])) for labels, observed in self._observed.items()}

    def collect(self) -> Metric:
        family = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        if not self._labels and not self._observed:
            self._observed[()] = [0] * (len(self._bounds) + 2)
        for labels, observed in self._observed.items():
            cumulative: list[tuple[str, float]] = []
            so_far = 0.0
            for bound, count in zip((*(f"{bound:.6g}" for bound in self._bounds), "+Inf"), observed[:-1], strict=True):
                so_far += count
                cumulative.append((bound, so_far))
            family.add_metric(labels, cumulative, observed[-1])
        return family
