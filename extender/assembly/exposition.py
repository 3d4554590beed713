"""Exposition: all metrics at one moment, in Prometheus' text format, counted on collection where possible.

Upstream: pkg/scheduler/metrics/metrics.go; component-base/metrics/prometheus/clientgo/leaderelection. Names that begin
with `reprieve_` are ours.
"""

import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from extender import KUBERNETES_VERSION, __version__
from extender.assembly.debugger import waiting_in
from extender.assembly.scheduling import Scheduling
from extender.client.informers.informers import Informers
from extender.client.informers.reflector_state import ReflectorCounters
from extender.client.leader_election import LeaderElector
from extender.client.request_metrics import request_metrics
from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine.framework.events import ClusterEvent
from extender.engine.runtime.quarantine import Quarantines
from extender.engine.scheduler.world import World
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.metrics.metrics import counter, gauge
from extender.values.objects.decoding import DecodeError
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import pod_limits, pod_requests

POD_POPPED: Final = "PodPopped"

_COUNTED: Final[tuple[tuple[str, str, Callable[[ReflectorCounters], int]], ...]] = (
    ("lists", "Lists begun, including the first one and streamed ones.", lambda counters: counters.lists),
    ("watches", "Watches begun.", lambda counters: counters.watches),
    ("events", "Events of watches.", lambda counters: counters.events),
    ("unreadable_objects", "Objects that could not be read.", lambda counters: counters.unreadable),
)


_RESOURCE_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_UNITS: Final = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


_BUILD: Final = {
    "major": "1",
    "minor": "36",
    "git_version": f"{KUBERNETES_VERSION}+reprieve-{__version__}",
    "git_commit": "",
    "git_tree_state": "",
    "build_date": "",
    "go_version": "",
    "compiler": f"{platform.python_implementation()} {platform.python_version()}",
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
"""The labels of `kubernetes_build_info`. Upstream: component-base/metrics/version.go."""


@final
@dataclass(kw_only=True, eq=False)
class Exposition(Collector):
    """The metrics of a process that follows a cluster; those that are disabled, by name, are not exposed."""

    informers: Informers
    dispatcher: ApiDispatcher
    scheduling: Scheduling | None
    elector: LeaderElector | None
    """None without other replicas."""
    now: Callable[[], float]
    """The event loop's time."""
    disabled: Collection[str] = ()
    dropped_log_lines: Callable[[], int] = int
    quarantines: Quarantines | None = None
    feature_gates: FeatureGates = DEFAULT_FEATURES
    extra: Sequence[Callable[[], Iterable[Metric]]] = ()

    def __post_init__(self) -> None:
        self._process = ProcessCollector(registry=None)

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        return generate_latest(self) + generate_latest(self._process)

    def collect(self) -> Iterator[Metric]:
        return (metric for metric in self._all() if not {metric.name, f"{metric.name}_total"} & {*self.disabled})

    def _all(self) -> Iterator[Metric]:
        if self.scheduling is not None:
            world = self.scheduling.world
            yield from world.metrics.collect()
            yield from _queue(world)
            yield from _cache(world)
            yield counter(
                "scheduler_plugin_evaluation",
                "Attempts in which a plugin was evaluated, at PreFilter, Filter, PreScore and Score.",
                ("plugin", "extension_point", "profile"),
                self.scheduling.evaluations(),
            )
        if self.elector is not None:
            yield gauge(
                "leader_election_master_status",
                "1 while this process holds the lease of that name, 0 while it stands by.",
                ("name",),
                {(self.elector.name,): float(self.elector.fence() is None)},
            )
        yield gauge(
            "kubernetes_feature_enabled",
            "This metric records the data about the stage and enablement of a k8s feature.",
            ("name", "stage"),
            {(name, stage.value): float(is_on) for name, stage, is_on in self.feature_gates.stages()},
        )
        yield gauge(
            "kubernetes_build_info",
            "1, with the version of kube-scheduler that decides as this process does, and what it runs on.",
            tuple(_BUILD),
            {tuple(_BUILD.values()): 1.0},
        )
        yield from request_metrics()
        yield from self._writes()
        yield from self._reflectors()
        if self.quarantines is not None:
            of_plugins = self.quarantines.by_plugin.items()
            yield gauge(
                "reprieve_plugin_quarantined",
                "1 while the plugin is not called, because too many of its calls failed.",
                ("plugin",),
                {(name,): float(bool(quarantine.reason())) for name, quarantine in of_plugins},
            )
            times = {name: quarantine.times for name, quarantine in of_plugins}
            yield counter("reprieve_plugin_quarantines", "Times that the plugin was quarantined.", ("plugin",), times)
        for metrics in self.extra:
            yield from metrics()
        yield CounterMetricFamily(
            "reprieve_log_lines_dropped",
            "Lines of the log that could not be written, because the disk was full or the pipe was not read.",
            value=self.dropped_log_lines(),
        )

    def _writes(self) -> Iterator[Metric]:
        durations = self.dispatcher.durations
        yield durations.collect()
        yield counter(
            "scheduler_async_api_call_execution",
            "Writes to the API server by result.",
            ("call_type", "result"),
            durations.counts(),
        )
        yield gauge(
            "scheduler_pending_async_api_calls",
            "Writes to the API server that wait to be sent.",
            ("call_type",),
            {(call_type,): count for call_type, count in self.dispatcher.pending().items()},
        )
        limbo = self.dispatcher.in_limbo
        yield gauge("reprieve_limbo_bindings", "Bindings whose outcome is unknown.", (), {(): len(limbo)})
        oldest = self.now() - min(limbo.values()) if limbo else 0.0
        yield gauge(
            "reprieve_limbo_binding_age_seconds",
            "Age of the oldest binding whose outcome is unknown.",
            (),
            {(): oldest},
        )

    def _reflectors(self) -> Iterator[Metric]:
        reflectors = {reflector.kind.resource: reflector for reflector in self.informers.reflectors}
        for name, text, count in _COUNTED:
            counts = {resource: count(reflector.counters) for resource, reflector in reflectors.items()}
            yield counter(f"reprieve_reflector_{name}", text, ("resource",), counts)
        errors = {
            (resource, error): number
            for resource, reflector in reflectors.items()
            for error, number in reflector.counters.errors.items()
        }
        yield counter("reprieve_reflector_errors", "Failures by class.", ("resource", "error"), errors)
        health = {(resource_health.resource,): resource_health for resource_health in self.informers.health(self.now())}
        now_unreadable = {labels: float(len(resource_health.unreadable)) for labels, resource_health in health.items()}
        yield gauge("reprieve_unreadable_objects", "Objects that cannot be read now.", ("resource",), now_unreadable)
        synced = {labels: float(resource_health.synced) for labels, resource_health in health.items()}
        yield gauge("reprieve_reflector_synced", "1 once the resource was listed.", ("resource",), synced)


@final
class ResourceExposition(Collector):
    """The requests and limits of pods. Upstream: pkg/scheduler/metrics/resources, resources.go."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format. May be called in any thread."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yields the requests and limits of pods that have not ended and can be read."""
        requests = GaugeMetricFamily(
            "kube_pod_resource_request",
            "Requests of a pod by resource, as the scheduler counts them.",
            labels=_RESOURCE_LABELS,
        )
        limits = GaugeMetricFamily("kube_pod_resource_limit", "Limits of a pod by resource.", labels=_RESOURCE_LABELS)
        for pod in self._pods:
            if pod.is_terminal:
                continue
            try:
                amounts_by_family = (requests, pod_requests(pod, use_status=True)), (limits, pod_limits(pod))
            except (QuantityError, DecodeError):
                continue
            priority = "" if pod.spec.priority is None else str(pod.spec.priority)
            of_pod = (pod.namespace, pod.metadata.name, pod.spec.node_name, pod.scheduler_name, priority)
            for family, amounts in amounts_by_family:
                for resource, amount in amounts.items():
                    unit = _UNITS.get(resource) or ("bytes" if resource.startswith("hugepages-") else "integer")
                    value = amount.milli_value() / 1000 if unit == "cores" else float(amount.value())
                    if value:
                        family.add_metric((*of_pod, resource, unit), value)
        yield requests
        yield limits


def _queue(world: World) -> Iterator[Metric]:
    queue = world.queue
    yield gauge(
        "scheduler_pending_pods",
        "Pods in each queue: waiting to be tried next (active), for their backoff to end (backoff), for an event that "
        "may help (unschedulable), or for a gate to open (gated).",
        ("queue",),
        {(name,): count for name, count in queue.pending_counts().items()},
    )
    yield counter(
        "scheduler_queue_incoming_pods",
        "Pods that were added to a queue, by event.",
        ("queue", "event"),
        queue.incoming,
    )
    refused: Counter[tuple[str, ...]] = Counter()
    for info in waiting_in(queue):
        plugins = info.unschedulable_plugins | info.pending_plugins
        refused.update((plugin, info.pod.scheduler_name) for plugin in plugins)
    yield gauge(
        "scheduler_unschedulable_pods",
        "Waiting pods by the plugin that refused them; a pod that several refused counts for each.",
        ("plugin", "profile"),
        refused,
    )
    in_flight = Counter(
        (entry.label if isinstance(entry, ClusterEvent) else POD_POPPED,) for entry in queue.in_flight_log()
    )
    yield gauge(
        "scheduler_inflight_events",
        "Pods in flight, and the events that the queue keeps for them.",
        ("event",),
        in_flight,
    )


def _cache(world: World) -> Iterator[Metric]:
    cluster = world.cluster
    sizes = {
        ("nodes",): len(cluster.nodes),
        ("pods",): cluster.cache.num_pods,
        ("assumed_pods",): len(cluster.cache.assumed_pods),
    }
    yield gauge("scheduler_cache_size", "Nodes, pods with a node, and assumed pods in the cache.", ("type",), sizes)
