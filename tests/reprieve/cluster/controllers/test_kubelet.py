"""Bound pods run, deleted ones go, nodes say that they are ready; nobody is contradicted."""

import pytest

from extender.rules.api_resources import NODES, PODS, Object
from extender.rules.statuses import ApiStatus
from reprieve.cluster.controllers.observed_objects import RUNS_FOR
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import (
    add_node,
    add_pod,
    change,
    condition_of,
    names,
    phases,
    running_controllers,
    say_ready,
    settle,
)


async def test_a_bound_pod_runs_and_is_ready() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "web", node="a")
        await settle()

        pod = registry.get(PODS, "default", "web")

    assert pod["status"]["phase"] == "Running"
    assert {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]} == dict.fromkeys(
        ("PodScheduled", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"), "True"
    )
    assert [
        (status["name"], status["ready"], list(status["state"])) for status in pod["status"]["containerStatuses"]
    ] == [("main", True, ["running"])]
    assert pod["status"]["podIP"].startswith("10.")
    assert pod["status"]["podIPs"] == [{"ip": pod["status"]["podIP"]}]
    assert pod["status"]["hostIP"] == registry.get(NODES, "", "a")["status"]["addresses"][0]["address"]
    assert pod["status"]["startTime"] == "2026-03-01T08:00:03Z"


async def test_init_containers_have_done_their_work_and_sidecars_run() -> None:
    async with running_controllers(node="a") as registry:
        inits = [{"name": "once", "image": "i"}, {"name": "sidecar", "image": "i", "restartPolicy": "Always"}]
        add_pod(registry, "web", node="a", initContainers=inits)
        await settle()

        statuses = registry.get(PODS, "default", "web")["status"]["initContainerStatuses"]

    assert [(status["name"], list(status["state"]), status["ready"]) for status in statuses] == [
        ("once", ["terminated"], True),
        ("sidecar", ["running"], True),
    ]


async def test_a_pod_without_a_node_or_on_one_that_does_not_exist_stays_pending() -> None:
    async with running_controllers() as registry:
        add_pod(registry, "nowhere")
        add_pod(registry, "on-a-ghost", node="ghost")
        await settle()
        before = phases(registry)
        add_node(registry, "ghost")
        await settle()

        assert (before, phases(registry)) == (["Pending", "Pending"], ["Pending", "Running"])


async def test_a_deleted_pod_is_terminating_for_a_second_at_most() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "web", node="a", terminationGracePeriodSeconds=30)
        await settle()
        registry.delete(PODS, "default", "web", {})
        await settle(0.9)
        terminating = registry.get(PODS, "default", "web")["metadata"]
        await settle(0.3)

        assert "deletionTimestamp" in terminating
        assert names(registry, PODS) == []


async def test_deleted_pod_with_a_finalizer_stays_until_it_is_removed() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "web", node="a", metadata={"finalizers": ["example.com/mine"]})
        await settle()
        registry.delete(PODS, "default", "web", {})
        await settle(5)
        version = registry.store.resource_version
        await settle(60)
        quiet = registry.store.resource_version == version
        change(registry, PODS, "web", lambda pod: pod["metadata"].pop("finalizers"))
        await settle()

        assert quiet
        assert names(registry, PODS) == []


@cases(
    "policy, phase",
    ("never restarted", "Never", "Succeeded"),
    ("restarted on failure", "OnFailure", "Succeeded"),
    ("always restarted: it never ends", "Always", "Running"),
)
async def test_a_pod_may_say_how_long_it_runs(policy: str, phase: str) -> None:
    pods: list[Object] = []

    async with running_controllers(node="a") as registry:
        add_pod(registry, "job", node="a", restartPolicy=policy, metadata={"annotations": {RUNS_FOR: "10s"}})
        for _ in range(2):
            await settle(8)
            pods.append(registry.get(PODS, "default", "job"))

    assert [pod["status"]["phase"] for pod in pods] == ["Running", phase]
    assert condition_of(pods[1], "Ready")["status"] == ("False" if phase == "Succeeded" else "True")


async def test_a_new_node_becomes_ready() -> None:
    async with running_controllers(node="a") as registry:
        await settle()

        node = registry.get(NODES, "", "a")

    assert condition_of(node, "Ready")["status"] == "True"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"
    assert node["status"]["capacity"]["cpu"] == "8"


async def test_node_that_was_marked_not_ready_stays_so_and_starts_no_pod() -> None:
    async with running_controllers(node="a") as registry:
        await settle()
        say_ready(registry, NODES, "a", "False")
        add_pod(registry, "web", node="a")
        await settle(30)
        meanwhile = condition_of(registry.get(NODES, "", "a"), "Ready")["status"], phases(registry)
        say_ready(registry, NODES, "a", "True")
        await settle()

        assert meanwhile == ("False", ["Pending"])
        assert phases(registry) == ["Running"]


async def test_on_a_node_that_does_not_answer_nothing_ends() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "web", node="a")
        await settle()
        say_ready(registry, NODES, "a", "Unknown")
        registry.delete(PODS, "default", "web", {})
        await settle(10)
        stuck = names(registry, PODS)
        registry.delete(PODS, "default", "web", {"gracePeriodSeconds": 0})

        assert stuck == ["web"]
        with pytest.raises(ApiStatus):
            registry.get(PODS, "default", "web")


async def test_without_a_kubelet_bound_pods_wait_and_nodes_say_nothing() -> None:
    async with running_controllers(node="a", kubelet=False) as registry:
        add_pod(registry, "web", node="a")
        await settle(60)

        assert phases(registry) == ["Pending"]
        assert condition_of(registry.get(NODES, "", "a"), "Ready") == {}
