"""A scheduler and an answer about its cluster choose the same node to preempt on, whatever ties."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from extender.answers.types import Placement, WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.rules.api_resources import NODES, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from tests.kit.objects import PRIORITIES, budget, node, pod
from tests.kit.scene import Scene, a_scene

NAMES = tuple(priority_class["metadata"]["name"] for priority_class in PRIORITIES[:2])


def a_full_cluster(chance: random.Random) -> list[Object]:
    """More than 200 nodes in up to three zones, each with pods of low priority that take it up."""
    objects: list[Object] = []
    zones = chance.randint(1, 3)
    for number in chance.sample(range(1000), chance.randint(205, 260)):
        name, zone = f"n{number}", {"topology.kubernetes.io/zone": f"z{chance.randrange(zones)}"}
        objects.append(node(name, labels=zone))
        objects += [
            pod(f"{name}-{place}", "1", chance.choice(NAMES), nodeName=name, labels={"app": chance.choice("ab")})
            for place in range(2)
        ]
    for app in "ab"[: chance.randrange(3)]:
        objects.append(budget(app, {"matchLabels": {"app": app}}, minAvailable=1))
    return objects


def in_a_file(scene: Scene, chance: random.Random) -> Cluster:
    """The same cluster as another process reads it: with its nodes in another order."""
    objects: dict[str, list[Object]] = {
        "nodes": scene.api.list(NODES),
        "pods": scene.api.list(PODS, "default"),
        "pdbs": scene.api.list(POD_DISRUPTION_BUDGETS, "default"),
        "priorityClasses": list(PRIORITIES),
    }
    chance.shuffle(objects["nodes"])
    return Cluster.of(ClusterState.decode(objects))


def placement_of(cluster: Cluster, new_pod: Object, configuration: Configuration | None = None) -> Placement:
    question = WhatIfRequest(create=[new_pod])
    with ThreadPoolExecutor() as pool:  # a question has an event loop of its own
        answer = pool.submit(what_if, cluster, configuration or Configuration(), question, TrialRegistry).result()
    (placement,) = answer.placements
    return placement


async def choices(seed: int) -> tuple[str, str, set[str]]:
    """The node that an answer names for a pod that does not fit, the one that the scheduler then nominates it to, and
    the pods that it evicts but the answer does not name, or the other way round.
    """
    chance = random.Random(seed)
    new_pod = pod("wanted", chance.choice(("1", "2")), "high")
    async with a_scene(*a_full_cluster(chance), seed=seed, kubelet=False, controllers=False) as scene:
        before = scene.pods()
        answer = placement_of(scene.alone.world.cluster if seed % 2 else in_a_file(scene, chance), new_pod)
        assert answer.preemption is not None
        assert answer.preemption.num_candidates > 200
        await scene.has(new_pod, within=1)
        evicted = before - (scene.pods() - scene.leaving())
        return answer.node, scene.nominated_node_of("wanted"), {victim.pod.name for victim in answer.evicts} ^ evicted


async def agree(seeds: range) -> None:
    for seed in seeds:
        answered, nominated, difference = await choices(seed)
        assert (seed, answered, difference) == (seed, nominated, set())


async def test_an_answer_names_the_node_that_the_scheduler_takes() -> None:
    await agree(range(4))


@pytest.mark.slow
async def test_an_answer_names_the_node_that_the_scheduler_takes_in_500_clusters() -> None:
    await agree(range(500))


@pytest.mark.parametrize(
    ("arguments", "num_candidates"),
    [
        pytest.param("{}", 9, id="none"),
        pytest.param("{minCandidateNodesPercentage: 50, minCandidateNodesAbsolute: 0}", 4, id="a share"),
        pytest.param("{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 2}", 2, id="a number"),
        pytest.param("{minCandidateNodesPercentage: 10}", 9, id="a share, and a hundred at least"),
    ],
)
async def test_an_answer_obeys_the_number_of_candidates_that_is_set(arguments: str, num_candidates: int) -> None:
    configuration = load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{pluginConfig: [{{name: DefaultPreemption, args: {arguments}}}]}}]\n"
    )
    full = [obj for name in "abcdefghi" for obj in (node(name), pod(name, "2", "low", nodeName=name))]
    async with a_scene(*full, kubelet=False) as scene:
        answer = placement_of(scene.alone.world.cluster, pod("wanted", "2", "high"), configuration)

        assert answer.preemption is not None
        assert answer.preemption.num_candidates == num_candidates
