"""One decision: snapshot, filters, scores, select, assume; for pods one after the other, in process.

The clusters and shapes are those of the figures recorded for kube-scheduler 1.36.2 (Go, in process, default sampling),
which stand beside ours.
"""

import dataclasses
import gc
import random
import statistics
import time
from collections import deque
from collections.abc import Callable

import msgspec

from bench.cluster import NUM_APPS, make_cache, make_pod
from extender.client.informers.keeping import PodKeeper
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.registry import Registry
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.values.config.configuration import Configuration
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod

GO_PODS_PER_SECOND = {
    (1000, "basic"): 1227, (1000, "spread"): 596, (1000, "anti-affinity"): 159, (1000, "affinity"): 293, (1000, "mixed"): 293,
    (5000, "basic"): 871, (5000, "spread"): 77, (5000, "anti-affinity"): 32, (5000, "affinity"): 30, (5000, "mixed"): 48,
    (15000, "basic"): 681, (15000, "spread"): 26, (15000, "anti-affinity"): 10, (15000, "affinity"): 12, (15000, "mixed"): 15,
}  # fmt: skip

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def basic(number: int) -> Pod:
    """Requests only."""
    return make_pod(f"basic-{number}", app=number % NUM_APPS)


def spread(number: int) -> Pod:
    """maxSkew 5 over zones, DoNotSchedule, its own app."""
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _own_app(number),
    }
    return make_pod(f"spread-{number}", app=number % NUM_APPS, spec={"topologySpreadConstraints": [constraint]})


def anti_affinity(number: int) -> Pod:
    """Required on hostname, its own app."""
    term = {"topologyKey": HOSTNAME, "labelSelector": _own_app(number)}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return make_pod(f"anti-{number}", app=number % NUM_APPS, spec={"affinity": affinity})


def affinity(number: int) -> Pod:
    """Preferred on zone, its own app."""
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": _own_app(number)}}
    wish = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return make_pod(f"affinity-{number}", app=number % NUM_APPS, spec={"affinity": wish})


def mixed(number: int) -> Pod:
    """A quarter of each."""
    return (basic, spread, anti_affinity, affinity)[number % 4](number)


SHAPES: dict[str, Callable[[int], Pod]] = {
    "basic": basic, "spread": spread, "anti-affinity": anti_affinity, "affinity": affinity, "mixed": mixed,
}  # fmt: skip


def _own_app(number: int) -> dict[str, object]:
    return {"matchLabels": {"app": f"app-{number % NUM_APPS}"}}


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds a decision."""

    p50: float
    p99: float
    per_second: float


def decide(cache: Cache, pods: list[Pod], clock: Callable[[], float] = time.perf_counter) -> Figures:
    """Schedule and assume the pods, one after the other."""
    return figures_of(seconds_of_each(cache, pods, clock))


def seconds_of_each(cache: Cache, pods: list[Pod], clock: Callable[[], float]) -> list[float]:
    """Schedule and assume the pods, one after the other; returns how long each took."""
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1))["default-scheduler"]
    algorithm = SchedulingAlgorithm()
    took: list[float] = []
    cache.update_snapshot()  # the first one lays the columns out: that is starting up, not deciding
    gc.collect()
    gc.freeze()  # as the service does once it has its cluster
    for pod in pods:
        began = clock()
        host = algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), pod)).suggested_host
        cache.assume_pod(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=host)))
        took.append(clock() - began)
    gc.unfreeze()
    return took


def figures_of(took: list[float]) -> Figures:
    """Returns the figures of decisions that took so many seconds each."""
    ascending = sorted(took)
    return Figures(
        statistics.median(ascending) * 1e3, ascending[len(took) * 99 // 100] * 1e3, len(took) / sum(ascending)
    )


WATCHED_AFTER = 16
"""So many decisions later, the watch shows a pod on its node."""


def drain(num_nodes: int, pods: list[Pod]) -> float:
    """Schedules the pods as a drain does: each comes with a watch, is decided and assumed, and comes back on its node a
    little later, with the node's labels. Returns the milliseconds of CPU a pod.
    """
    cluster = Cluster(make_cache(num_nodes))
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1))["default-scheduler"]
    algorithm, keep, assumed = SchedulingAlgorithm(), PodKeeper(), deque[Pod]()
    cluster.cache.update_snapshot()
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for pod in map(keep, pods):
        cluster.changed(None, pod)
        host = algorithm.schedule_pod(Cycle(framework, cluster.cache.update_snapshot(), pod)).suggested_host
        cluster.assume(pod.uid, host)
        assumed.append(pod)
        if len(assumed) > WATCHED_AFTER:
            waited = assumed.popleft()
            cluster.changed(waited, keep(_bound(waited, cluster)))
    took = time.process_time() - began
    gc.unfreeze()
    return took / len(pods) * 1e3


def _bound(pod: Pod, cluster: Cluster) -> Pod:
    """The pod as the API server shows it once it is bound."""
    on_node = cluster.cache.pod(pod.uid)
    node = None if on_node is None else cluster.cache.node(on_node.spec.node_name)
    if on_node is None or node is None:
        raise LookupError(pod.key)
    replace = msgspec.structs.replace
    labels = {ZONE: node.labels[ZONE], **pod.labels}
    status = replace(pod.status, conditions=[Condition(type="PodScheduled", status="True")])
    return replace(on_node, metadata=replace(pod.metadata, labels=labels, resource_version="2"), status=status)


def run(sizes: tuple[int, ...] = (1000, 5000, 15000), num_pods: int = 1000) -> None:
    """Print a line for each size and shape, then how the cost depends on the pods a node."""
    print("decision (filter + score + select + assume), ten pods a node, all nodes looked at")
    print(f"{'nodes':>7} {'shape':14} {'p50 ms':>8} {'p99 ms':>8} {'pods/s':>8} {'Go pods/s':>10} {'ratio':>7}")
    for num_nodes in sizes:
        for shape, make in SHAPES.items():
            figures = decide(make_cache(num_nodes), [make(number) for number in range(num_pods)])
            go = GO_PODS_PER_SECOND.get((num_nodes, shape))
            beside_go = f"{go:10} {figures.per_second / go:6.1f}x" if go else ""
            print(
                f"{num_nodes:7} {shape:14} {figures.p50:8.3f} {figures.p99:8.3f} {figures.per_second:8.0f} {beside_go}",
                flush=True,
            )
    print("as a drain decides: each pod comes with a watch, and comes back on its node; CPU ms, the quietest of 3")
    for shape in ("basic", "mixed"):
        took = min(drain(1000, [SHAPES[shape](number) for number in range(num_pods)]) for _ in range(3))
        print(f"{1000:7} {shape:14} {took:8.3f} a pod", flush=True)
    equal = [make_pod(f"equal-{number}", app=0) for number in range(10_000)]
    rates = sorted(decide(make_cache(5000), equal, time.process_time).per_second for _ in range(3))
    print(
        f"10,000 equal pods on 5,000 nodes, pods a second of CPU: {', '.join(f'{rate:,.0f}' for rate in rates)}",
        flush=True,
    )
    print(
        "the same at 5,000 nodes, 30 against 10 pods a node, of 60 apps (with 20, every node would have each); the "
        "quietest of 3"
    )
    for shape, make in SHAPES.items():
        # In turns, the quietest of each: the machine's speed changes from one minute to the next.
        rounds = [
            [decide(make_cache(5000, number, 60), [make(n) for n in range(num_pods)]).p50 for number in (10, 30)]
            for _ in range(3)
        ]
        ten, thirty = (min(figures) for figures in zip(*rounds, strict=True))
        print(f"{5000:7} {shape:14} {ten:8.3f} {thirty:8.3f} ms p50, {(thirty / ten - 1) * 100:+.0f} %", flush=True)


def run_large(sizes: tuple[int, ...] = (5000, 20_000, 50_000, 100_000), num_pods: int = 1000) -> None:
    """Print how the cost of a decision grows with the cluster, in CPU time, beside that of the smallest one."""
    print(
        "decisions in large clusters, ten pods a node; CPU time, each decision the quietest of 3; beside the first size"
    )
    print(f"{'nodes':>7} {'shape':14} {'p50 ms':>8} {'pods/s':>8} {'by p50':>8} {'by mean':>8}")
    caches = {num_nodes: make_cache(num_nodes) for num_nodes in sizes}
    for shape, make in SHAPES.items():
        pods = [make(number) for number in range(num_pods)]
        # In turns, since the machine's speed changes from one minute to the next. All rounds decide the same.
        rounds = [
            [seconds_of_each(cache.fork(), pods, time.process_time) for cache in caches.values()] for _ in range(3)
        ]
        of_sizes = [figures_of([*map(min, zip(*of_size, strict=True))]) for of_size in zip(*rounds, strict=True)]
        first = of_sizes[0]
        for num_nodes, figures in zip(sizes, of_sizes, strict=True):
            by_p50, by_mean = first.p50 / figures.p50, figures.per_second / first.per_second
            print(
                f"{num_nodes:7} {shape:14} {figures.p50:8.3f} {figures.per_second:8.0f} {by_p50:8.0%} {by_mean:8.0%}",
                flush=True,
            )
