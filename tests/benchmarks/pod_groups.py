"""A pod group of 100 on 5,000 nodes: the decision with all members assumed, and the search for victims with 30 pods a
node.
"""

import asyncio
import random
import statistics
import time

from extender.assembly.scheduling import Scheduling, assemble_scheduler
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.runtime.registry import Registry
from extender.engine.scheduler.pod_group_cycle import pod_group_cycle
from extender.engine.scheduler.pod_group_preemption import find_victims
from extender.engine.scheduler.pod_group_trial import PodGroupTrial
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.values.config import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from extender.values.objects.pod_groups import PodGroup
from tests.benchmarks.cluster import make_cache, make_full_cache, make_pod
from tests.kit.writes import RecordedWrites

GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
}
NO_PROFILES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
KEY = ("default", "g")


def run(num_nodes: int = 5000, size: int = 100, rounds: int = 5) -> None:
    """Print a line for each."""
    print(f"a pod group of {size} on {num_nodes:,} nodes, milliseconds of CPU")
    asyncio.run(_run(num_nodes, size, rounds))


async def _run(num_nodes: int, size: int, rounds: int) -> None:
    scheduling = _scheduling(Cluster(make_cache(num_nodes)))
    group, pods = _group(scheduling, size, "100m")
    took = [await _decided(scheduling, pods) for _ in range(rounds)]
    print(f"  decided, all assumed: median {statistics.median(took):.1f}", flush=True)
    scheduling = _scheduling(Cluster(make_full_cache(num_nodes)))
    group, pods = _group(scheduling, size, "4")
    victims, took = 0, []
    for _ in range(rounds):
        trial = _trial(scheduling, group, pods)
        began = time.process_time()
        found = await find_victims(trial, group)
        took.append((time.process_time() - began) * 1e3)
        victims = 0 if found.candidate is None else len(found.candidate.victims)
    print(f"  victims among 30 pods a node: {victims}, median {statistics.median(took):.1f}", flush=True)


def _scheduling(cluster: Cluster) -> Scheduling:
    configuration = load(NO_PROFILES, FeatureGates.of(GATES))
    writes = RecordedWrites(cluster.cache)
    return assemble_scheduler(configuration, cluster, writes, random.Random(1), plugins=Registry(IN_TREE, ()))


def _group(scheduling: Scheduling, size: int, cpu: str) -> tuple[PodGroup, list[Pod]]:
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}, "priority": 1000}
    group = convert(PodGroup, {"metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": spec})
    member: dict[str, object] = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [make_pod(f"g-{number}", cpu=cpu, memory="1Gi", priority=1000, spec=member) for number in range(size)]
    for each in (group, *pods):
        scheduling.world.cluster.changed(None, each)
    scheduling.world.cluster.cache.update_snapshot()
    return group, pods


def _trial(scheduling: Scheduling, group: PodGroup, pods: list[Pod]) -> PodGroupTrial:
    return PodGroupTrial(
        scheduling.world, SchedulingAlgorithm(), scheduling.frameworks["default-scheduler"], KEY, group, pods
    )


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
