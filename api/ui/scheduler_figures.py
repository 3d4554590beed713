"""How well the scheduler itself is, from its metrics: attempts, queues, and how long plugins and verbs take."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, final

from prometheus_client.metrics_core import Metric

from extender.answers.types import Attempt
from extender.values.golang.times import moment_of

_LAST: Final = timedelta(minutes=1)


@final
@dataclass(frozen=True, slots=True)
class Durations:
    """How often something was done, and the seconds in which half and 99 % of it was."""

    names: tuple[str, ...]
    count: int
    p50: float
    p99: float


@final
@dataclass(frozen=True, slots=True)
class SchedulerFigures:
    """What the page of the scheduler shows."""

    leadership: str
    attempts: Mapping[str, int]
    """Result -> number of attempts since the start."""
    recent: int
    """Attempts within the last minute, of those that are kept."""
    queues: Mapping[str, int]
    durations: Sequence[Durations]
    """Of whole attempts, by result."""
    plugins: Sequence[Durations]
    """By plugin and extension point, the slowest first."""
    verbs: Sequence[Durations]
    """Of the calls by kube-scheduler, by verb."""
    refused: Mapping[str, int]
    """Verb -> calls that were not answered."""
    errors: Sequence[Attempt]
    """The last attempts that ended in an error."""
    resources: Sequence[tuple[str, str]]
    """(resource, for how long) of what cannot be read from the API server."""
    quarantined: Sequence[str]


def durations(family: Metric | None, *labels: str) -> list[Durations]:
    """Returns the durations by the values of some labels, the slowest first. Upstream: PromQL's histogram_quantile."""
    counts: defaultdict[tuple[str, ...], defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    for sample in () if family is None else family.samples:
        if sample.name.endswith("_bucket"):
            counts[tuple(sample.labels[name] for name in labels)][float(sample.labels["le"])] += sample.value
    rows = [
        Durations(names, int(max(buckets.values())), _quantile(buckets, 0.5), _quantile(buckets, 0.99))
        for names, buckets in counts.items()
        if any(buckets.values())
    ]
    return sorted(rows, key=lambda row: -row.p99)


def _quantile(buckets: Mapping[float, float], share: float) -> float:
    """Returns the value below which this share of the observations is, with equal distances within a bucket."""
    rank = share * max(buckets.values())
    for (start, before), (end, until) in pairwise([(0.0, 0.0), *sorted(buckets.items())]):
        if until >= rank and until > before:
            return start if end == float("inf") else start + (end - start) * (rank - before) / (until - before)
    return 0.0


def scheduler_figures(
    families: Iterable[Metric],
    attempts: Sequence[Attempt],
    now: datetime,
    *,
    is_elected: bool,
    resources: Sequence[tuple[str, str]],
    quarantined: Sequence[str],
) -> SchedulerFigures:
    """Returns the figures.

    Arguments:
        families: the metrics of the scheduler and of the verbs.
        attempts: the last attempts, newest first.
        is_elected: whether replicas elect a leader.
    """
    by_name = {family.name: family for family in families}
    own_attempts = [attempt for attempt in attempts if attempt.number]
    leading = _values(by_name.get("leader_election_master_status"), "name")
    return SchedulerFigures(
        "no leader election" if not is_elected else "leads" if any(leading.values()) else "another replica leads",
        _values(by_name.get("scheduler_schedule_attempts"), "result"),
        sum((moment_of(attempt.time) or now) > now - _LAST for attempt in own_attempts),
        _values(by_name.get("scheduler_pending_pods"), "queue"),
        durations(by_name.get("scheduler_scheduling_attempt_duration_seconds"), "result"),
        durations(by_name.get("scheduler_plugin_execution_duration_seconds"), "plugin", "extension_point"),
        durations(by_name.get("reprieve_verb_duration_seconds"), "verb"),
        _values(by_name.get("reprieve_verb_requests"), "verb", {"result": "answered"}),
        [attempt for attempt in attempts if attempt.outcome == "Error"],
        resources,
        quarantined,
    )


def _values(family: Metric | None, label: str, leaving_out: Mapping[str, str] | None = None) -> dict[str, int]:
    """Returns the values of a counter or a gauge, added up by one label, without the samples of other labels."""
    sums: defaultdict[str, int] = defaultdict(int)
    for sample in () if family is None else family.samples:
        if not any(sample.labels.get(name) == value for name, value in (leaving_out or {}).items()):
            sums[sample.labels[label]] += int(sample.value)
    return dict(sums)
