"""What belongs to nobody goes; how, is what the deletion of the owner asked for."""

from typing import Any

from extender.rules.api_resources import CONFIG_MAPS, PODS, REPLICA_SETS, Object
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import (
    add_pod,
    change,
    names,
    running_controllers,
    scheduled,
    settle,
    workload,
)


def reference(owner: Object, **more: Any) -> Object:
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": uid, **more}


def add_owner(registry: ObjectRegistry, name: str) -> Object:
    """A ReplicaSet that makes no pods of its own."""
    return registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, name, 0, app=name))


def add_passive(registry: ObjectRegistry, name: str, *owners: Object) -> Object:
    """An object that no other controller writes."""
    return registry.create(CONFIG_MAPS, "default", {"metadata": {"name": name, "ownerReferences": list(owners)}})


def add_owned(registry: ObjectRegistry, name: str, *owners: Object, **metadata: Any) -> None:
    add_pod(registry, name, metadata={"ownerReferences": list(owners), **metadata})


async def test_dependents_go_with_their_last_owner() -> None:
    async with running_controllers() as registry:
        one, other = add_owner(registry, "one"), add_owner(registry, "other")
        add_owned(registry, "of-one", reference(one))
        add_owned(registry, "of-both", reference(one), reference(other))
        registry.delete(REPLICA_SETS, "default", "one", {"propagationPolicy": "Background"})
        await settle()
        shared = registry.get(PODS, "default", "of-both")["metadata"]["ownerReferences"]
        pod_names = names(registry, PODS)
        registry.delete(REPLICA_SETS, "default", "other", {})
        await settle()

        assert pod_names == ["of-both"]
        assert [owner["name"] for owner in shared] == ["other"]
        assert names(registry, PODS) == []


async def test_orphans_stay_without_an_owner() -> None:
    async with running_controllers() as registry:
        owner = add_owner(registry, "one")
        add_owned(registry, "child", reference(owner))
        registry.delete(REPLICA_SETS, "default", "one", {"propagationPolicy": "Orphan"})
        await settle()

        assert names(registry, REPLICA_SETS) == []
        assert "ownerReferences" not in registry.get(PODS, "default", "child")["metadata"]


async def test_foreground_deletion_does_not_wait_for_dependents_that_do_not_block() -> None:
    async with running_controllers() as registry:
        owner = add_owner(registry, "one")
        add_owned(registry, "child", reference(owner), finalizers=["example.com/slow"])
        registry.delete(REPLICA_SETS, "default", "one", {"propagationPolicy": "Foreground"})
        await settle()

        assert names(registry, REPLICA_SETS) == []


async def test_foreground_deletion_waits_for_blocking_dependents() -> None:
    async with running_controllers() as registry:
        owner = add_owner(registry, "one")
        add_owned(registry, "child", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/slow"])
        add_owned(registry, "other", reference(owner))
        registry.delete(REPLICA_SETS, "default", "one", {"propagationPolicy": "Foreground"})
        await settle()
        waiting = names(registry, REPLICA_SETS), names(registry, PODS)
        change(registry, PODS, "child", lambda pod: pod["metadata"].pop("finalizers"))
        await settle()

        assert waiting == (["one"], ["child"])
        assert (names(registry, REPLICA_SETS), names(registry, PODS)) == ([], [])


async def test_foreground_deletion_ends_when_the_last_blocking_dependent_stays_with_another_owner() -> None:
    async with running_controllers() as registry:
        one, other = add_passive(registry, "one"), add_passive(registry, "other")
        add_owned(registry, "child", reference(one, blockOwnerDeletion=True), reference(other))
        await settle()
        registry.delete(CONFIG_MAPS, "default", "one", {"propagationPolicy": "Foreground"})
        await settle()

        assert (names(registry, CONFIG_MAPS), names(registry, PODS)) == (["other"], ["child"])


async def test_foreground_deletion_ends_when_a_dependent_blocks_no_more() -> None:
    async with running_controllers() as registry:
        owner = add_passive(registry, "one")
        add_owned(registry, "child", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/slow"])
        registry.delete(CONFIG_MAPS, "default", "one", {"propagationPolicy": "Foreground"})
        await settle()
        waiting = names(registry, CONFIG_MAPS)
        change(
            registry, PODS, "child", lambda pod: pod["metadata"]["ownerReferences"][0].update(blockOwnerDeletion=False)
        )
        await settle()

        assert (waiting, names(registry, CONFIG_MAPS)) == (["one"], [])


async def test_two_that_own_each_other_go_together() -> None:
    async with running_controllers() as registry:
        one = add_passive(registry, "one")
        other = add_passive(registry, "other", reference(one, blockOwnerDeletion=True))
        change(
            registry,
            CONFIG_MAPS,
            "one",
            lambda obj: obj["metadata"].update(ownerReferences=[reference(other, blockOwnerDeletion=True)]),
        )
        registry.delete(CONFIG_MAPS, "default", "one", {"propagationPolicy": "Foreground"})
        await settle()

        assert names(registry, CONFIG_MAPS) == []


async def test_a_dependent_that_comes_too_late_goes_at_once() -> None:
    async with running_controllers() as registry:
        owner = add_owner(registry, "one")
        registry.delete(REPLICA_SETS, "default", "one", {})
        await settle()
        add_owned(registry, "late", reference(owner))
        await settle()

        assert names(registry, PODS) == []


async def test_a_namesake_of_the_owner_is_another_object() -> None:
    async with running_controllers() as registry:
        owner = add_owner(registry, "one")
        add_owned(registry, "child", {**reference(owner), "uid": "another"})
        await settle()

        assert names(registry, PODS) == []


@cases(
    "owner",
    ("of a kind that is not served", {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "1"}),
    ("of a kind that is", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}),
)
async def test_an_owner_that_was_never_here_is_taken_to_exist_elsewhere(owner: Object) -> None:
    async with running_controllers() as registry:
        add_owned(registry, "child", owner)
        await settle(60)

        assert names(registry, PODS) == ["child"]


async def test_a_pods_own_claims_go_with_the_pod_and_nothing_else_does() -> None:
    async with running_controllers(node="a") as registry:
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 2))
        await scheduled(registry, 3)
        registry.delete(PODS, "default", names(registry, PODS)[0], {})
        await scheduled(registry, 3)

        assert names(registry, REPLICA_SETS) == ["web"]
        assert len(names(registry, PODS)) == 2
