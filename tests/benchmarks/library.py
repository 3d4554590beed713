"""The library: 10,000 placements of one trial on 5,000 nodes, beside decisions without one; CPU time."""

import gc
import time
from typing import Any

import msgspec

from extender.answers.questions import Questions
from extender.engine.cache.cluster import Cluster as ObservedCluster
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from reprieve.library import Cluster
from tests.benchmarks.cluster import make_cache
from tests.benchmarks.decision import SHAPES, decide
from tests.benchmarks.what_if import as_cluster

ROUNDS = 3


def run(num_nodes: int = 5000, num_pods: int = 10_000) -> None:
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
        decisions, pending, created = (
            max(each[0] for each in rounds),
            *(min(each[at] for each in rounds) for at in (1, 2)),
        )
        print(
            f"{shape:10} {decisions:12,.0f} {pending:11.2f} {num_pods / pending:8,.0f} "
            f"{num_pods / pending / decisions:5.0%} {created:11.2f} {num_pods / created:8,.0f}",
            flush=True,
        )


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
    assert all(each.node for each in placed)
    return took
