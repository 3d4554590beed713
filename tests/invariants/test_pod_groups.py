"""Nothing is bound of a gang that does not reach its least number, whatever fails."""

import random
from collections import Counter
from typing import Final

import httpx
import pytest
from hypothesis import given, settings, strategies as st

from extender.rules.api_resources import PODS, Object
from extender.testing import virtual_time
from tests.kit.objects import GROUP_GATES, ONLY_GANGS, members, node, pod_group, refusal
from tests.kit.scene import Scene, a_scene

REFUSALS: Final = {403: "Forbidden", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable", 422: "Invalid"}
FAULTS: Final = 12
"""Writes that fail, at most: after that the API server is well."""


class Trouble:
    """Fails some writes, and looks at every first binding of a gang.

    Attributes:
        scene: set once there is one.
        begun: gang -> how many of its pods had a place in the scheduler's cache when the first binding was sent.
        broken: gangs of which a binding was refused; what becomes of them depends on who takes the room meanwhile.
    """

    def __init__(self, chance: random.Random) -> None:
        self.scene: Scene | None = None
        self.begun: dict[str, int] = {}
        self.broken: set[str] = set()
        self._chance = chance
        self._left = FAULTS

    def __call__(self, request: httpx.Request) -> httpx.Response | None:
        *_, name, subresource = request.url.path.split("/")
        if subresource == "binding" and self.scene is not None and name[0] not in self.begun:
            cache = self.scene.alone.world.cluster.cache
            self.begun[name[0]] = sum(cache.pod(uid) is not None for uid in cache.group_members(("default", name[0])))
        if request.method == "GET" or not self._left or self._chance.random() > 0.3:
            return None
        self._left -= 1
        if subresource == "binding":
            self.broken.add(name[0])
        code, reason = self._chance.choice([*REFUSALS.items()])
        return refusal(code, reason, "there is trouble")


def bound(scene: Scene) -> Counter[str]:
    """Group -> the number of its pods that have a node."""
    pods = [pod for pod in scene.api.list(PODS, "default") if pod["spec"].get("nodeName")]
    return Counter(pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods if "schedulingGroup" in pod["spec"])


def use(scene: Scene) -> Counter[str]:
    """Node -> the processors that its pods request, which is one each."""
    return Counter(pod["spec"]["nodeName"] for pod in scene.api.list(PODS, "default") if pod["spec"].get("nodeName"))


async def _play(seed: int) -> None:
    chance = random.Random(seed)
    capacity = {f"n{number}": chance.randint(1, 4) for number in range(chance.randint(1, 4))}
    nodes = [node(name, str(cpu)) for name, cpu in capacity.items()]
    gangs = {f"{letter}": chance.randint(1, 5) for letter in "ghk"[: chance.randint(1, 3)]}
    pods: list[Object] = [one for name, size in gangs.items() for one in members(size + chance.randint(0, 1), name)]
    chance.shuffle(pods)
    gates = chance.choice([GROUP_GATES, ONLY_GANGS])
    trouble = Trouble(chance)
    async with a_scene(*nodes, interfere=trouble, features=gates, seed=seed) as scene:
        trouble.scene = scene
        await scene.has(*(pod_group(name, size) for name, size in gangs.items()), *pods, within=0.0)
        for _ in range(4):
            await scene.passes(60.0)
            if chance.random() < 0.3:
                await scene.has(node(f"m{chance.random()}", "1"), within=0.0)
        counts = bound(scene)
        assert {name: placed for name, placed in trouble.begun.items() if placed < gangs[name]} == {}
        assert {
            name: counts[name] for name, size in gangs.items() if 0 < counts[name] < size and name not in trouble.broken
        } == {}
        assert {name: count for name, count in use(scene).items() if count > capacity.get(name, 1)} == {}


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**9))
def test_a_gang_runs_whole_or_not_at_all_though_writes_fail(seed: int) -> None:
    virtual_time.run(_play(seed))
