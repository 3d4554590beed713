"""What it costs to record every decision: CPU of an attempt with a reporter, against the same without, and memory.

Attempts with and without take turns, a block at a time, in the same cluster, so that the moods of the machine meet both
alike. What counts is what neighbours differ by, in the mean, as some attempts are kept with all details and some are
not; the tenth that differ most are left out on either side. The store is full from the beginning on, so that each
attempt pushes an old one out, as in a service that has run for a while.
"""

import asyncio
import gc
import random
import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time, time

import msgspec

from bench.cluster import make_cache, make_full_cache, make_pod
from bench.decision import basic, mixed
from extender.answers.records.record_store import Limits
from extender.answers.records.records import Records
from extender.assembly.scheduling import assemble_scheduler
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.framework import PreemptionOutcome, Status
from extender.engine.plugins import IN_TREE
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.reporter import NO_REPORTER, Reporter, Reporters
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import Registry
from extender.engine.runtime.scoring import Choice
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.engine.scheduler.scheduling_cycle import scheduling_cycle
from extender.engine.scheduler.world import AssumedPod, PodsInPreBind, World
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from tests.kit.writes import RecordedWrites

BLOCK = 40


def run(num_nodes: int = 5000, num_blocks: int = 120) -> None:
    """Print a line for each kind of pod, then one about memory."""
    print(f"recording, {num_nodes} nodes: CPU of a decision without and with")
    print(f"{'':44} {'without us':>10} {'with us':>8} {'costs':>8}")
    for name, make in (("basic", basic), ("mixed", mixed)):
        _print(f"{name}: filter, score, select, assume", *_decisions(make_cache(num_nodes), make, num_blocks))
    for name, cache, make, size in (
        ("basic: from the queue to the binding", make_cache(num_nodes), basic, BLOCK),
        ("mixed: from the queue to the binding", make_cache(num_nodes), mixed, BLOCK),
        ("fits nowhere: from queue to queue", make_cache(num_nodes), _too_large, 4),
        ("preempts: from queue to queue", make_full_cache(num_nodes), _important, 2),
    ):
        # What takes long varies most.
        _print(name, *asyncio.run(_attempts(cache, make, num_blocks if size == BLOCK else 3 * num_blocks, size)))
    for name, cache, pod, count in (
        ("had a choice", make_cache(num_nodes), mixed, 1000),
        ("fit nowhere", make_cache(num_nodes), _too_large, 200),
        ("preempt", make_full_cache(num_nodes), _important, 50),
    ):
        total, traced = asyncio.run(_memory(cache, pod, count))
        print(
            f"1,000 attempts that {name:14} {total / 2**20:6.2f} MiB by its own count, {traced / 2**20:6.2f} MiB as "
            "Python counts",
            flush=True,
        )


def _print(name: str, plain_times: list[float], recorded_times: list[float]) -> None:
    pairs = sorted(zip(plain_times, recorded_times, strict=True), key=lambda pair: pair[1] - pair[0])[
        len(plain_times) // 10 : -len(plain_times) // 10
    ]
    costs = sum(after for _, after in pairs) / sum(before for before, _ in pairs) - 1
    medians = statistics.median(plain_times) * 1e6, statistics.median(recorded_times) * 1e6
    print(f"{name:44} {medians[0]:10.1f} {medians[1]:8.1f} {costs * 100:+7.1f} %", flush=True)


def _turn(block: int) -> int:
    """0, 1, 1, 0, 0, 1, 1, 0, ...: each goes first as often as the other."""
    return (block + 1) // 2 % 2


def _too_large(number: int) -> Pod:
    return make_pod(f"large-{number}", app=number % 20, cpu="100")


def _important(number: int) -> Pod:
    return make_pod(f"important-{number}", app=number % 20, cpu="4", memory="8Gi", priority=1000)


def _full() -> Records:
    """Records that have no room left.

    Half of the attempts of each second are not told to them: their clock goes at half the pace, so that of what they
    keep so many times a second they keep no more than in a service.
    """
    records = Records(Limits(attempts=200, size=2 * 2**20), now=lambda: time() / 2)
    for number in range(400):
        records.decided(_info(make_pod(f"old-{number}")), "default-scheduler", "n", 1, 1, 0.001)
    return records


def _info(pod: Pod) -> QueuedPodInfo:
    info = QueuedPodInfo(pod, 0.0)
    info.attempts = 1
    return info


def _decisions(cache: Cache, make: Callable[[int], Pod], num_blocks: int) -> tuple[list[float], list[float]]:
    """Seconds a decision (snapshot, filters, scores, select, assume), without and with."""
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1))["default-scheduler"]
    algorithm = SchedulingAlgorithm()
    took: dict[Reporters, list[float]] = {NO_REPORTER: [], Reporters(_full()): []}
    with _collected():
        for block in range(num_blocks):
            reporter = list(took)[_turn(block)]
            infos = [_info(make(block * BLOCK + number)) for number in range(BLOCK)]
            began = process_time()
            for info in infos:
                pod, start = info.pod, perf_counter()
                result = algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), pod))
                if result.choice is not None:
                    reporter.scored(pod, result.choice)
                host = result.suggested_host
                cache.assume_pod(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=host)))
                seconds = perf_counter() - start
                reporter.decided(
                    info, "default-scheduler", host, result.evaluated_nodes, result.feasible_nodes, seconds
                )
            took[reporter].append((process_time() - began) / BLOCK)
    plain_times, recorded_times = (times[1:] for times in took.values())
    return plain_times, recorded_times


async def _attempts(
    cache: Cache, make: Callable[[int], Pod], num_blocks: int, size: int
) -> tuple[list[float], list[float]]:
    """Seconds of a whole attempt of a scheduler that writes to nobody, without and with."""
    cluster, switch, records = Cluster(cache), _Switch(), Reporters(_full())
    writes = RecordedWrites(cache)
    alone = assemble_scheduler(Configuration(), cluster, writes, random.Random(1), reporter=switch)
    took: dict[Reporters, list[float]] = {NO_REPORTER: [], records: []}
    with _collected():
        for block in range(num_blocks):
            switch.to = list(took)[_turn(block)]
            pods = [make(block * size + number) for number in range(size)]
            for pod in pods:
                alone.handlers.changed(None, pod)
            began = process_time()
            async with asyncio.TaskGroup() as acting:
                while (info := alone.world.queue.pop_nowait()) is not None:
                    await alone.scheduler.schedule_one(info, acting)
                    await asyncio.sleep(0)
            took[switch.to].append((process_time() - began) / size)
            for pod in pods:
                if pod.uid not in writes.bound:
                    alone.handlers.changed(pod, None)
            writes.calls.clear()
    plain_times, recorded_times = (times[1:] for times in took.values())
    return plain_times, recorded_times


class _Switch(Reporter):
    """Hears for one or the other."""

    to = NO_REPORTER

    def scored(self, pod: Pod, choice: Choice) -> None:
        self.to.scored(pod, choice)

    def refused(self, pod: Pod, findings: Findings) -> None:
        self.to.refused(pod, findings)

    def preemption_tried(self, pod: Pod, outcome: PreemptionOutcome) -> None:
        self.to.preemption_tried(pod, outcome)

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self.to.decided(info, profile, node, evaluated, feasible, seconds)

    def failed(self, info: QueuedPodInfo, profile: str, status: Status, seconds: float) -> None:
        self.to.failed(info, profile, status, seconds)

    def preemption_ended(self, preemptor: Pod, *, done: bool) -> None:
        self.to.preemption_ended(preemptor, done=done)


async def _memory(cache: Cache, make: Callable[[int], Pod], count: int) -> tuple[float, float]:
    """Bytes of 1,000 attempts, as `Records` counts them and as Python does."""
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(1))["default-scheduler"]
    limits = Limits(size=2**40, details_a_second=2**30)
    algorithm, records, cluster = SchedulingAlgorithm(), Records(limits), Cluster(cache)
    world = _world(cluster, Reporters(records))
    infos = [_info(make(number)) for number in range(count + 1)]
    for info in infos:
        cluster.changed(None, info.pod)
    await _attempt(world, algorithm, framework, infos.pop())
    list(records.attempts())
    first_size = records.size
    gc.collect()
    tracemalloc.start()
    for info in infos:
        await _attempt(world, algorithm, framework, info)
    list(records.attempts())
    gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/extender/answers/records/*")])
    tracemalloc.stop()
    traced = sum(statistic.size for statistic in snapshot.statistics("filename"))
    return (records.size - first_size) * 1000 / count, traced * 1000 / count


async def _attempt(world: World, algorithm: SchedulingAlgorithm, framework: Framework, info: QueuedPodInfo) -> None:
    outcome = await scheduling_cycle(world, algorithm, framework, info.pod, 0)
    if isinstance(outcome, AssumedPod):
        world.reporter.decided(
            info, "default-scheduler", outcome.node, outcome.evaluated_nodes, outcome.feasible_nodes, 0.001
        )
    else:
        world.reporter.failed(info, "default-scheduler", outcome.status, 0.001)


def _world(cluster: Cluster, reporter: Reporters) -> World:
    queue = SchedulingQueue(
        lambda pod, queued: (), {}, lambda pod, last: "", now=lambda: 0.0, pod_lister=lambda key: None
    )
    # Nobody waits in the queue: pods are brought by hand.
    return World(
        cluster=cluster,
        queue=queue,
        waiting_pods=WaitingPodsMap(),
        pods_in_pre_bind=PodsInPreBind(),
        dispatcher=RecordedWrites(cluster.cache),
        pod_by_key=lambda key: None,
        reporter=reporter,
    )


@contextmanager
def _collected() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # as the service does once it has its cluster
    yield
    gc.unfreeze()
