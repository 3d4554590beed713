"""Random days of a scheduler that asks extenders, which are our verbs: by names or with full nodes, alone or in a chain.

Nodes come and go, pods of all priorities come at once, some are assumed for a minute before they are bound, and budgets
and anti-affinity keep some of them. In the end no node is overcommitted, nobody waits for no reason, and nobody went for
a pod that is not more important. EXTENDER_SEEDS says how many days are told.
"""

import asyncio
import json
import os
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any, Final

import pytest

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.rules.api_resources import EVENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.testing import make_verbs
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.arriving_nodes import ArrivedBody
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import read_extender_args, read_preemption_args
from extender.values.protocol.verb_results import filter_result, preemption_result, prioritize_result
from extender.values.protocol.wire_types import MetaVictims
from tests.kit.extenders import InMemory, an_extender
from tests.kit.objects import budget, node, pod
from tests.kit.pod_specs import away_from
from tests.kit.saying_plugins import pre_binding
from tests.kit.scene import Scene, a_scene

SEEDS: Final = int(os.environ.get("EXTENDER_SEEDS", "5"))
STEPS: Final = 14
CLASSES: Final = {"low": 10, "middle": 50, "high": 100, "higher": 200}
VERBS: Final = {f"{verb}_verb": verb for verb in ("filter", "prioritize", "preempt")}


class Ours:
    """The verbs of an extender, which sees the cluster of a story, as values that JSON has."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.verbs = make_verbs(self.cluster)
        self._decoded = DecodedNodes()

    def changed(self, old: Any, new: Any) -> None:
        self.cluster.changed(old, new)
        self.verbs.changed(old, new)

    async def filter(self, arguments: Any) -> Any:
        args = await read_extender_args(ArrivedBody([json.dumps(arguments).encode()]), self._decoded)
        result = await self.verbs.filter(args.pod, node_names=args.names, nodes=args.nodes)
        parts = filter_result(args, result.kept, result.failed, result.failed_and_unresolvable)
        return json.loads(b"".join(parts))

    async def prioritize(self, arguments: Any) -> Any:
        args = await read_extender_args(ArrivedBody([json.dumps(arguments).encode()]), self._decoded)
        names = args.names or ()
        scores = await self.verbs.prioritize(args.pod, node_names=names, nodes=args.nodes)
        return json.loads(prioritize_result(names, scores))

    async def preempt(self, arguments: Any) -> Any:
        args = read_preemption_args(json.dumps(arguments).encode())
        return json.loads(preemption_result(await self.verbs.preempt(args.pod, args.candidates, victim=args.victim)))


async def _takes_a_minute(_: Pod) -> fwk.Status:
    await asyncio.sleep(60)
    return fwk.SUCCESS


ASSUMED_FOR_A_MINUTE: Final = pre_binding(_takes_a_minute, concerns=lambda pod: pod.name.startswith("slow"))


def a_pod(chance: random.Random, name: str) -> Object:
    labels = {"app": chance.choice("abcd")}
    apart: Any = {"affinity": away_from(app=labels["app"])} if chance.random() < 0.2 else {}
    return pod(name, str(chance.randint(1, 3)), chance.choice([*CLASSES]), labels=labels, **apart)


async def a_day(scene: Scene, chance: random.Random) -> None:
    count = 0
    await scene.has(budget("kept", {"matchLabels": {"app": "a"}}, maxUnavailable=chance.randint(0, 1)))
    for step in range(STEPS):
        match chance.choice(("pods", "pods", "pods", "node", "no node", "goes", "time")):
            case "pods":
                for _ in range(chance.randint(1, 4)):
                    count += 1
                    await scene.has(a_pod(chance, f"{chance.choice(('slow', 'p'))}{count}"), within=0)
            case "node":
                await scene.has(node(f"m{step}", str(chance.randint(2, 4))), within=0)
            case "no node" if len(nodes := scene.api.list(NODES)) > 2:
                await scene.loses(chance.choice(nodes)["metadata"]["name"], resource=NODES, within=0)
            case "goes" if scene.pods():
                await scene.loses(chance.choice(sorted(scene.pods())), within=0)
        await scene.passes(chance.choice((0.05, 1, 20)))
    await scene.passes(1200)


def cpu(item: Object) -> Fraction:
    text = item["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return Fraction(text[:-1]) / 1000 if text.endswith("m") else Fraction(text)


def overcommitted(scene: Scene) -> list[str]:
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for obj in scene.api.list(PODS, "default"):
        sums[obj["spec"].get("nodeName", "")] += cpu(obj)
    offered = {obj["metadata"]["name"]: Fraction(obj["status"]["allocatable"]["cpu"]) for obj in scene.api.list(NODES)}
    return [name for name, offer in offered.items() if sums[name] > offer]


async def waiting_for_no_reason(scene: Scene) -> list[tuple[str, str]]:
    """Pods without a node that fit on one, or would if others went, by verbs that know only the present."""
    cluster = Cluster()
    kinds: Any = ((NODES, Node), (PODS, Pod), (POD_DISRUPTION_BUDGETS, PodDisruptionBudget))
    for resource, kind in kinds:
        for obj in scene.api.list(resource):
            cluster.changed(None, convert(kind, obj))
    verbs, pairs = make_verbs(cluster), []
    names = [*cluster.nodes]
    for waiting in [*cluster.pending.values()]:
        places = (await verbs.filter(waiting, node_names=names)).kept
        helps = await verbs.preempt(waiting, {name: MetaVictims() for name in names})
        pairs += [(waiting.name, names[place]) for place in places] + [(waiting.name, name) for name in helps]
    return pairs


def unjust(scene: Scene, priorities: dict[str, int]) -> list[str]:
    """Pods that went for one that is not more important."""
    return [
        event["message"]
        for event in scene.api.list(EVENTS, "default")
        if event["reason"] == "Preempted"
        and priorities[event["message"].split()[3]] <= priorities[event["involvedObject"]["uid"]]
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_random_day_with_extenders_ends_well(seed: int) -> None:
    chance = random.Random(seed)
    number, in_full = chance.randint(1, 2), chance.random() < 0.6
    ours = [Ours() for _ in range(number)]
    says: Any = {f"e{key}_{verb}": getattr(engine, verb) for key, engine in enumerate(ours) for verb in VERBS.values()}
    memory = InMemory(**says)
    chain: Any = [an_extender(f"e{key}", node_cache_capable=not in_full, weight=1, **VERBS) for key in range(number)]
    setting = {"plugins": [ASSUMED_FOR_A_MINUTE], "extenders": chain, "transports": memory.transport, "seed": seed}
    async with a_scene(**setting) as scene:
        priorities: dict[str, int] = {}
        scene.told.extend(engine.changed for engine in ours)
        scene.told.append(lambda _, new: priorities.update({new.uid: new.priority}) if isinstance(new, Pod) else None)
        await scene.has(*(node(f"n{key}", str(chance.randint(2, 4))) for key in range(3)))
        await a_day(scene, chance)

        assert overcommitted(scene) == []
        assert await waiting_for_no_reason(scene) == []
        assert unjust(scene, priorities) == []
        assert all(engine.cluster.cache.assumed_pods == frozenset() for engine in ours)
