"""Metrics of the extender verbs, all named `reprieve_verb_`: upstream has none for extenders."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Final, final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from extender.values import limits
from extender.values.metrics.metrics import Histogram, counter, exponential

OTHER: Final = "other"


@final
class Outcome(StrEnum):
    """How a call of a verb came out."""

    ANSWERED = "answered"
    ERROR = "error"
    """It was understood and could not be answered; a pod is perhaps not scheduled for it."""
    REFUSED = "refused"
    """It got another status than 200."""


@final
class VerbMetrics(Collector):
    """Counts and times the calls of the verbs of all callers; disabled metrics are not exposed."""

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._rejected: Counter[str] = Counter()
        self._durations = Histogram(
            "reprieve_verb_duration_seconds",
            "Seconds from the head of a request to its answer, by verb.",
            ("verb",),
            exponential(0.0005, 2, 16),
        )
        self._nodes = Histogram(
            "reprieve_verb_nodes",
            "Nodes that a request of filter, prioritize or preempt was about.",
            ("verb",),
            exponential(1, 4, 9),
        )
        self._received = Histogram(
            "reprieve_verb_request_bytes", "Size of requests, by verb.", ("verb",), exponential(256, 4, 10)
        )
        self._sent = Histogram(
            "reprieve_verb_response_bytes", "Size of answers, by verb.", ("verb",), exponential(64, 4, 10)
        )
        self._disabled = frozenset(disabled)

    def asked_about(self, verb: str, nodes: int) -> None:
        self._nodes.observe(nodes, verb)

    def answered(self, verb: str, outcome: Outcome, seconds: float, received_bytes: int, sent_bytes: int) -> None:
        self._requests[verb, outcome.value] += 1
        self._durations.observe(seconds, verb)
        self._received.observe(received_bytes, verb)
        self._sent.observe(sent_bytes, verb)

    def rejected(self, reasons: Iterable[str]) -> None:
        """Counts the nodes that filter did not keep, one reason each."""
        for reason, nodes in Counter(reasons).items():
            short = reason[: limits.METRIC_REASON_CHARACTERS]
            has_own_label = short in self._rejected or len(self._rejected) < limits.METRIC_REASONS
            self._rejected[short if has_own_label else OTHER] += nodes

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        return (metric for metric in self._all() if not {metric.name, f"{metric.name}_total"} & self._disabled)

    def _all(self) -> Iterator[Metric]:
        yield counter(
            "reprieve_verb_requests",
            "Requests by verb and result: answered, error (understood, and not answered), or refused (another status "
            "than 200).",
            ("verb", "result"),
            self._requests,
        )
        for histogram in (self._durations, self._nodes, self._received, self._sent):
            yield histogram.collect()
        yield counter(
            "reprieve_verb_rejected_nodes",
            "Nodes that filter did not keep, by the reason that it gave; "
            f"after {limits.METRIC_REASONS} reasons, new ones count as `{OTHER}`.",
            ("reason",),
            self._rejected,
        )
