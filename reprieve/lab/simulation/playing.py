"""A workload meets the scheduler of a configuration, in virtual time, and the report says what happened.

Fragmentation is the measure of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), for every resource: what is
free on a node is a fragment for a pod that the node refuses, and for a pod that requests none of it; shapes of pods
count by how often they arrive. The paper looks at each GPU of a node by itself; here a node has one amount of a
resource, as the scheduler sees it. A node refuses what the real Filters refuse.
"""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from extender.assembly.scheduling import assemble_scheduler
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Mask
from extender.values.concurrency import virtual_time
from extender.values.config.configuration import Configuration, PluginConfig
from extender.values.config.plugin_args import DynamicResourcesArgs
from extender.values.golang.times import Duration
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import EPHEMERAL_STORAGE
from reprieve.lab import limits
from reprieve.lab.simulation.observation import Fate, Observation, SimulatedDecision
from reprieve.lab.simulation.report import RefusedPods, SimulationReport, Waiting
from reprieve.lab.simulation.scene import Scene, StuckError
from reprieve.lab.simulation.simulated_cluster import SimulatedCluster
from reprieve.lab.simulation.workload import ExpectationError, Workload, WorkloadError

SHAPES: Final = 128
"""The number of shapes that count, the most frequent ones."""


def fragmentation(
    frameworks: Mapping[str, Framework], cache: Cache, shapes: Iterable[tuple[Pod, int]]
) -> dict[str, float]:
    """Returns the part of what is free of each resource that an average pod cannot use.

    `frameworks` are not those of the scheduler, which remember results for its decisions. `shapes` are a pod of each
    shape, and how often it arrives.
    """
    snapshot = cache.update_snapshot()
    # (N, K): a node may be overcommitted by pods that were bound to it before.
    free = np.maximum(snapshot.nodes.allocatable - snapshot.nodes.requested, 0)
    total = free.sum(axis=0).astype(np.float64)
    wasted = np.zeros_like(total)
    pods = 0
    for pod, count in shapes:
        usable = free[_nodes_that_take(frameworks, snapshot, pod)].sum(axis=0)
        requests = requested_amounts(pod)
        asks = np.fromiter(
            (requests.get(name, 0) > 0 for name in snapshot.resources), np.bool_, len(snapshot.resources)
        )[: len(total)]
        wasted += count * np.where(asks, total - usable, total)
        pods += count
    if not pods:
        return {}
    names = list(snapshot.resources)[: len(total)]
    offered = snapshot.nodes.allocatable.sum(axis=0)
    return {
        # Where nothing is free, nothing is wasted.
        name: float(wasted[place] / pods / max(total[place], 1.0))
        for place, name in enumerate(names)
        if offered[place] and name != EPHEMERAL_STORAGE
    }


def _nodes_that_take(frameworks: Mapping[str, Framework], snapshot: Snapshot, pod: Pod) -> Mask:
    """(N,) the nodes that all Filters let pass; none if the pod cannot be judged."""
    takes = np.zeros(len(snapshot.nodes), np.bool_)
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        return takes
    cycle = Cycle(framework, snapshot, pod)
    with suppress(PluginError):  # the scheduler refuses such a pod, too
        if cycle.run_pre_filter_plugins().status.is_success:
            takes[cycle.feasible_rows().node] = True
    return takes


HORIZON: Final = 4.0 * limits.WORKLOAD_SECONDS
"""The most virtual seconds that a workload may take."""

Advance = Callable[[int, int], None]
"""Takes the number of attempts so far, and that of expected pods; 0 if unknown."""


@final
@dataclass(frozen=True, slots=True)
class Played:
    """A play in full."""

    report: SimulationReport
    fates: Sequence[Fate]
    decisions: Sequence[SimulatedDecision]
    """Every attempt, if they were kept."""


def play(
    workload: Workload,
    configuration: Configuration,
    seed: int = 0,
    advance: Advance = lambda attempts, expected: None,
    *,
    rng: random.Random | None = None,
    plugins: Registry | None = None,
    begin: Callable[[Scene], None] = lambda scene: None,
    keeps_decisions: bool = True,
) -> Played:
    """Plays the workload. Equal arguments give equal decisions, whatever the speed of the machine.

    A configuration with extenders is refused, because they answer in real time. Raises WorkloadError if it cannot be
    played, and ConfigErrors.

    Arguments:
        seed: of the workload's chance, and of the scheduler's where nodes are equally good.
        advance: called now and then, to show how far it has come.
        rng: the scheduler's chance; None for one of the seed.
        plugins: the plugins that profiles may name; None for the in-tree ones and those of installed distributions.
        begin: called before anything happens.
    """
    configuration = _without_real_time(workload.configured(configuration))
    if configuration.extenders:
        raise WorkloadError("the configuration has extenders, which are not called in a simulation: leave them out")
    chance, registry = rng or random.Random(seed), plugins or Registry(IN_TREE)

    async def playing() -> Played:
        loop = asyncio.get_running_loop()
        cluster, view = SimulatedCluster(), Cluster()
        observation = Observation(loop.time, lambda attempts: advance(attempts, observation.expected_pods))
        observation.decisions = [] if keeps_decisions else None
        scheduling = assemble_scheduler(configuration, view, cluster, chance, plugins=registry, reporter=observation)
        observing = registry.make_frameworks(configuration, random.Random(seed), live=view.cache)
        observation.fragmentation = lambda: fragmentation(observing, view.cache, _common_shapes(observation))
        cluster.subscribe(scheduling.handlers.changed)
        cluster.subscribe(observation.changed)
        running = asyncio.create_task(scheduling.scheduler.run(), name="scheduler")
        rng_of_workload = random.Random(f"workload {seed}")
        scene = Scene(cluster, scheduling, observation, rng_of_workload, seed, lambda: not running.done())
        try:
            begin(scene)
            await workload.play(scene)
            await scene.settle()
            return Played(_report(workload, scene), list(observation.fates.values()), observation.decisions or ())
        finally:
            gc.unfreeze()
            scheduling.scheduler.stop()
            await asyncio.wait([running])

    try:
        return virtual_time.run(playing(), horizon=HORIZON)
    except virtual_time.DeadlockError as exc:
        raise WorkloadError(f"{workload.name} does not end: {str(exc)[:200]}") from exc
    except StuckError as exc:
        raise WorkloadError(f"{workload.name}: {exc}") from exc


def _without_real_time(configuration: Configuration) -> Configuration:
    """Removes the timeout of the search for devices: a busy machine would decide by it."""

    def without_timeout(config: PluginConfig) -> PluginConfig:
        if not isinstance(config.args, DynamicResourcesArgs) or config.args.filter_timeout is None:
            return config
        return replace(config, args=replace(config.args, filter_timeout=Duration()))

    return replace(
        configuration,
        profiles=tuple(
            replace(profile, plugin_configs=tuple(map(without_timeout, profile.plugin_configs)))
            for profile in configuration.profiles
        ),
    )


def _common_shapes(observation: Observation) -> Sequence[tuple[Pod, int]]:
    return [(observation.shapes[shape][1], count) for shape, count in observation.arrivals.most_common(SHAPES)]


def _report(workload: Workload, scene: Scene) -> SimulationReport:
    observation = scene.observation
    wall, cpu, virtual = observation.elapsed()
    observation.sample(is_last=True)
    fates = observation.fates.values()
    unbound = [fate for fate in fates if fate.bound is None]
    refused = [fate for fate in unbound if not fate.is_gone and not fate.is_gated]
    messages = Counter(fate.message or "not tried" for fate in refused)
    report = SimulationReport(
        workload=workload.name,
        seed=scene.seed,
        nodes=observation.nodes,
        pods=len(observation.fates),
        placed=observation.placed,
        refused=len(refused),
        gated=sum(fate.is_gated and not fate.is_gone for fate in unbound),
        withdrawn=sum(fate.is_gone for fate in unbound),
        preemptions=observation.preemptions,
        evicted=observation.evicted,
        attempts=observation.attempts,
        decisions_per_second=observation.attempts / wall if wall else 0.0,
        cpu_ms_per_pod=cpu * 1000 / max(len(observation.fates), 1),
        wall_seconds=wall,
        simulated_seconds=round(virtual, 6),
        allocated=observation.allocated(),
        utilisation=observation.utilisation(),
        fragmentation=observation.samples[-1].fragmentation,
        waiting=_waiting([fate.bound - fate.arrived for fate in fates if fate.bound is not None]),
        refusals=tuple(
            RefusedPods(message=message, pods=pods) for message, pods in messages.most_common(limits.REPORTED_REFUSALS)
        ),
        samples=tuple(observation.samples),
        phases=tuple(scene.phases),
        assertions=(),
        notes=tuple(scene.notes),
    )
    try:
        assertions = tuple(expectation.judge(report) for expectation in workload.expectations)
    except ExpectationError as exc:
        raise WorkloadError(f"{workload.name}: {exc}") from exc
    return replaced(report, assertions=assertions)


def _waiting(seconds: list[float]) -> Waiting:
    if not seconds:
        return Waiting()
    seconds.sort()
    last = len(seconds) - 1
    p50, p90, p99 = (round(seconds[last * part // 100], 6) for part in (50, 90, 99))
    return Waiting(mean=round(sum(seconds) / len(seconds), 6), p50=p50, p90=p90, p99=p99, longest=round(seconds[-1], 6))
