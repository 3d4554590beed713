"""Explaining a pending pod: how long the loop is held up, by what the scheduler finds out and by telling it. And
counting how many fit.
"""

import gc
import random
import statistics
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from bench.cluster import make_cache, make_full_cache, make_pod
from bench.decision import anti_affinity, basic, spread
from extender.answers.explain.explanation import explain
from extender.answers.profiles import simulated_frameworks
from extender.answers.trial import Trial
from extender.answers.what_if.capacity import capacity
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod

T = TypeVar("T")

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

_OWN_APP = {"matchLabels": {"app": "app-0"}}
_APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": _OWN_APP}]}
_CHOOSY: dict[str, object] = {
    "nodeSelector": {ZONE: "zone-1"},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _OWN_APP}
    ],
    "affinity": {"podAntiAffinity": _APART},
}

SHAPES: dict[str, Pod] = {
    "fits": make_pod("fits"),
    "no room": make_pod("no-room", cpu="4", memory="8Gi"),
    "preempts": make_pod("preempts", cpu="4", memory="8Gi", priority=1000),
    "choosy": make_pod("choosy", cpu="4", memory="8Gi", priority=50, spec=_CHOOSY),
    "hopeless": make_pod(
        "hopeless", cpu="4", memory="200Gi", priority=1000, spec={"nodeSelector": {"disk": "ssd", "gpu": "yes"}}
    ),
}


def run(sizes: tuple[int, ...] = (1000, 5000), rounds: int = 9) -> None:
    """Print a line for each size and shape."""
    print(
        "explain (evaluate, reasons, nearest nodes, fixes tried, preemption), 10 pods a node, every node dry-run; "
        "median CPU ms"
    )
    print(f"{'nodes':>7} {'pod':10} {'evaluate':>9} {'explain':>9} {'+ picture':>10} {'fixes':>6}")
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1), is_exhaustive=True)[
        "default-scheduler"
    ]
    for num_nodes in sizes:
        snapshot = make_full_cache(num_nodes, 10).update_snapshot()
        for shape, pod in SHAPES.items():
            _, evaluating = _median(
                rounds, lambda pod=pod, snapshot=snapshot: evaluate(Cycle(framework, snapshot, pod, NO_NOMINATIONS))
            )
            answer, explaining = _median(
                rounds, lambda pod=pod, snapshot=snapshot: explain(framework, snapshot, pod, NO_NOMINATIONS)
            )
            _, drawing = _median(
                rounds,
                lambda pod=pod, snapshot=snapshot: explain(framework, snapshot, pod, NO_NOMINATIONS, picture=True),
            )
            print(
                f"{num_nodes:7} {shape:10} {evaluating:9.1f} {explaining:9.1f} {drawing:10.1f} {len(answer.fixes):6}",
                flush=True,
            )
    _count(5000)


def _count(num_nodes: int, limit: int = 5000) -> None:
    print(
        f"capacity on {num_nodes} nodes, beside 10 pods each; copies that mind other nodes are placed one by one, up "
        f"to {limit}"
    )
    print(f"{'pod':14} {'fit':>7} {'CPU s':>8}")
    for shape, make in (("basic", basic), ("spread", spread), ("anti-affinity", anti_affinity)):
        cluster = Cluster(make_cache(num_nodes))
        frameworks = simulated_frameworks(Configuration(), cluster)
        gc.collect()
        gc.freeze()  # as the worker does that counts for a service
        began = time.process_time()
        answer = capacity(Trial(cluster, frameworks), make(0), 10**6 if shape == "basic" else limit)
        print(f"{shape:14} {answer.fits:7} {time.process_time() - began:8.2f}", flush=True)
        gc.unfreeze()


def _median(rounds: int, ask: Any) -> tuple[Any, float]:
    took: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        answer = _run(ask())
        took.append(time.process_time() - began)
    return answer, statistics.median(took) * 1e3


def _run(asking: Coroutine[Any, Any, T]) -> T:
    """The answer of a question that waits for nothing: without extenders, preemption does not."""
    try:
        asking.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise RuntimeError("somebody was waited for")
