"""Taints say what the node's spec and conditions say; those of others are left alone."""

from functools import partial
from typing import Any

from extender.rules.api_resources import NODES, Object
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import (
    add_node,
    change,
    condition_of,
    running_controllers,
    settle,
)

MINE = {"key": "example.com/mine", "effect": "NoSchedule"}


def taints(registry: ObjectRegistry) -> list[tuple[str, str]]:
    node_taints = registry.get(NODES, "", "a")["spec"].get("taints", [])
    return [(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in node_taints]


def set_condition(registry: ObjectRegistry, kind: str, status: str) -> None:
    def edit(node: Object) -> None:
        conditions = [condition for condition in node["status"]["conditions"] if condition["type"] != kind]
        node["status"]["conditions"] = [*conditions, {"type": kind, "status": status}]

    change(registry, NODES, "a", edit, subresource="status")


def cordon(node: dict[str, Any], value: bool) -> None:
    node["spec"]["unschedulable"] = value


async def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    async with running_controllers() as registry:
        add_node(registry, "a", spec={"taints": [MINE]})
        history: list[Any] = []
        for value in (True, False):
            change(registry, NODES, "a", partial(cordon, value=value))
            await settle()
            history.append(taints(registry))

    assert history == [
        [("example.com/mine", "NoSchedule"), ("unschedulable", "NoSchedule")],
        [("example.com/mine", "NoSchedule")],
    ]


@cases(
    "kind, status, expected",
    ("not ready", "Ready", "False", [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
    ("unreachable", "Ready", "Unknown", [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
    ("short of memory", "MemoryPressure", "True", [("memory-pressure", "NoSchedule")]),
    ("short of disk", "DiskPressure", "True", [("disk-pressure", "NoSchedule")]),
    ("short of process ids", "PIDPressure", "True", [("pid-pressure", "NoSchedule")]),
    ("without a network", "NetworkUnavailable", "True", [("network-unavailable", "NoSchedule")]),
)
async def test_taints_follow_conditions(kind: str, status: str, expected: list[tuple[str, str]]) -> None:
    async with running_controllers(node="a") as registry:
        await settle()
        set_condition(registry, kind, status)
        await settle()
        first_taints = taints(registry)
        set_condition(registry, kind, "True" if kind == "Ready" else "False")
        await settle()

        assert (first_taints, taints(registry)) == (expected, [])


async def test_node_without_conditions_keeps_its_taints() -> None:
    async with running_controllers(kubelet=False) as registry:
        add_node(registry, "a", spec={"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]})
        await settle()

        assert taints(registry) == [("not-ready", "NoSchedule")]


async def test_a_node_that_registers_tainted_is_untainted_when_it_is_ready() -> None:
    async with running_controllers() as registry:
        add_node(registry, "a", spec={"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]})
        await settle()

        assert condition_of(registry.get(NODES, "", "a"), "Ready")["status"] == "True"
        assert taints(registry) == []
