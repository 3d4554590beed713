"""Pods on nodes that are gone go, too, but not in haste."""

from extender.rules.api_resources import NODES, PODS, Object
from extender.rules.seeding import seed
from tests.reprieve.cluster.controllers.running_cluster import (
    add_node,
    add_pod,
    condition_of,
    empty_registry,
    names,
    running_controllers,
    settle,
)


async def test_pods_are_deleted_when_their_node_has_been_gone_for_forty_seconds() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a")
        await settle()
        registry.delete(NODES, "", "a", {})
        await settle(39)
        before = names(registry, PODS)
        await settle(2)

        assert (before, names(registry, PODS)) == (["x"], [])


async def test_deleted_pod_gets_a_disruption_condition() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a", metadata={"finalizers": ["example.com/stay"]})
        await settle()
        registry.delete(NODES, "", "a", {})
        await settle(60)

        pod: Object = registry.get(PODS, "default", "x")

    assert pod["status"]["phase"] == "Failed"
    assert condition_of(pod, "DisruptionTarget")["reason"] == "DeletionByPodGC"
    assert condition_of(pod, "DisruptionTarget")["message"] == "PodGC: node no longer exists"
    assert "deletionTimestamp" in pod["metadata"]


async def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a")
        await settle()
        registry.delete(NODES, "", "a", {})
        await settle(30)
        add_node(registry, "a")
        await settle(60)

        assert names(registry, PODS) == ["x"]


async def test_pods_that_were_there_before_the_controllers_get_the_same_time() -> None:
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"nodeName": "ghost", "containers": [{"name": "c", "image": "i"}]},
    }
    registry = empty_registry()
    report = seed(registry, [pod])
    async with running_controllers(registry):
        early = len(registry.list(PODS))
        await settle(60)

        assert (report.stored, early, registry.list(PODS)) == ({"Pod": 1}, 1, [])
