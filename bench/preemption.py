"""The preemption evaluation over ALL nodes: eligible, dry run, select; 30 victims a node, the preemptor needs a quarter
of a node.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Callable

from bench.cluster import make_full_cache, make_pod
from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Rows
from extender.values.config.configuration import Configuration

GO_MILLISECONDS = {1000: 45, 5000: 231, 15000: None}


def run(sizes: tuple[int, ...] = (1000, 5000), rounds: int = 9) -> None:
    """Print a line for each size."""
    print("preemption evaluation over all nodes, 30 pods a node of lower priority")
    print(f"{'nodes':>7} {'candidates':>10} {'median ms':>10} {'Go ms':>7} {'ratio':>7}")
    for num_nodes in sizes:
        candidates, took = evaluate(num_nodes, rounds)
        go = GO_MILLISECONDS[num_nodes]
        ratio = f"{go / took:6.1f}x" if go else "      -"
        print(f"{num_nodes:7} {candidates:10} {took:10.1f} {go or '-':>7} {ratio}", flush=True)


def evaluate(num_nodes: int, rounds: int, clock: Callable[[], float] = time.perf_counter) -> tuple[int, float]:
    """(number of candidates, median milliseconds of PostFilter)."""
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1), is_exhaustive=True)[
        "default-scheduler"
    ]
    snapshot = make_full_cache(num_nodes).update_snapshot()
    pod = make_pod("preemptor", cpu="4", memory="8Gi", priority=1000)
    took: list[float] = []
    candidates = 0
    # Not asyncio.run, whose handler of signals has the coroutine printed, with the cluster in it.
    loop = asyncio.new_event_loop()
    for _ in range(rounds):
        state = Cycle(framework, snapshot, pod)
        state.run_pre_filter_plugins()
        rows = Rows.of(snapshot)
        statuses = fwk.NodeStatuses.refused(state.run_filters_with_nominated_pods(rows), rows, fwk.unresolvable())
        began = clock()
        preemption = loop.run_until_complete(run_post_filter_plugins(state, statuses)).preemption
        took.append(clock() - began)
        candidates = 0 if preemption is None or preemption.candidates is None else len(preemption.candidates)
    loop.close()
    return candidates, statistics.median(took) * 1e3
