"""Agents are DaemonSets of high priority: they find room on every node, whoever has to go for it."""

from extender.rules.api_resources import PODS, Object
from tests.kit.objects import node, pod, workload
from tests.kit.scene import a_scene

PORT = {"ports": [{"containerPort": 9100, "hostPort": 9100}]}
EVERYWHERE = [{"operator": "Exists"}]


def agent(priority: str) -> Object:
    return workload("DaemonSet", "agent", pod("agent", "1", priority, container=PORT, tolerations=EVERYWHERE))


async def test_a_daemon_set_of_high_priority_preempts_on_full_nodes() -> None:
    tainted = node("tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    async with a_scene(node("one"), node("two"), tainted) as scene:
        await scene.has(pod("a", "2", "low", nodeName="one"), pod("b", "2", "low", nodeName="two"))

        await scene.has(agent("system-node-critical"), within=30)

        agents = [obj for obj in scene.api.list(PODS, "default") if obj["metadata"]["name"].startswith("agent-")]
        assert sorted(obj["spec"]["nodeName"] for obj in agents) == ["one", "tainted", "two"]
        assert {obj["spec"]["priority"] for obj in agents} == {2_000_001_000}
        assert not {"a", "b"} & scene.pods()


async def test_a_daemon_set_of_low_priority_waits_for_room() -> None:
    async with a_scene(node("one")) as scene:
        await scene.has(pod("a", "2", "high", nodeName="one"))

        await scene.has(agent("low"), within=10)

        (waiting,) = scene.pods() - {"a"}
        assert scene.node_of(waiting) == ""
        assert scene.condition(waiting) is not None

        await scene.loses("a", at_once=True, within=15)

        assert scene.node_of(waiting) == "one"
