"""The scheduler of a simulation is the real one."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from extender.rules.api_resources import PODS, Object
from extender.values.concurrency import virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.workload import Workload
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene.followed import a_followed_cluster


class FirstOfAll(random.Random):
    """Chooses the first of equally good nodes, however much chance others have used."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, k: int, /) -> int:
        return 0


class Given(Workload):
    """Objects that are there at once, pods that come later, and where the pods are in the end."""

    name = "given"

    def __init__(self, objects: Sequence[Object], later: Sequence[Object] = ()) -> None:
        self.objects = objects
        self.later = later
        self.nodes_of_pods: dict[str, str] = {}

    async def play(self, scene: Scene) -> None:
        scene.put(*(convert(Node, obj) for obj in self.objects if obj["kind"] == "Node"))
        scene.create_pods(convert(Pod, obj) for obj in self.objects if obj["kind"] == "Pod")
        for number, obj in enumerate(self.later, start=1):
            await scene.sleep_until(number * LATER)
            scene.create_pods([convert(Pod, obj)])
        await scene.settle()
        self.nodes_of_pods = {pod.name: pod.spec.node_name for pod in scene.cluster.all_of(Pod)}


def policy(number: int) -> str:
    return "PreemptLowerPriority" if number >= 60 else "Never"


def mixed(number: int) -> Object:
    """Pods of several kinds, of which the last thirty preempt others.

    No two have the same priority: of equal victims the one with the smaller UID stays, and UIDs are drawn.
    """
    app = {"matchLabels": {"app": f"app-{number % 5}"}}
    apart = {"topologyKey": "host", "labelSelector": app}
    kinds: list[dict[str, Any]] = [
        {},
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": app}
            ]
        },
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}},
        {"nodeSelector": {"zone": f"zone-{number % 3}"}},
    ]
    spec = {"preemptionPolicy": policy(number), "terminationGracePeriodSeconds": 0, **kinds[number % 4]}
    labels = {"app": f"app-{number % 5}"}
    pod_object = pod(f"pod-{number:03}", f"{400 + number * 7 % 400}m", f"class-{number}", labels=labels, **spec)
    pod_object["spec"]["priority"] = number
    return pod_object


def labelled(number: int) -> Object:
    node_object = node(f"node-{number:02}", cpu=str(2 + number % 3))
    node_object["metadata"]["labels"] = {"zone": f"zone-{number % 3}", "host": f"node-{number:02}"}
    return node_object


OBJECTS = [*(labelled(number) for number in range(12)), *(mixed(number) for number in range(60))]
CLASSES = [priority_class(f"class-{number}", number, preemptionPolicy=policy(number)) for number in range(90)]
URGENT = [mixed(number) for number in range(60, 90)]
LATER = 60.0
"""Seconds between two of them. How many decisions come before the victims of one are gone depends on how long writes
take.
"""


def standalone(objects: Sequence[Object], later: Sequence[Object]) -> dict[str, str]:
    """Where the pods are when the scheduler of the service has followed a cluster for ten minutes."""

    async def story() -> dict[str, str]:
        async with a_followed_cluster(*CLASSES, *objects, kubelet=False, rng=FirstOfAll()) as (cluster, _):
            for obj in later:
                await asyncio.sleep(LATER)
                cluster.create(obj)
            await asyncio.sleep(600)
            return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in cluster.api.list(PODS)}

    return virtual_time.run(story())


def test_a_simulation_places_pods_where_the_service_places_them() -> None:
    workload = Given(OBJECTS, URGENT)

    report = play(workload, Configuration(), rng=FirstOfAll()).report

    assert workload.nodes_of_pods == standalone(OBJECTS, URGENT)
    assert report.refused
    assert report.preemptions
    assert report.evicted


def test_equal_seeds_give_equal_placements() -> None:
    def placements(seed: int) -> dict[str, str]:
        workload = Given(OBJECTS, URGENT)
        play(workload, Configuration(), seed)
        return workload.nodes_of_pods

    assert placements(3) == placements(3)
    assert placements(3) != placements(4)
