"""What a pod's spec only describes is made for it, and goes with it."""

from typing import Any

from extender.rules.api_resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    Object,
)
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import add_pod, names, running_controllers, settle

REQUESTS: Object = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
VOLUME: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def add_template(registry: ObjectRegistry) -> None:
    spec = {"metadata": {"labels": {"of": "template"}}, "spec": REQUESTS}
    registry.create(RESOURCE_CLAIM_TEMPLATES, "default", {"metadata": {"name": "one-gpu"}, "spec": spec})


def add_user(registry: ObjectRegistry, name: str = "train", **more: Any) -> None:
    add_pod(registry, name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], **more)


async def test_a_claim_is_made_from_the_template_and_its_name_written_down() -> None:
    async with running_controllers() as registry:
        add_template(registry)
        add_user(registry)
        await settle()

        (claim,) = registry.list(RESOURCE_CLAIMS)
        pod = registry.get(PODS, "default", "train")

    metadata = claim["metadata"]
    assert metadata["name"].startswith("train-gpu-")
    assert metadata["labels"] == {"of": "template"}
    assert metadata["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert [(owner["kind"], owner["uid"]) for owner in metadata["ownerReferences"]] == [("Pod", pod["metadata"]["uid"])]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"
    assert pod["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": metadata["name"]}]


async def test_a_pod_waits_for_its_template() -> None:
    async with running_controllers() as registry:
        add_user(registry)
        await settle(60)
        before = registry.list(RESOURCE_CLAIMS)
        add_template(registry)
        await settle()

        assert (before, len(registry.list(RESOURCE_CLAIMS))) == ([], 1)


async def test_the_claim_goes_with_the_pod() -> None:
    async with running_controllers() as registry:
        add_template(registry)
        add_user(registry)
        await settle()
        registry.delete(PODS, "default", "train", {})
        await settle()

        assert registry.list(RESOURCE_CLAIMS) == []


async def test_an_ephemeral_volume_gets_its_claim() -> None:
    volumes = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": VOLUME}}}
    ]
    async with running_controllers() as registry:
        add_pod(registry, "web", volumes=volumes)
        await settle()
        claim = registry.get(PERSISTENT_VOLUME_CLAIMS, "default", "web-scratch")
        registry.delete(PODS, "default", "web", {})
        await settle()

        assert claim["metadata"]["labels"] == {"a": "b"}
        assert claim["metadata"]["ownerReferences"][0]["name"] == "web"
        assert claim["spec"]["resources"] == VOLUME["resources"]
        assert names(registry, PERSISTENT_VOLUME_CLAIMS) == []


async def test_foreign_claim_of_the_same_name_is_not_touched() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": VOLUME}}}]
    async with running_controllers() as registry:
        registry.create(PERSISTENT_VOLUME_CLAIMS, "default", {"metadata": {"name": "web-scratch"}, "spec": VOLUME})
        add_pod(registry, "web", volumes=volumes)
        await settle(30)

        assert "ownerReferences" not in registry.get(PERSISTENT_VOLUME_CLAIMS, "default", "web-scratch")["metadata"]
