"""What-ifs: how long the loop is held up by the fork, how long the answer takes in its thread, and how late others are
meanwhile.
"""

import asyncio
import statistics
import time
from typing import Any

from bench.cluster import make_cache, make_full_cache
from extender.answers.types import WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from tests.kit.objects import priority_class

ROUNDS = 7
HIGH = priority_class("high", 1000)


def run() -> None:
    """Print a line for each question."""
    print(
        f"what-ifs, medians of {ROUNDS}; `late`: the longest that a task which wakes each millisecond had to wait "
        "meanwhile"
    )
    print(f"{'question':42} {'fork ms':>8} {'answer ms':>10} {'late ms':>8}")
    for num_nodes, pods_a_node in ((5000, 10), (5000, 30)):
        cluster = as_cluster(make_cache(num_nodes, pods_a_node))
        size = f"{num_nodes:,} nodes, {num_nodes * pods_a_node:,} pods"
        show(f"a pod that fits: {size}", cluster, WhatIfRequest(create=[HIGH, pod("2")]))
    cluster = as_cluster(make_full_cache(5000))
    show("a pod that preempts: 5,000 nodes, 150,000 pods", cluster, WhatIfRequest(create=[HIGH, pod("4")]))


def show(question: str, cluster: Cluster, request: WhatIfRequest) -> None:
    """Ask it some times."""
    forks, answers, late = zip(*(asyncio.run(asked(cluster, request)) for _ in range(ROUNDS)), strict=True)
    print(f"{question:46} {median(forks):6.0f} {median(answers):10.0f} {median(late):8.0f}", flush=True)


async def asked(cluster: Cluster, request: WhatIfRequest) -> tuple[float, float, float]:
    """Seconds: of the fork (of the processor's time), of the answer, and of the longest wait of somebody else."""
    began = time.thread_time()
    fork = cluster.fork()
    forking, forked = time.thread_time() - began, time.perf_counter()
    answer = asyncio.create_task(asyncio.to_thread(what_if, fork, Configuration(), request, TrialRegistry))
    longest = 0.0
    while not answer.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before - 0.001)
    return forking, time.perf_counter() - forked, longest


def as_cluster(cache: Cache) -> Cluster:
    """The cluster around a cache, as it is once decisions have begun."""
    cluster = Cluster(cache)
    cluster.nodes = {node.name: node for node in cache.update_snapshot().nodes.objects}
    return cluster


def pod(cpu: str) -> dict[str, Any]:
    """A pod, as people write one."""
    container = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"priorityClassName": "high", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def median(seconds: tuple[float, ...]) -> float:
    """In milliseconds."""
    return statistics.median(seconds) * 1e3


if __name__ == "__main__":
    run()
