"""Some namespaces always exist; the others go when everything in them has gone."""

import pytest

from extender.rules.api_resources import EVENTS, NAMESPACES, POD_DISRUPTION_BUDGETS, PODS
from extender.rules.statuses import ApiStatus
from tests.reprieve.cluster.controllers.running_cluster import add_pod, change, running_controllers, settle


async def test_the_system_namespaces_exist_from_the_start() -> None:
    async with running_controllers() as registry:
        names = [namespace["metadata"]["name"] for namespace in registry.list(NAMESPACES)]

    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_a_deleted_namespace_is_emptied_and_goes() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
        for name in ("x", "y"):
            add_pod(registry, name, node="a", namespace="shop")
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
        registry.create(POD_DISRUPTION_BUDGETS, "shop", budget)
        about = {"kind": "Pod", "namespace": "shop", "name": "x"}
        registry.create(EVENTS, "shop", {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Scheduled"})
        add_pod(registry, "elsewhere", node="a")
        await settle()
        registry.delete(NAMESPACES, "", "shop", {})
        terminating = registry.get(NAMESPACES, "", "shop")["status"]["phase"]
        await settle(5)

        assert terminating == "Terminating"
        assert [pod["metadata"]["name"] for pod in registry.list(PODS)] == ["elsewhere"]
        assert (registry.list(POD_DISRUPTION_BUDGETS), registry.list(EVENTS, "shop")) == ([], [])
        assert "shop" not in [namespace["metadata"]["name"] for namespace in registry.list(NAMESPACES)]


async def test_namespace_stays_while_an_object_in_it_stays() -> None:
    async with running_controllers() as registry:
        registry.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
        add_pod(registry, "x", namespace="shop", metadata={"finalizers": ["example.com/stay"]})
        registry.delete(NAMESPACES, "", "shop", {})
        await settle(30)
        phase = registry.get(NAMESPACES, "", "shop")["status"]["phase"]
        change(registry, PODS, "x", lambda pod: pod["metadata"].pop("finalizers"), namespace="shop")
        await settle()

        assert phase == "Terminating"
        with pytest.raises(ApiStatus, match="not found"):
            registry.get(NAMESPACES, "", "shop")
