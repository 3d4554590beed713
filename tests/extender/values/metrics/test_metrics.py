"""Metrics are named, labelled and sorted into buckets as kube-scheduler's."""

from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from extender.values.metrics import Histogram, Metrics, exponential


class Shown(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics.collect()


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    registry = CollectorRegistry()
    registry.register(Shown(metrics))
    text = generate_latest(registry).decode()
    parsed_samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in parsed_samples}


def test_buckets_grow_by_a_factor() -> None:
    assert exponential(0.001, 2, 4) == (0.001, 0.002, 0.004, 0.008)


def test_an_observation_on_a_bound_belongs_below_it() -> None:
    histogram = Histogram("h", "", ("of",), (1, 2))
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.observe(value, "x")

    assert [sample.value for sample in histogram.collect().samples] == [2, 4, 5, 5, 8]


def test_an_attempt_is_counted_and_timed_by_result_and_profile() -> None:
    metrics = Metrics()
    metrics.attempted("scheduled", "gpu", 0.003)
    metrics.attempted("error", "gpu", 0.1)

    values = samples(metrics)
    labels = (("profile", "gpu"), ("result", "scheduled"))
    assert values["scheduler_schedule_attempts_total", labels] == 1
    assert values["scheduler_scheduling_attempt_duration_seconds_bucket", (("le", "0.004"), *labels)] == 1
    assert values["scheduler_scheduling_attempt_duration_seconds_bucket", (("le", "0.002"), *labels)] == 0
    assert values["scheduler_scheduling_attempt_duration_seconds_sum", labels] == 0.003


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (100, "15+")])
def test_scheduling_duration_is_labelled_with_the_attempts(attempts: int, label: str) -> None:
    metrics = Metrics()
    metrics.scheduled(attempts, 1.5, was_flushed=attempts == 100)

    values = samples(metrics)
    assert values["scheduler_pod_scheduling_sli_duration_seconds_count", (("attempts", label),)] == 1
    assert values["scheduler_pod_scheduling_attempts_count", ()] == 1
    assert values["scheduler_pod_scheduled_after_flush_total", ()] == (attempts == 100)
