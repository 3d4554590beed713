"""As many pods as somebody asked for; strangers that fit are taken in, and those that do not fit any more are let
go.
"""

import pytest

from extender.rules.api_resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Object, Resource
from tests.reprieve.cluster.controllers.running_cluster import (
    add_pod,
    bind_to,
    change,
    condition_of,
    names,
    running_controllers,
    scale,
    scheduled,
    settle,
    workload,
)


@pytest.mark.parametrize("resource", [REPLICA_SETS, REPLICATION_CONTROLLERS], ids=lambda resource: resource.kind)
async def test_pods_are_made_until_there_are_enough(resource: Resource) -> None:
    async with running_controllers() as registry:
        registry.create(resource, "default", workload(resource, "web", 3))
        await settle()

        pods = registry.list(PODS, "default")
        status = registry.get(resource, "default", "web")["status"]

    assert len(pods) == 3
    assert all(
        pod["metadata"]["name"].startswith("web-") and pod["metadata"]["labels"] == {"app": "web"} for pod in pods
    )
    assert {
        (owner["kind"], owner["name"], owner["controller"])
        for pod in pods
        for owner in pod["metadata"]["ownerReferences"]
    } == {(resource.kind, "web", True)}
    assert (status["replicas"], status["fullyLabeledReplicas"], status["observedGeneration"]) == (3, 3, 1)
    assert "readyReplicas" not in status


async def test_the_status_follows_the_pods() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 3))
        await scheduled(registry, 3)

        status = registry.get(REPLICA_SETS, "default", "web")["status"]

    assert status | {"conditions": []} == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
        "conditions": [],
    }


async def test_pods_are_available_when_they_have_been_ready_long_enough() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 2, minReadySeconds=30))
        await scheduled(registry, 10)
        early = registry.get(REPLICA_SETS, "default", "web")["status"]
        await settle(30)
        late = registry.get(REPLICA_SETS, "default", "web")["status"]

    assert (early["readyReplicas"], early.get("availableReplicas")) == (2, None)
    assert late["availableReplicas"] == 2


async def test_a_deleted_or_finished_pod_is_replaced() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 2))
        await scheduled(registry, 3)
        first, second = names(registry, PODS)
        registry.delete(PODS, "default", first, {})
        change(registry, PODS, second, lambda pod: pod["status"].update(phase="Failed"), subresource="status")
        await scheduled(registry, 5)

        running = [
            pod["metadata"]["name"] for pod in registry.list(PODS, "default") if pod["status"]["phase"] == "Running"
        ]

    assert len(running) == 2
    assert not {first, second} & set(running)


async def test_scaling_down_takes_those_that_are_missed_least() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 4))
        await settle()
        bound_names = names(registry, PODS)[1:3]
        for name in bound_names:
            bind_to(registry, name, "a")
        await settle()
        scale(registry, REPLICA_SETS, "web", 2)
        await settle()

        assert names(registry, PODS) == bound_names
        assert registry.get(REPLICA_SETS, "default", "web")["status"]["replicas"] == 2


async def test_many_replicas_are_made_and_removed() -> None:
    """More than one burst either way."""
    async with running_controllers(kubelet=False) as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 600))
        await settle(5)
        grown = len(names(registry, PODS))
        scale(registry, REPLICA_SETS, "web", 0)
        await settle(5)

        assert (grown, names(registry, PODS)) == (600, [])


async def test_a_pod_without_an_owner_is_adopted_and_one_that_lost_its_label_is_released() -> None:
    async with running_controllers() as registry:
        add_pod(registry, "stray", metadata={"labels": {"app": "web"}})
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 1))
        await settle()
        stray = registry.get(PODS, "default", "stray")
        adopted = (names(registry, PODS), stray["metadata"]["ownerReferences"][0]["name"])
        change(registry, PODS, "stray", lambda pod: pod["metadata"]["labels"].update(app="other"))
        await settle()

        stray = registry.get(PODS, "default", "stray")

        assert adopted == (["stray"], "web")
        assert "ownerReferences" not in stray["metadata"]
        assert len(names(registry, PODS)) == 2


async def test_pods_of_others_are_left_alone() -> None:
    async with running_controllers() as registry:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "1", "controller": True}
        add_pod(registry, "job", metadata={"labels": {"app": "web"}, "ownerReferences": [owner]})
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 1))
        await settle()

        assert len(names(registry, PODS)) == 2
        assert registry.get(PODS, "default", "job")["metadata"]["ownerReferences"] == [owner]


async def test_refused_template_is_reported_in_the_status_and_retried() -> None:
    def with_class(obj: Object) -> None:
        obj["spec"]["template"]["spec"]["priorityClassName"] = "ghost"

    async with running_controllers() as registry:
        replica_set = workload(REPLICA_SETS, "web", 2)
        with_class(replica_set)
        registry.create(REPLICA_SETS, "default", replica_set)
        await settle()
        failure = condition_of(registry.get(REPLICA_SETS, "default", "web"), "ReplicaFailure")
        change(registry, REPLICA_SETS, "web", lambda obj: obj["spec"]["template"]["spec"].pop("priorityClassName"))
        await settle()

        assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
        assert failure["message"].endswith("no PriorityClass with name ghost was found")
        assert len(names(registry, PODS)) == 2
        assert condition_of(registry.get(REPLICA_SETS, "default", "web"), "ReplicaFailure") == {}
