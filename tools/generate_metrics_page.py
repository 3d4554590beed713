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
from extender.client.lease.leader_election import LeaderElector
from extender.cluster import own_cluster
from extender.cluster.in_memory import EmbeddedTransport
from extender.lab.shadow import Shadow
from extender.values.config import Configuration
from extender.values.metrics.metrics import GroupMetrics
from extender.values.targets.target import Target

PAGE: Final = Path(__file__).parents[1] / "docs" / "metrics.md"

_INTRODUCTION: Final = """\
# Metrics

`make docs` writes this page from the code. [observability.md](observability.md) says how they are scraped, and
describes dashboards and alerts. The series of a histogram have Prometheus' suffixes besides: `_bucket`, `_sum`,
`_count`.
"""


_WITHOUT: Final = """
The others of kube-scheduler 1.36 would always be 0 here: `scheduler_batch_*`, `scheduler_get_node_hint_duration_seconds`
and `scheduler_store_schedule_results_duration_seconds` are about its cache of nodes for equal pods, which is not needed
where all nodes are computed at once; `scheduler_volume_binder_cache_requests_total` is about a cache that neither has;
`workqueue_*` and `go_*` are about Go's queues and runtime. Those of pod groups appear once a group was tried.
"""  # noqa: E501 - a line of the page


async def _of_a_scheduler() -> list[Metric]:
    configuration = Configuration()
    async with own_cluster([], rng=random.Random(1)) as own:
        client = Client(Target("http://embedded"), transport=EmbeddedTransport(own.api))
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


def _section(title: str, words: str, families: Iterable[Metric]) -> Sequence[str]:
    lines = [f"\n## {title}\n\n{words}\n\n| metric | type | labels | what it says |\n|---|---|---|---|\n"]
    for family in sorted(families, key=lambda family: family.name):
        # Families keep the names of their labels for `add_metric`; prometheus_client has no public name for them.
        names: Any = getattr(family, "_labelnames", ())
        labels = ", ".join(f"`{label}`" for label in names)
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n")
    return lines


def page() -> str:
    """Returns the page."""
    families = asyncio.run(_of_a_scheduler())
    ours, upstreams = ([each for each in families if each.name.startswith("reprieve_") is own] for own in (True, False))
    process = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=process)
    return "".join(
        [
            _INTRODUCTION,
            *_section(
                "The extender", "At `/metrics`: what the verbs were asked and answered.", VerbMetrics().collect()
            ),
            *_section(
                "The scheduler",
                "At `/metrics`, under kube-scheduler's names; most of those that begin with `scheduler_` are there "
                "with `--schedule` only.",
                [*upstreams, *_of_pod_groups()],
            ),
            _WITHOUT,
            *_section("The service", "At `/metrics`, in every mode; those of the shadow with `--shadow` only.", ours),
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
