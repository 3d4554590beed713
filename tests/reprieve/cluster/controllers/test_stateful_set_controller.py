"""Pods with ordinals come and go one after the other, each with its own claim."""

from typing import Any

from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import (
    change,
    names,
    running_controllers,
    scale,
    scheduled,
    settle,
    with_image,
    workload,
)

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def add_set(registry: ObjectRegistry, replicas: int, **spec: Any) -> Object:
    return registry.create(
        STATEFUL_SETS, "default", workload(STATEFUL_SETS, "db", replicas, app="db", serviceName="db", **spec)
    )


def image(pod: Object) -> str:
    text: str = pod["spec"]["containers"][0]["image"]
    return text


async def test_pods_are_made_one_after_the_other_once_the_one_before_is_ready() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 3)
        counts = []
        for _ in range(4):
            await settle(2)
            counts.append(len(names(registry, PODS)))
            await scheduled(registry, 0.5)

        status = registry.get(STATEFUL_SETS, "default", "db")["status"]

        assert counts == [1, 2, 3, 3]
        assert names(registry, PODS) == ["db-0", "db-1", "db-2"]
        assert [
            status[name]
            for name in ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
        ] == [3] * 5
        assert status["currentRevision"] == status["updateRevision"]


async def test_a_parallel_set_makes_all_at_once() -> None:
    async with running_controllers() as registry:
        add_set(registry, 3, podManagementPolicy="Parallel", ordinals={"start": 5})
        await settle()

        assert names(registry, PODS) == ["db-5", "db-6", "db-7"]


async def test_a_pod_knows_its_name_and_its_claim() -> None:
    async with running_controllers() as registry:
        add_set(registry, 1, volumeClaimTemplates=[CLAIM])
        await settle()

        pod = registry.get(PODS, "default", "db-0")
        claim = registry.get(PERSISTENT_VOLUME_CLAIMS, "default", "data-db-0")

    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert pod["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert claim["metadata"]["labels"] == {"app": "db"}
    assert claim["spec"]["resources"] == CLAIM["spec"]["resources"]  # type: ignore[index]


async def test_scaling_down_removes_the_last_first_and_keeps_the_claims() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 3, volumeClaimTemplates=[CLAIM])
        await scheduled(registry, 8)
        scale(registry, STATEFUL_SETS, "db", 1)
        await settle(0.5)
        dying = [pod["metadata"]["name"] for pod in registry.list(PODS) if "deletionTimestamp" in pod["metadata"]]
        await settle(5)

        assert dying == ["db-2"]
        assert names(registry, PODS) == ["db-0"]
        assert len(names(registry, PERSISTENT_VOLUME_CLAIMS)) == 3


async def test_a_new_template_is_rolled_out_from_the_last_pod_to_the_first() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 3)
        await scheduled(registry, 8)
        change(registry, STATEFUL_SETS, "db", with_image("db:2"))
        images = []
        for _ in range(40):
            await scheduled(registry, 0.5)
            images.append(
                tuple(image(pod) for pod in registry.list(PODS) if "deletionTimestamp" not in pod["metadata"])
            )
        status = registry.get(STATEFUL_SETS, "default", "db")["status"]

    old, new = "web:1", "db:2"
    steps = [step for place, step in enumerate(images) if len(step) == 3 and step not in images[:place]]
    assert steps == [(old, old, new), (old, new, new), (new, new, new)]
    assert (status["updatedReplicas"], status["currentRevision"]) == (3, status["updateRevision"])


async def test_a_new_template_waits_for_the_new_pod_even_in_a_parallel_set() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 3, podManagementPolicy="Parallel")
        await scheduled(registry, 5)
        change(registry, STATEFUL_SETS, "db", with_image("db:2"))
        await settle(60)  # no scheduler binds the new pod

        assert [image(pod) for pod in registry.list(PODS)] == ["web:1", "web:1", "db:2"]


async def test_a_partition_keeps_the_first_pods_as_they_are() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 3, updateStrategy={"rollingUpdate": {"partition": 2}})
        await scheduled(registry, 8)
        change(registry, STATEFUL_SETS, "db", with_image("db:2"))
        await scheduled(registry, 15)

        status = registry.get(STATEFUL_SETS, "default", "db")["status"]

        assert [image(pod) for pod in registry.list(PODS)] == ["web:1", "web:1", "db:2"]
        assert (status["updatedReplicas"], status["currentReplicas"]) == (1, 2)


async def test_a_failed_pod_is_made_again_under_its_name() -> None:
    async with running_controllers(node="a") as registry:
        add_set(registry, 2)
        await scheduled(registry, 6)
        before = registry.get(PODS, "default", "db-0")["metadata"]["uid"]
        change(registry, PODS, "db-0", lambda pod: pod["status"].update(phase="Failed"), subresource="status")
        await scheduled(registry, 6)

        pod = registry.get(PODS, "default", "db-0")

    assert pod["metadata"]["uid"] != before
    assert pod["status"]["phase"] == "Running"
