"""Walk (b) for pods that need more than room: before they are bound, volumes and devices are given to their claims, and
got ready.

Everything is real but time, and the driver that gets a device ready: it is played here.
"""

import asyncio

from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, RESOURCE_CLAIMS
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import node, pod
from tests.kit.scene.followed import a_cluster
from tests.kit.storage_objects import DATA, NOT_PROVISIONED, PROVISIONED, WITH_DATA, local_volume


async def test_a_pod_gets_the_volume_that_its_node_reaches() -> None:
    async with a_cluster(node("a"), node("b"), NOT_PROVISIONED, DATA, local_volume("v", on="b")) as cluster:
        cluster.create(pod("web", **WITH_DATA))
        await asyncio.sleep(10)

        reference = cluster.get("v", PERSISTENT_VOLUMES)["spec"]["claimRef"]
        bound = cluster.get("data", PERSISTENT_VOLUME_CLAIMS)
        assert cluster.node_of("web") == "b"
        assert (reference["name"], reference["uid"]) == ("data", bound["metadata"]["uid"])
        assert bound["spec"]["volumeName"] == "v"
        assert [reason for reason, _ in cluster.events("web")] == ["Scheduled"]


async def test_a_volume_is_made_where_the_pod_goes() -> None:
    async with a_cluster(node("a"), PROVISIONED, DATA) as cluster:
        cluster.create(pod("web", **WITH_DATA))
        await asyncio.sleep(10)

        claim = cluster.get("data", PERSISTENT_VOLUME_CLAIMS)
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "a"
        assert claim["spec"]["volumeName"]
        assert cluster.node_of("web") == "a"


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    async with a_cluster(node("a"), node("b"), device_class(None), devices("b", "gpu-1"), device_claim()) as cluster:
        cluster.create(pod("web", **WITH_DEVICE))
        await asyncio.sleep(5)

        claimed = cluster.get("gpu", RESOURCE_CLAIMS)
        assert cluster.node_of("web") == "b"
        assert [result["device"] for result in claimed["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
        assert [consumer["name"] for consumer in claimed["status"]["reservedFor"]] == ["web"]
        assert claimed["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_device_that_has_to_be_attached_is_waited_for() -> None:
    attached = devices("b", "gpu-1", bindsToNode=True, bindingConditions=["attached"])
    async with a_cluster(node("b"), device_class(None), attached, device_claim()) as cluster:
        cluster.create(pod("web", **WITH_DEVICE))
        await asyncio.sleep(7)
        reasons = [reason for reason, _ in cluster.events("web")]
        assert (cluster.node_of("web"), reasons) == ("", ["BindingConditionsPending"])

        state = {"type": "attached", "status": "True", "reason": "Done", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        device = {"driver": "gpu.example.com", "pool": "b", "device": "gpu-1", "conditions": [state]}
        cluster.change(
            "gpu",
            lambda claim: claim["status"].update(devices=[device]),
            resource=RESOURCE_CLAIMS,
            subresource="status",
        )
        await asyncio.sleep(7)

        assert cluster.node_of("web") == "b"
