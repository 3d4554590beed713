"""Pods wait for devices on some nodes, and go to others.

Upstream: kubernetes#141829, #141898.
"""

import pytest

from extender.rules.api_resources import Object
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import node, pod
from tests.kit.scene import a_scene


def claim_of_all() -> Object:
    claim = device_claim()
    claim["spec"]["devices"]["requests"][0]["exactly"] = {"deviceClassName": "gpu", "allocationMode": "All"}
    return claim


def incomplete(on: str) -> Object:
    """One slice of two."""
    obj = devices(on, "gpu-1")
    obj["spec"]["pool"]["resourceSliceCount"] = 2
    return obj


@pytest.mark.parametrize("good", ["a", "b"])
async def test_a_pod_that_wants_all_devices_goes_to_a_node_whose_pool_is_complete(good: str) -> None:
    bad = "b" if good == "a" else "a"
    objects = (node("a"), node("b"), device_class(None), incomplete(bad), devices(good, "gpu-1", "gpu-2"))
    async with a_scene(*objects) as scene:
        await scene.has(claim_of_all(), pod("p", **WITH_DEVICE))

        assert scene.node_of("p") == good


async def test_a_pod_that_wants_all_devices_waits_while_every_pool_is_updated() -> None:
    """It is refused, with the pool in the message, and starts once the pool is complete."""
    async with a_scene(node("a"), device_class(None), incomplete("a")) as scene:
        await scene.has(claim_of_all(), pod("p", **WITH_DEVICE))
        condition = scene.condition("p")
        assert condition is not None
        assert condition[1] == "Unschedulable"
        assert (
            "1 claim default/gpu, request gpu: asks for all devices, but resource pool gpu.example.com/a is currently "
            "being updated" in condition[2]
        )

        second = devices("a", "gpu-2")
        second["metadata"]["name"] = "a-2"
        second["spec"]["pool"]["resourceSliceCount"] = 2
        await scene.has(second, within=30.0)

        assert scene.node_of("p") == "a"


async def test_a_refusal_that_names_a_claim_is_not_told_of_another_one() -> None:
    """What was found for the claims of one content is found once for all of them."""
    async with a_scene(node("a"), device_class(None), incomplete("a")) as scene:
        other = claim_of_all()
        other["metadata"]["name"] = "other"
        spec: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "other"}]}
        await scene.has(claim_of_all(), other, pod("p", **WITH_DEVICE), pod("q", **spec))

        conditions = [scene.condition(name) for name in "pq"]
        assert [
            f"claim default/{name}," in str(condition)
            for name, condition in zip(("gpu", "other"), conditions, strict=True)
        ] == [True, True]
