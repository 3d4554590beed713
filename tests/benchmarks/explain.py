"""Explaining a pending pod: how long the loop is held up, by what the scheduler finds out and by telling it."""

import random
import statistics
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from extender.answers.explaining import explain
from extender.config.loading import default_configuration
from extender.evaluation import evaluate, trying_every_node
from extender.objects.pod import Pod
from extender.plugins import IN_TREE
from extender.runtime.nominations import NO_NOMINATIONS
from extender.runtime.registry import Registry
from tests.benchmarks.cluster import make_full_cache, make_pod

T = TypeVar("T")

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

_OWN_APP = {"matchLabels": {"app": "app-0"}}
_APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": _OWN_APP}]}
_CHOOSY: dict[str, object] = {
    "nodeSelector": {ZONE: "zone-1"},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _OWN_APP}],
    "affinity": {"podAntiAffinity": _APART},
}

SHAPES: dict[str, Pod] = {
    "fits": make_pod("fits"),
    "no room": make_pod("no-room", cpu="4", memory="8Gi"),
    "preempts": make_pod("preempts", cpu="4", memory="8Gi", priority=1000),
    "choosy": make_pod("choosy", cpu="4", memory="8Gi", priority=50, spec=_CHOOSY),
    "hopeless": make_pod("hopeless", cpu="4", memory="200Gi", priority=1000, spec={"nodeSelector": {"disk": "ssd", "gpu": "yes"}}),
}


def run(sizes: tuple[int, ...] = (1000, 5000), rounds: int = 9) -> None:
    """Print a line for each size and shape."""
    print("explain (evaluate, reasons, nearest nodes, fixes tried, preemption), 10 pods a node, every node dry-run; median ms")
    print(f"{'nodes':>7} {'pod':10} {'evaluate':>9} {'explain':>9} {'+ picture':>10} {'fixes':>6}")
    configuration = trying_every_node(default_configuration())
    framework = Registry(IN_TREE, []).make_frameworks(configuration, random.Random(1))["default-scheduler"]
    for num_nodes in sizes:
        snapshot = make_full_cache(num_nodes, 10).update_snapshot()
        for shape, pod in SHAPES.items():
            _, evaluating = _median(rounds, lambda pod=pod, snapshot=snapshot: evaluate(framework, snapshot, pod, NO_NOMINATIONS))
            found, explaining = _median(rounds, lambda pod=pod, snapshot=snapshot: explain(framework, snapshot, pod, NO_NOMINATIONS))
            _, drawing = _median(
                rounds, lambda pod=pod, snapshot=snapshot: explain(framework, snapshot, pod, NO_NOMINATIONS, picture=True)
            )
            print(f"{num_nodes:7} {shape:10} {evaluating:9.1f} {explaining:9.1f} {drawing:10.1f} {len(found.fixes):6}", flush=True)


def _median(rounds: int, ask: Any) -> tuple[Any, float]:
    took: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = _run(ask())
        took.append(time.perf_counter() - began)
    return answer, statistics.median(took) * 1e3


def _run(asking: Coroutine[Any, Any, T]) -> T:
    """The answer of a question that waits for nothing: without extenders, preemption does not."""
    try:
        asking.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise RuntimeError("somebody was waited for")
