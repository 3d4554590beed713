"""Whoever has reserved a claim and is not there any more is struck off; with the last one goes what was allocated."""

from typing import Any

from extender.rules.api_resources import PODS, RESOURCE_CLAIMS, Object
from reprieve.cluster.controllers.resource_claim_controller import FINALIZER
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import add_pod, bind_to, change, running_controllers, settle

SPEC: Object = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
RESULT: Object = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "0"}


def add_claim(registry: ObjectRegistry, **metadata: Any) -> None:
    registry.create(RESOURCE_CLAIMS, "default", {"metadata": {"name": "gpu", **metadata}, "spec": SPEC})


def allocate(registry: ObjectRegistry, *pods: Object) -> None:
    """As a scheduler does: the finalizer, then the allocation with who has reserved it."""
    change(registry, RESOURCE_CLAIMS, "gpu", lambda claim: claim["metadata"].update(finalizers=[FINALIZER]))
    reserved = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods]
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": reserved}
    change(registry, RESOURCE_CLAIMS, "gpu", lambda claim: claim.update(status=status), subresource="status")


def claim(registry: ObjectRegistry) -> Object:
    return registry.get(RESOURCE_CLAIMS, "default", "gpu")


def user(registry: ObjectRegistry, name: str, **more: Any) -> Object:
    return add_pod(registry, name, resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}], **more)


async def test_the_claim_is_deallocated_when_its_last_user_is_gone() -> None:
    async with running_controllers() as registry:
        add_claim(registry)
        allocate(registry, *(user(registry, name) for name in ("x", "y")))
        await settle()
        states = []
        for name in ("x", "y"):
            registry.delete(PODS, "default", name, {})
            await settle()
            status = claim(registry).get("status") or {}
            states.append(([consumer["name"] for consumer in status.get("reservedFor", [])], "allocation" in status))

        assert states == [(["y"], True), ([], False)]
        assert "finalizers" not in claim(registry)["metadata"]


async def test_a_finished_pod_is_no_user() -> None:
    async with running_controllers(node="a") as registry:
        add_claim(registry)
        allocate(registry, user(registry, "x"))
        bind_to(registry, "x", "a")
        await settle()
        before = claim(registry)["status"]["reservedFor"]
        change(registry, PODS, "x", lambda pod: pod["status"].update(phase="Succeeded"), subresource="status")
        await settle()

        assert [consumer["name"] for consumer in before] == ["x"]
        assert "reservedFor" not in (claim(registry).get("status") or {})


async def test_a_finalizer_that_a_scheduler_has_just_put_there_stays() -> None:
    async with running_controllers() as registry:
        add_claim(registry, finalizers=[FINALIZER])
        await settle(60)

        assert claim(registry)["metadata"]["finalizers"] == [FINALIZER]


async def test_deleted_claim_goes_once_it_is_unused() -> None:
    async with running_controllers() as registry:
        add_claim(registry)
        allocate(registry, user(registry, "x"))
        registry.delete(RESOURCE_CLAIMS, "default", "gpu", {})
        await settle()
        in_use = len(registry.list(RESOURCE_CLAIMS))
        registry.delete(PODS, "default", "x", {})
        await settle()

        assert (in_use, registry.list(RESOURCE_CLAIMS)) == (1, [])


async def test_a_pod_that_no_scheduler_bound_gets_its_reservation() -> None:
    async with running_controllers(node="a") as registry:
        add_claim(registry)
        allocate(registry, user(registry, "x"))
        user(registry, "y", nodeName="a")
        await settle()

        assert [consumer["name"] for consumer in claim(registry)["status"]["reservedFor"]] == ["x", "y"]
