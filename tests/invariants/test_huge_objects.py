"""Pods as large as are considered, and nodes as large as an API server lets them be. They cost their own attempts
something, and nobody else a place.
"""

import asyncio
from typing import Any

import pytest

from extender.rules.api_resources import NODES, PODS, Object
from tests.invariants.oracle import settles
from tests.invariants.worlds import World, a_world


def containers(count: int, **container: Any) -> list[Object]:
    return [
        {"name": f"c{number}", "image": "web:1", "resources": {"requests": {"cpu": "1m"}}, **container}
        for number in range(count)
    ]


def affinity(terms: int, kind: str) -> Object:
    """Nobody has what they ask for; the pod has a node label each besides."""
    expressions = [
        {"matchExpressions": [{"key": f"k{number}", "operator": "In", "values": ["v", "w"]}]} for number in range(terms)
    ]
    if kind == "node":
        node_terms = [*expressions, {"matchExpressions": [{"key": "name", "operator": "In", "values": ["n"]}]}]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node_terms}}}
    selectors = [{"labelSelector": expression, "topologyKey": "name"} for expression in expressions]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selectors}}


HUGE: dict[str, dict[str, Any]] = {
    "a mebibyte of annotations": {"metadata": {"annotations": {f"k{number}": "x" * 1000 for number in range(250)}}},
    "four thousand labels": {"labels": {f"k{number}": "v" for number in range(4_000)}},
    "six hundred terms of node affinity": {"affinity": affinity(600, "node")},
    "four hundred terms of pod anti-affinity": {"affinity": affinity(400, "pod")},
    "eight hundred containers": {"containers": containers(800)},
    "six hundred containers with as many ports": {
        "containers": [
            {"name": f"c{number}", "image": "i", "ports": [{"containerPort": 80, "hostPort": 1000 + number}]}
            for number in range(600)
        ]
    },
}


@pytest.mark.parametrize("what", HUGE)
async def test_a_huge_pod_is_bound_like_any_other_and_others_go_on_between(what: str) -> None:
    """No more attempts than for a small pod, and others that come at the same time are bound at the same time."""
    async with a_world() as world:
        for name in ("n", "m"):
            world.new_node(name, "8")
        await asyncio.sleep(5)
        world.new_pod("small")
        store_pod(world, "huge", **HUGE[what])
        world.new_pod("smaller", "100m")
        await settles(world, but_first=5, seconds=10)

        assert sorted(write.name for write in world.monitor.done("binding")) == ["huge", "small", "smaller"]
        assert world.life.alone.world.queue.scheduling_cycle == 3


@pytest.mark.parametrize(
    "what", ["four thousand labels", "six hundred terms of node affinity", "six hundred containers with as many ports"]
)
async def test_a_huge_pod_that_fits_nowhere_is_not_tried_more_often_than_others(what: str) -> None:
    async with a_world() as world:
        world.new_node("n", "2")
        await asyncio.sleep(5)
        store_pod(world, "huge", **{**HUGE[what], "nodeSelector": {"name": "nowhere"}})
        for number in range(20):
            world.new_pod(f"p{number}", "50m")
        await asyncio.sleep(60)

        assert len(world.monitor.done("binding")) == 20
        assert world.life.alone.world.queue.scheduling_cycle <= 20 + 4


async def test_nodes_with_thousands_of_labels_and_taints_are_nodes() -> None:
    async with a_world() as world:
        labels = {f"k{number}": f"v{number}" for number in range(10_000)}
        taints = [{"key": f"k{number}", "effect": "PreferNoSchedule"} for number in range(3000)]
        labelled_node = world.new_node("n", taints=taints)
        labelled_node["metadata"]["labels"] |= labels
        world.registry.store.put(NODES, "", "n", labelled_node)
        world.new_pod("web")
        await settles(world, but_first=5, seconds=10)

        assert world.node_of("web") == "n"


def store_pod(world: World, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
    """The pod is there although an API server might have said that it is too large."""
    metadata = {"labels": labels or {}, **spec.pop("metadata", {})}
    pod = world.new_pod(name, "100m", schedulingGates=[{"name": "wait"}])
    pod["metadata"] |= metadata
    pod["spec"] |= {**spec, "schedulingGates": []}
    world.registry.store.put(PODS, "default", name, pod)
