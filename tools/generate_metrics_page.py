"""Writes docs/metrics.md, all metrics of a running service: `python -m tools.generate_metrics_page` (or `make docs`).

A scheduler is started on an embedded cluster, and its metrics are asked what they are; nothing about a metric is
written here.
"""

import asyncio
import random
import sys
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from api.service_state import HealthRecord
from api.verb_metrics import VerbMetrics
from extender.assembly.exposition import ResourceExposition
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.leader_election import LeaderElector
from extender.values.config.configuration import Configuration
from extender.values.metrics.metrics import GroupMetrics
from extender.values.targets.target import Target
from reprieve.cluster import own_cluster
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.lab.shadow import Shadow

PAGE: Final = Path(__file__).parents[1] / "docs" / "metrics.md"

_INTRODUCTION: Final = """\
# Metrics

[Observability](observability.md) says how to scrape them, and describes dashboards and alerts. `# HELP` in `/metrics`
explains each.
"""


_WITHOUT: Final = """
Not here are those that would always be 0: `scheduler_batch_*`, `scheduler_get_node_hint_duration_seconds`,
`scheduler_store_schedule_results_duration_seconds`, `scheduler_volume_binder_cache_requests_total`, `workqueue_*` and
`go_*`. Those of pod groups appear once a group was tried.
"""


async def _of_a_scheduler() -> list[Metric]:
    configuration = Configuration()
    async with own_cluster([], rng=random.Random(1)) as cluster:
        client = Client(Target("http://embedded"), transport=EmbeddedTransport(cluster.api))
        clock = asyncio.get_running_loop().time
        elector = LeaderElector(
            client, configuration.leader_election, "this replica", rng=random.Random(1), boot_time=clock
        )
        options = LiveOptions(decides=True, taps=[Shadow(configuration).tap()])
        async with (
            aclosing(client),
            live_backend(configuration, client, options, elector=elector, rng=random.Random(1)) as backend,
        ):
            return list(backend.metric_families())


def _section(title: str, words: str, families: Iterable[Metric], *, is_told: bool = False) -> Sequence[str]:
    """Returns a table of metrics, with what they say if no reference of Kubernetes or Prometheus does."""
    heading = "| metric | type | labels |" + " what it says |" * is_told
    lines = [f"\n## {title}\n\n{words}\n\n{heading}\n|---|---|---|{'---|' * is_told}\n"]
    for family in sorted(families, key=lambda family: family.name):
        # Families keep the names of their labels for `add_metric`; prometheus_client has no public name for them.
        names: Any = getattr(family, "_labelnames", ())
        labels = ", ".join(f"`{label}`" for label in names)
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"| `{name}` | {family.type} | {labels} |{f' {family.documentation} |' * is_told}\n")
    return lines


def page() -> str:
    """Returns the page."""
    families = asyncio.run(_of_a_scheduler())
    ours, upstreams = (
        [family for family in families if family.name.startswith("reprieve_") is is_ours] for is_ours in (True, False)
    )
    process = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=process)
    return "".join(
        [
            _INTRODUCTION,
            *_section(
                "The extender",
                "At `/metrics`: what the verbs were asked and answered.",
                VerbMetrics().collect(),
                is_told=True,
            ),
            *_section(
                "The scheduler",
                "At `/metrics`, as the [reference of Kubernetes]"
                "(https://kubernetes.io/docs/reference/instrumentation/metrics/) describes them; most are there with "
                "`--schedule` only. [Known differences](reference/differences.md) has what they count differently.",
                [*upstreams, *_of_pod_groups()],
            ),
            _WITHOUT,
            *_section(
                "The service",
                "At `/metrics`, in every mode; those of the shadow with `--shadow` only.",
                ours,
                is_told=True,
            ),
            *_section("The process", "At `/metrics`, on Linux.", process.collect()),
            *_section("Health checks", "At `/metrics/slis`, as upstream.", HealthRecord().collect()),
            *_section("Pods", "At `/metrics/resources`, as upstream; empty while another replica leads.", _of_pods()),
        ]
    )


def _of_pod_groups() -> Iterable[Metric]:
    groups = GroupMetrics()
    groups.attempted("scheduled", "default-scheduler", 0.0)
    return groups.collect()


def _of_pods() -> Iterable[Metric]:
    return ResourceExposition(()).collect()


def main() -> None:
    """Writes the page, by default into docs."""
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
