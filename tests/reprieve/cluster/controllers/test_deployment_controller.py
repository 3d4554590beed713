"""Deployments roll from one template to the next, and tell how far they are."""

from extender.rules.api_resources import DEPLOYMENTS, PODS, REPLICA_SETS
from tests.reprieve.cluster.controllers.running_cluster import (
    add_deployment,
    change,
    condition_of,
    deployed,
    names,
    phases,
    replicas_by_set,
    running_controllers,
    scale,
    scheduled,
    settle,
    with_image,
)


async def test_a_deployment_makes_a_replica_set_and_becomes_available() -> None:
    async with deployed(3) as registry:
        deployment = registry.get(DEPLOYMENTS, "default", "web")
        (replica_set,) = registry.list(REPLICA_SETS, "default")

    counts = {
        name: deployment["status"][name]
        for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    }
    assert set(counts.values()) == {3}
    assert deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    assert condition_of(deployment, "Available")["reason"] == "MinimumReplicasAvailable"
    assert condition_of(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    code = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{code}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": code}
    assert replica_set["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": code}


async def test_a_new_image_is_rolled_out_and_the_old_replica_set_is_kept_empty() -> None:
    async with deployed(4) as registry:
        change(registry, DEPLOYMENTS, "web", with_image("web:2"))
        await scheduled(registry, 20)

        deployment = registry.get(DEPLOYMENTS, "default", "web")

        assert replicas_by_set(registry) == [0, 4]
        assert {pod["spec"]["containers"][0]["image"] for pod in registry.list(PODS, "default")} == {"web:2"}
        assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        assert deployment["status"]["updatedReplicas"] == deployment["status"]["replicas"] == 4
        assert condition_of(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_a_rollout_never_has_more_missing_than_allowed() -> None:
    async with deployed(4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}) as registry:
        change(registry, DEPLOYMENTS, "web", with_image("web:2"))
        counts = []
        for _ in range(60):
            await scheduled(registry, 0.5)
            pods = [pod for pod in registry.list(PODS, "default") if "deletionTimestamp" not in pod["metadata"]]
            counts.append((len(pods), sum(pod["status"]["phase"] == "Running" for pod in pods)))

        assert replicas_by_set(registry) == [0, 4]
        assert max(total for total, _ in counts) == 5
        assert min(running for _, running in counts) == 4


async def test_stuck_rollout_has_the_condition_progress_deadline_exceeded() -> None:
    async with deployed(4, progressDeadlineSeconds=60) as registry:
        change(registry, DEPLOYMENTS, "web", with_image("web:2"))
        await settle(30)
        waiting = condition_of(registry.get(DEPLOYMENTS, "default", "web"), "Progressing")
        await settle(60)
        late = condition_of(registry.get(DEPLOYMENTS, "default", "web"), "Progressing")
        await scheduled(registry, 20)
        done = condition_of(registry.get(DEPLOYMENTS, "default", "web"), "Progressing")

    assert (waiting["status"], waiting["reason"]) == ("True", "ReplicaSetUpdated")
    assert (late["status"], late["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert (done["status"], done["reason"]) == ("True", "NewReplicaSetAvailable")


async def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    async with deployed(2, strategy={"type": "Recreate"}) as registry:
        change(registry, DEPLOYMENTS, "web", with_image("web:2"))
        images = set()
        for _ in range(20):
            await scheduled(registry, 0.5)
            images.add(tuple(sorted({pod["spec"]["containers"][0]["image"] for pod in registry.list(PODS, "default")})))

        assert images <= {("web:1",), (), ("web:2",)}
        assert phases(registry) == ["Running", "Running"]
        assert replicas_by_set(registry) == [0, 2]


async def test_going_back_uses_the_old_replica_set_under_a_new_revision() -> None:
    async with deployed(2) as registry:
        (first,) = names(registry, REPLICA_SETS)
        for image in ("web:2", "web:1"):
            change(registry, DEPLOYMENTS, "web", with_image(image))
            await scheduled(registry, 15)

        revived = registry.get(REPLICA_SETS, "default", first)

        assert replicas_by_set(registry) == [0, 2]
        assert revived["spec"]["replicas"] == 2
        assert revived["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_scaling_changes_the_replica_set_and_makes_no_revision() -> None:
    async with deployed(2) as registry:
        for replicas in (5, 0, 3):
            scale(registry, DEPLOYMENTS, "web", replicas)
            await scheduled(registry, 5)

        assert replicas_by_set(registry) == [3]
        assert phases(registry) == ["Running"] * 3


async def test_a_paused_deployment_scales_and_does_not_roll() -> None:
    async with deployed(2) as registry:
        change(registry, DEPLOYMENTS, "web", lambda obj: obj["spec"].update(paused=True))
        change(registry, DEPLOYMENTS, "web", with_image("web:2"))
        scale(registry, DEPLOYMENTS, "web", 3)
        await scheduled(registry, 5)
        deployment = registry.get(DEPLOYMENTS, "default", "web")
        paused = (replicas_by_set(registry), condition_of(deployment, "Progressing")["reason"])
        change(registry, DEPLOYMENTS, "web", lambda obj: obj["spec"].update(paused=False))
        await scheduled(registry, 15)

        assert paused == ([3], "DeploymentPaused")
        assert replicas_by_set(registry) == [0, 3]


async def test_old_replica_sets_beyond_the_history_limit_are_deleted() -> None:
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", 1, revisionHistoryLimit=1)
        for number in range(2, 6):
            await scheduled(registry, 8)
            change(registry, DEPLOYMENTS, "web", with_image(f"web:{number}"))
        await scheduled(registry, 8)

        revisions = [
            replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
            for replica_set in registry.list(REPLICA_SETS, "default")
        ]

    assert sorted(revisions) == ["4", "5"]


async def test_everything_goes_with_the_deployment() -> None:
    async with deployed(3) as registry:
        registry.delete(DEPLOYMENTS, "default", "web", {})
        await settle(5)

        assert (names(registry, REPLICA_SETS), names(registry, PODS)) == ([], [])


async def test_a_settled_deployment_is_left_alone() -> None:
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", 3)
        await scheduled(registry, 10)
        version = registry.store.resource_version
        await settle(3600)

        assert registry.store.resource_version == version
