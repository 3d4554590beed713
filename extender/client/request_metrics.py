"""Requests to API servers as client-go counts them, which dashboards of kube-scheduler show.

Upstream: component-base/metrics/prometheus/restclient/metrics.go; client-go/rest/request.go.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from extender.values.metrics.metrics import Histogram, counter

ERROR: Final = "<error>"
"""Stands for the status of a request that got none."""

# The metrics of this module. Hosts are few: those of the targets.
ATTEMPTS: Final[Counter[tuple[str, str, str]]] = Counter()
"""(status, method, host) -> attempts and watches."""
DURATIONS: Final = Histogram(
    "rest_client_request_duration_seconds",
    "Seconds that a request to the API server took, its waits and repetitions included; watches do not count.",
    ("verb", "host"),
    (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0),
)


def request_metrics() -> Iterator[Metric]:
    """Yields how many requests there were, and how long they took."""
    yield counter(
        "rest_client_requests",
        f"Requests to the API server, each repetition counted, by status ({ERROR} without an answer).",
        ("code", "method", "host"),
        ATTEMPTS,
    )
    yield DURATIONS.collect()
