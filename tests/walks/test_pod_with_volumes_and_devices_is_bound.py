"""Walk (b) for pods that need more than room: before they are bound, volumes and devices are given to their claims, and
got ready.

Everything is real but time, and the driver that gets a device ready: it is played here.
"""

import asyncio
from typing import Any

from extender.rules.api_resources import PODS, RESOURCES, Resource
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.cluster import a_cluster, events_of
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import node, pod
from tests.kit.storage_objects import DATA, NOT_PROVISIONED, PROVISIONED, WITH_DATA, local_volume


def resource(plural: str) -> Resource:
    return next(one for one in RESOURCES if one.plural == plural)


def changed(cluster: ObjectRegistry, plural: str, name: str, change: dict[str, Any], subresource: str = "") -> None:
    """Somebody else's controller changes an object."""
    kind = resource(plural)
    namespace = "default" if kind.namespaced else ""
    obj = cluster.get(kind, namespace, name)
    for part, members in change.items():
        obj[part] = {**obj.get(part, {}), **members}
    cluster.update(kind, namespace, name, obj, subresource=subresource)


def where(cluster: ObjectRegistry, name: str = "web") -> str:
    return str(cluster.get(PODS, "default", name)["spec"].get("nodeName", ""))


async def test_a_pod_gets_the_volume_that_its_node_reaches() -> None:
    async with a_cluster(node("a"), node("b"), NOT_PROVISIONED, DATA, local_volume("v", on="b")) as cluster:
        cluster.create(PODS, "default", pod("web", **WITH_DATA))
        await asyncio.sleep(10)

        reference = cluster.get(resource("persistentvolumes"), "", "v")["spec"]["claimRef"]
        bound = cluster.get(resource("persistentvolumeclaims"), "default", "data")
        assert where(cluster) == "b"
        assert (reference["name"], reference["uid"]) == ("data", bound["metadata"]["uid"])
        assert bound["spec"]["volumeName"] == "v"
        assert [reason for reason, _ in events_of(cluster, "web")] == ["Scheduled"]


async def test_a_volume_is_made_where_the_pod_goes() -> None:
    async with a_cluster(node("a"), PROVISIONED, DATA) as cluster:
        cluster.create(PODS, "default", pod("web", **WITH_DATA))
        await asyncio.sleep(10)

        made = cluster.get(resource("persistentvolumeclaims"), "default", "data")
        assert made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "a"
        assert made["spec"]["volumeName"]
        assert where(cluster) == "a"


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    async with a_cluster(node("a"), node("b"), device_class(None), devices("b", "gpu-1"), device_claim()) as cluster:
        cluster.create(PODS, "default", pod("web", **WITH_DEVICE))
        await asyncio.sleep(5)

        claimed = cluster.get(resource("resourceclaims"), "default", "gpu")
        assert where(cluster) == "b"
        assert [result["device"] for result in claimed["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
        assert [consumer["name"] for consumer in claimed["status"]["reservedFor"]] == ["web"]
        assert claimed["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_device_that_has_to_be_attached_is_waited_for() -> None:
    attached = devices("b", "gpu-1", bindsToNode=True, bindingConditions=["attached"])
    async with a_cluster(node("b"), device_class(None), attached, device_claim()) as cluster:
        cluster.create(PODS, "default", pod("web", **WITH_DEVICE))
        await asyncio.sleep(7)
        told = [reason for reason, _ in events_of(cluster, "web")]
        assert (where(cluster), told) == ("", ["BindingConditionsPending"])

        condition = {
            "type": "attached",
            "status": "True",
            "reason": "Done",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": "gpu.example.com", "pool": "b", "device": "gpu-1", "conditions": [condition]}
        changed(cluster, "resourceclaims", "gpu", {"status": {"devices": [device]}}, "status")
        await asyncio.sleep(7)

        assert where(cluster) == "b"
