"""The library: placements of one trial in one call and one by one, and its questions, beside decisions without it; CPU
time.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.cluster import make_cache, make_pod
from bench.decision import SHAPES, decide
from bench.what_if import as_cluster
from extender.answers.questions import Questions
from extender.engine.cache.cluster import Cluster as ObservedCluster
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from reprieve.library import Cluster

ROUNDS = 3
RUNNING = 50_000
ONE_BY_ONE = 200


def run(num_nodes: int = 5000, num_pods: int = 5_000) -> None:
    """Print a line for each shape: pods a second of CPU, the quietest of some rounds."""
    print(f"{num_pods:,} placements of a trial on {num_nodes:,} nodes, ten pods a node; CPU, the quietest of {ROUNDS}")
    print(f"{'shape':10} {'decisions/s':>12} {'pending: s':>11} {'pods/s':>8} {'':>5} {'objects: s':>11} {'pods/s':>8}")
    for shape in ("basic", "mixed"):
        pods = [SHAPES[shape](number) for number in range(num_pods)]
        objects = [{"kind": "Pod", **msgspec.to_builtins(pod)} for pod in pods]
        cache = make_cache(num_nodes)
        waiting = as_cluster(cache.fork())
        for pod in pods:
            waiting.changed(None, pod)
        rounds = [
            (
                decide(cache.fork(), pods, time.process_time).per_second,
                seconds(waiting),
                seconds(as_cluster(cache.fork()), objects),
            )
            for _ in range(ROUNDS)
        ]
        rates, *times = zip(*rounds, strict=True)
        decisions, (pending, created) = max(rates), map(min, times)
        print(
            f"{shape:10} {decisions:12,.0f} {pending:11.2f} {num_pods / pending:8,.0f} "
            f"{num_pods / pending / decisions:5.0%} {created:11.2f} {num_pods / created:8,.0f}",
            flush=True,
        )
    for nodes in (1000, 5000):
        calls(nodes)


def calls(num_nodes: int, num_pods: int = RUNNING) -> None:
    """Print a line for each call: milliseconds of CPU, and how many bare decisions that is."""
    cache = make_cache(num_nodes, num_pods // num_nodes)
    waiting = [SHAPES["basic"](number) for number in range(ONE_BY_ONE)]
    decision = 1e3 / max(decide(cache.fork(), waiting, time.process_time).per_second for _ in range(ROUNDS))
    cluster = as_cluster(cache)
    for pod in (*waiting, make_pod("huge", cpu="16", priority=10)):
        cluster.changed(None, pod)
    new = [{"kind": "Pod", **msgspec.to_builtins(SHAPES["basic"](ONE_BY_ONE + number))} for number in range(ONE_BY_ONE)]
    print(f"{num_nodes:,} nodes, {num_pods:,} pods; ms of CPU a call, in bare decisions of {decision:.3f} ms")
    with Cluster(Questions(Configuration(), cluster, TrialRegistry)).trial() as trial:
        trial.nodes(waiting[0].key)
        for call, ask, many in (
            ("schedule, by name", lambda number: trial.schedule(waiting[number].key), ONE_BY_ONE),
            ("schedule, an object", lambda number: trial.schedule(new[number]), ONE_BY_ONE),
            ("undo", lambda _: trial.undo(), 2 * ONE_BY_ONE),
            ("preempt", lambda _: trial.preempt("huge"), ROUNDS),
            ("fits", lambda _: trial.fits(waiting[0].key), ROUNDS),
            ("nodes(pod)", lambda _: trial.nodes(waiting[0].key), ROUNDS),
        ):
            took = call_cost(ask, many)
            print(f"  {call:20} {took:8.3f} {took / decision:8.1f}", flush=True)


def call_cost(ask: Callable[[int], object], many: int) -> float:
    """Milliseconds of CPU a call."""
    began = time.process_time()
    for number in range(many):
        ask(number)
    return 1e3 * (time.process_time() - began) / many


def seconds(cluster: ObservedCluster, objects: list[dict[str, Any]] | None = None) -> float:
    """How long it takes to place these pods, or all that are pending, in a new trial."""
    with Cluster(Questions(Configuration(), cluster, TrialRegistry)).trial() as trial:
        trial.nodes()  # the first snapshot lays the columns out
        gc.collect()
        gc.freeze()  # as for decisions
        began = time.process_time()
        placed = trial.schedule(objects)
        took = time.process_time() - began
        gc.unfreeze()
    assert all(placement.node for placement in placed)
    return took
