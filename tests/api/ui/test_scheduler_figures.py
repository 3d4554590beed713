"""The figures of the scheduler, worked out from metrics as Prometheus would."""

from datetime import UTC, datetime

import pytest

from api.ui.scheduler_figures import durations, scheduler_figures
from extender.answers.parts import PodName
from extender.answers.types import Attempt
from extender.values.metrics.metrics import Histogram, counter, gauge
from tests.kit.tables import cases

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def histogram(*observed: tuple[float, str]) -> Histogram:
    durations = Histogram("reprieve_verb_duration_seconds", "Seconds.", ("verb",), (1.0, 2.0, 4.0))
    for value, verb in observed:
        durations.observe(value, verb)
    return durations


@cases(
    "observed, p50, p99",
    ("one: within its bucket", [0.5], 0.5, 0.99),
    ("half of them in each of two buckets", [1.5, 1.5, 3.0, 3.0], 2.0, 3.96),
    ("beyond the last bound: that bound", [9.0], 4.0, 4.0),
    ("empty buckets before", [3.0], 3.0, 3.98),
)
def test_quantiles_are_those_of_histogram_quantile(observed: list[float], p50: float, p99: float) -> None:
    (row,) = durations(histogram(*((value, "filter") for value in observed)).collect(), "verb")

    assert (row.names, row.count) == (("filter",), len(observed))
    assert [row.p50, row.p99] == pytest.approx([p50, p99])


def test_the_slowest_comes_first() -> None:
    family = histogram((0.1, "filter"), (3.0, "preempt"), (1.5, "prioritize")).collect()

    assert [row.names[0] for row in durations(family, "verb")] == ["preempt", "prioritize", "filter"]


@pytest.mark.parametrize(
    ("is_elected", "holds", "words"),
    [(False, None, "no leader election"), (True, 1.0, "leads"), (True, 0.0, "another replica leads")],
)
def test_who_leads_is_told(is_elected: bool, holds: float | None, words: str) -> None:
    families = [] if holds is None else [gauge("leader_election_master_status", "", ("name",), {"reprieve": holds})]
    figures = scheduler_figures(families, [], NOW, is_elected=is_elected, resources=(), quarantined=())

    assert figures.leadership == words


def test_attempts_of_the_last_minute_are_counted_errors_kept_and_refused_calls_added_up() -> None:
    def attempt(time: str, outcome: str, number: int = 1) -> Attempt:
        pod = PodName(namespace="shop", name="web")
        return Attempt(id=1, time=time, pod=pod, profile="p", number=number, outcome=outcome)  # type: ignore[arg-type]

    attempts = [
        attempt("2026-11-28T11:59:50Z", "Error"),
        attempt("2026-11-28T11:59:30Z", "Scheduled"),
        attempt("2026-11-28T11:59:30Z", "Filter", number=0),
        attempt("2026-11-28T11:58:59Z", "Scheduled"),
    ]
    calls = {("filter", "answered"): 5, ("filter", "error"): 2, ("bind", "refused"): 1}
    families = [
        counter("reprieve_verb_requests", "", ("verb", "result"), calls),
        gauge("scheduler_pending_pods", "", ("queue",), {"active": 3.0}),
    ]
    figures = scheduler_figures(families, attempts, NOW, is_elected=False, resources=(), quarantined=())

    assert (figures.recent, figures.errors) == (2, [attempts[0]])
    assert figures.refused == {"filter": 2, "bind": 1}
    assert figures.queues == {"active": 3}
