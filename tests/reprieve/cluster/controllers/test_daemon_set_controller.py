"""Each node that a DaemonSet is meant for has one pod of it, which is scheduled there."""

from typing import Any

from extender.rules.api_resources import DAEMON_SETS, NODES, PODS, Object
from extender.values.workloads.daemon_sets import node_of
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import (
    add_node,
    bind_to,
    change,
    names,
    running_controllers,
    settle,
    template,
    with_image,
)


def add_set(registry: ObjectRegistry, pod_spec: Any = None, **spec: Any) -> Object:
    set_spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template(**(pod_spec or {})), **spec}
    return registry.create(DAEMON_SETS, "default", {"metadata": {"name": "agent"}, "spec": set_spec})


def bind_all(registry: ObjectRegistry) -> None:
    for pod in registry.list(PODS):
        if not pod["spec"].get("nodeName"):
            bind_to(registry, pod["metadata"]["name"], node_of(pod))


async def a_set_runs(registry: ObjectRegistry, **spec: Any) -> None:
    add_set(registry, **spec)
    await settle()
    bind_all(registry)
    await settle()


def places(registry: ObjectRegistry) -> list[str]:
    return sorted(node_of(pod) for pod in registry.list(PODS) if "deletionTimestamp" not in pod["metadata"])


async def test_each_node_gets_a_pod_that_is_pinned_to_it() -> None:
    async with running_controllers(node="a") as registry:
        add_node(registry, "b")
        add_set(registry)
        await settle()

        pods = registry.list(PODS)

        assert places(registry) == ["a", "b"]
        assert [pod["spec"].get("nodeName") for pod in pods] == [None, None]
        assert all(pod["metadata"]["name"].startswith("agent-") for pod in pods)
        tolerated = {toleration.get("key") for toleration in pods[0]["spec"]["tolerations"]}
        assert {"node.kubernetes.io/unschedulable", "node.kubernetes.io/disk-pressure"} <= tolerated


async def test_nodes_that_come_get_a_pod() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry)
        await settle()

        add_node(registry, "b")
        await settle()

        assert places(registry) == ["a", "b"]


async def test_nodes_that_the_pods_do_not_fit_get_none() -> None:
    async with running_controllers(node="a") as registry:
        add_node(registry, "gpu", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
        add_node(registry, "labelled", metadata={"name": "labelled", "labels": {"disk": "ssd"}})
        add_set(registry, {"nodeSelector": {"disk": "ssd"}})
        await settle()

        assert places(registry) == ["labelled"]


async def test_pods_go_from_nodes_that_no_longer_want_them() -> None:
    async with running_controllers(node="a") as registry:
        await a_set_runs(registry)

        change(registry, NODES, "a", lambda node: node["spec"].update(taints=[{"key": "x", "effect": "NoExecute"}]))
        await settle(10)

        assert names(registry, PODS) == []


async def test_a_pod_that_ended_is_replaced() -> None:
    async with running_controllers(node="a", kubelet=False) as registry:
        await a_set_runs(registry)
        (first,) = names(registry, PODS)

        change(registry, PODS, first, lambda pod: pod["status"].update(phase="Failed"), subresource="status")
        await settle(10)

        (second,) = names(registry, PODS)
        assert second != first


async def test_a_new_template_replaces_one_pod_at_a_time() -> None:
    async with running_controllers(node="a") as registry:
        add_node(registry, "b")
        await a_set_runs(registry)
        before = set(names(registry, PODS))

        change(registry, DAEMON_SETS, "agent", with_image("web:2"))
        await settle()
        after_one = len(before & set(names(registry, PODS)))
        for _ in range(4):
            bind_all(registry)
            await settle()

        assert after_one == 1
        images = [pod["spec"]["containers"][0]["image"] for pod in registry.list(PODS)]
        assert images == ["web:2", "web:2"]


async def test_the_status_counts_nodes() -> None:
    async with running_controllers(node="a") as registry:
        add_node(registry, "b")
        await a_set_runs(registry)

        status = registry.get(DAEMON_SETS, "default", "agent")["status"]

        assert status == {
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 2,
            "numberReady": 2,
            "observedGeneration": 1,
            "updatedNumberScheduled": 2,
            "numberAvailable": 2,
        }


async def test_pods_of_a_dump_are_left_alone() -> None:
    """The annotation and the label are what a real cluster writes; its hashes mean nothing here."""
    async with running_controllers(node="a") as registry:
        await a_set_runs(registry, updateStrategy={"type": "OnDelete"})
        (name,) = names(registry, PODS)

        def dumped(obj: Object) -> None:
            obj["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "1"
            obj["spec"]["updateStrategy"] = {"type": "RollingUpdate"}

        change(registry, PODS, name, lambda pod: pod["metadata"]["labels"].update({"controller-revision-hash": "x"}))
        change(registry, DAEMON_SETS, "agent", dumped)
        await settle()

        assert names(registry, PODS) == [name]
