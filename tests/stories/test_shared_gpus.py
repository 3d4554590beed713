"""GPUs that are shared by memory and cores, by the plugin of `examples/shared-gpu`: alone, beside another scheduler, and as the
extender of kube-scheduler.

Its users asked for years why preemption does not work there: Project-HAMi #1494, #1878, kubernetes #139270.
"""

import random
from collections import defaultdict
from typing import Any

import pytest

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.rules.api_resources import PODS, Object
from extender.values.config.loading import load
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.verbs import Verbs
from tests.kit.objects import budget, node, pod
from tests.kit.scene import Scene, a_scene
from tests.kit.shared_gpu import ARGUMENTS, EXAMPLE, cards_of, limits, shared_gpu, with_cards

NODES = [with_cards(node(f"n{number}", "16"), 4) for number in range(4)]
KEPT = budget("kept", {"matchLabels": {"kept": "yes"}}, maxUnavailable=0)


def gpu_pod(name: str, priority: str = "", *, scheduler: str = "default-scheduler", **amounts: int) -> Object:
    return pod(name, priority=priority, container=limits(**amounts), schedulerName=scheduler)


def by_card(scene: Scene) -> dict[tuple[str, int], set[str]]:
    """(node, card) -> the pods on it."""
    pods_by_card = defaultdict(set)
    for obj in scene.api.list(PODS, "default"):
        for card in cards_of(obj):
            pods_by_card[obj["spec"]["nodeName"], card].add(obj["metadata"]["name"])
    return pods_by_card


async def protects_all_but(scene: Scene, victims: set[str]) -> None:
    for name in scene.pods() - victims:
        await scene.changes(name, lambda obj: obj["metadata"].setdefault("labels", {}).update(kept="yes"), within=0)
    await scene.has(KEPT)


@pytest.mark.parametrize("scheduler", ["default-scheduler", "second"])
async def test_an_urgent_pod_frees_one_card(scheduler: str) -> None:
    """Alone, and as a second scheduler for the pods that name it."""
    async with a_scene(*NODES, plugins=[shared_gpu.SharedGpu], profiles=[scheduler], arguments=ARGUMENTS) as scene:
        if scheduler == "second":
            await scene.has(pod("other", schedulerName="first"))
            scene.bind("other", "n2")
        await scene.has(*(gpu_pod(f"low-{number}", "low", scheduler=scheduler, memory=8192) for number in range(32)))
        full = by_card(scene)
        assert sorted(map(len, full.values())) == [2] * 16, "all cards are full"
        await protects_all_but(scene, full["n2", 3])
        await scene.has(gpu_pod("urgent", "high", scheduler=scheduler, memory=10240), within=60)

        assert scene.node_of("urgent") == "n2"
        assert cards_of(scene.pod("urgent")) == {3: (10240, 0)}
        after = by_card(scene)
        assert {place: pods for place, pods in after.items() if pods != full[place]} == {("n2", 3): {"urgent"}}


async def test_room_of_a_preemptor_is_left_on_its_card() -> None:
    """While the victims say goodbye, a pod of lower priority that fits beside takes another card."""
    async with a_scene(with_cards(node("n", "16"), 2), plugins=[shared_gpu.SharedGpu], arguments=ARGUMENTS) as scene:
        for name, memory in (("one", 12288), ("two", 8192)):
            await scene.has(pod(name, priority="low", container=limits(memory), stays=True))
        await scene.has(gpu_pod("urgent", "high", memory=16384))
        going = scene.leaving()
        await scene.has(gpu_pod("small", "middle", memory=4096))
        for name in going:
            await scene.lets_go(name, within=60)

        assert scene.node_of("urgent") == scene.node_of("small") == "n"
        assert set(cards_of(scene.pod("urgent"))) & set(cards_of(scene.pod("small"))) == set()
        assert scene.pods() - going == {"urgent", "small"} | ({"one", "two"} - going)


class Caller:
    """kube-scheduler, as far as it asks an extender. With `full`, it sends nodes, else their names."""

    def __init__(self, scene: Scene, *, full: bool) -> None:
        world = scene.alone.world
        configuration = load((EXAMPLE / "extender-config.yaml").read_text())
        registry = Registry(IN_TREE, (), also={"SharedGpu": shared_gpu.SharedGpu})
        frameworks = registry.make_frameworks(configuration, random.Random(1))
        self.scene, self.cluster = scene, world.cluster
        self.verbs = Verbs(frameworks, world.cluster, dispatcher=world.dispatcher)
        scene.told.append(self.verbs.changed)
        nodes = [convert(Node, obj) for obj in NODES]
        self.asked: Any = {"nodes": nodes} if full else {"node_names": [node.metadata.name for node in nodes]}

    def pod_named(self, name: str) -> Pod:
        return convert(Pod, self.scene.pod(name))

    async def binds(self, name: str) -> dict[str, str]:
        """Binds the pod to the best node; why not, where there is none."""
        pod = self.pod_named(name)
        result = await self.verbs.filter(pod, **self.asked)
        if not result.kept:
            return result.failed
        scores = await self.verbs.prioritize(pod, **self.asked)
        best = max(result.kept, key=lambda place: scores[place])
        await self.verbs.bind(name, "default", pod.uid, f"n{best}")
        await self.scene.passes(0.1)
        return {}


@pytest.mark.parametrize("full", [False, True], ids=["by names", "with full nodes"])
async def test_an_extender_frees_one_card(full: bool) -> None:
    """A release of kube-scheduler that asks about nodes which only the extender refuses names no victims there."""
    async with a_scene(*NODES, by_hand=True) as scene:
        caller = Caller(scene, full=full)
        await scene.has(*(gpu_pod(f"low-{number}", "low", memory=8192) for number in range(32)))
        for number in range(32):
            assert await caller.binds(f"low-{number}") == {}
        cards = by_card(scene)
        assert sorted(map(len, cards.values())) == [2] * 16, "all cards are full"
        await protects_all_but(scene, cards["n2", 3])
        await scene.has(gpu_pod("urgent", "high", memory=10240))
        refused = await caller.binds("urgent")
        chosen = await caller.verbs.preempt(caller.pod_named("urgent"), {name: MetaVictims([], 0) for name in refused})
        names = {scene.pod(name)["metadata"]["uid"]: name for name in scene.pods()}
        victims = {node: {names[victim.uid] for victim in node_victims.pods} for node, node_victims in chosen.items()}
        for name in victims["n2"]:
            await scene.loses(name, at_once=True)
        bound = await caller.binds("urgent")

        assert refused == {f"n{number}": shared_gpu.NO_CARD for number in range(4)}
        assert victims["n2"] == cards["n2", 3]
        assert [name for name, node_victims in chosen.items() if not node_victims.num_pdb_violations] == ["n2"]
        assert bound == {}
        assert (scene.node_of("urgent"), cards_of(scene.pod("urgent"))) == ("n2", {3: (10240, 0)})
