"""A pod group of 100 on 5,000 nodes: the decision with all members assumed, and the search for victims with 30 pods a
node.
"""

import asyncio
import statistics
import time

from bench.cluster import make_cache, make_full_cache, make_pod
from extender.assembly.scheduling import Scheduling
from extender.engine.cache.cluster import Cluster
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.scheduler.pod_group_cycle import pod_group_cycle
from extender.engine.scheduler.pod_group_preemption import find_victims
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod
from tests.kit.told_groups import ToldGroups

KEY = ("default", "g")


def run(num_nodes: int = 5000, size: int = 100, rounds: int = 5) -> None:
    """Print a line for each."""
    print(f"a pod group of {size} on {num_nodes:,} nodes, milliseconds of CPU")
    asyncio.run(_run(num_nodes, size, rounds))


async def _run(num_nodes: int, size: int, rounds: int) -> None:
    groups = ToldGroups(cluster=Cluster(make_cache(num_nodes)), seed=1)
    _, pods = _group(groups, size, "100m")
    took = [await _decided(groups.alone, pods) for _ in range(rounds)]
    print(f"  decided, all assumed: median {statistics.median(took):.1f}", flush=True)
    groups = ToldGroups(cluster=Cluster(make_full_cache(num_nodes)), seed=1)
    group, pods = _group(groups, size, "4")
    victims, took = 0, []
    for _ in range(rounds):
        trial = groups.trial(group, pods)
        began = time.process_time()
        outcome = await find_victims(trial, group)
        took.append((time.process_time() - began) * 1e3)
        victims = 0 if outcome.candidate is None else len(outcome.candidate.victims)
    print(f"  victims among 30 pods a node: {victims}, median {statistics.median(took):.1f}", flush=True)


def _group(groups: ToldGroups, size: int, cpu: str) -> tuple[PodGroup, list[Pod]]:
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}, "priority": 1000}
    group = convert(PodGroup, {"metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": spec})
    member: dict[str, object] = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [make_pod(f"g-{number}", cpu=cpu, memory="1Gi", priority=1000, spec=member) for number in range(size)]
    for obj in (group, *pods):
        groups.cluster.changed(None, obj)
    groups.cluster.cache.update_snapshot()
    return group, pods


async def _decided(scheduling: Scheduling, pods: list[Pod]) -> float:
    """Returns the milliseconds of CPU that the decision took."""
    world, infos = scheduling.world, [QueuedPodInfo(pod, 0.0) for pod in pods]
    began = time.process_time()
    decision = await pod_group_cycle(
        world, SchedulingAlgorithm(), scheduling.frameworks["default-scheduler"], KEY, infos, 0
    )
    took = (time.process_time() - began) * 1e3
    assert decision.result.status.is_success
    for pod in pods:
        world.cluster.forget(pod.uid)
        world.waiting_pods.remove(pod.uid)
    return took
