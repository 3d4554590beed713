"""Ordinary churn: pods come, preempt and go, nodes are cordoned and come back, and nobody is taken for a loop of
preemptions.

CHURN_SEEDS says how many random stories are told: `make churn` tells 1,000 of them.
"""

import os
import random
from typing import Final

import pytest

from extender.rules.api_resources import EVENTS, NODES
from tests.kit.objects import node, pod
from tests.kit.scene import Scene, a_scene

SEEDS: Final = int(os.environ.get("CHURN_SEEDS", "20"))
AT_ONCE: Final = 5
"""The stories of one test."""
STEPS: Final = 25
PAUSED: Final = "wasted preemptions in a row"
"""What the loop guard says of a preemptor that it pauses or stops."""


async def churn(scene: Scene, chance: random.Random) -> None:
    """Some pods come, at times many at once, some go, and nodes are cordoned for a while."""
    count = 0
    for _ in range(STEPS):
        match chance.choice(("comes", "comes", "comes", "rush", "goes", "goes", "cordon", "time")):
            case "comes":
                count += 1
                await scene.has(
                    pod(f"p{count}", str(chance.randint(1, 3)), chance.choice(("low", "middle", "high", "higher"))),
                    within=0,
                )
            case "rush":
                for _ in range(chance.randint(2, 6)):
                    count += 1
                    await scene.has(
                        pod(f"p{count}", str(chance.randint(1, 2)), chance.choice(("middle", "high"))), within=0
                    )
            case "goes":
                names = sorted(scene.pods() - scene.leaving())
                if names:
                    await scene.loses(chance.choice(names), within=0, at_once=chance.random() < 0.3)
            case "cordon":
                cordoned = chance.choice(scene.api.list(NODES))
                cordoned["spec"]["unschedulable"] = not cordoned["spec"].get("unschedulable", False)
                scene.api.update(NODES, "", cordoned["metadata"]["name"], cordoned)
        await scene.passes(chance.choice((0.01, 0.5, 3.0, 20.0)))


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(AT_ONCE, SEEDS, AT_ONCE))]
)
async def test_ordinary_churn_raises_no_alarm(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SEEDS)):
        chance = random.Random(seed)
        nodes = [node(f"n{number}", str(chance.randint(2, 6))) for number in range(chance.randint(1, 4))]
        async with a_scene(*nodes, seed=seed) as scene:
            await churn(scene, chance)
            await scene.passes(60)
            notes = [event["message"] for event in scene.api.list(EVENTS, "default")]
            assert not [note for note in notes if PAUSED in note], seed
