"""Pods of a group that share a claim of devices start together.

Upstream: test/integration/dra, podgroup; test/e2e/dra (v1.36.2, kubernetes#137617, #137647, #139016, #140089, #140478).
"""

import random
from typing import Final

import httpx
import pytest

from extender.rules.api_resources import Object
from tests.kit.device_objects import GROUP, WITH_DEVICE, device_claim, device_class, devices
from tests.kit.objects import GROUP_GATES, ONLY_GANGS, members, node, pod, pod_group
from tests.kit.scene import Scene, a_scene
from tests.stories.devices import claims, held_devices

NETWORK: Final[Object] = {
    **GROUP,
    "kind": "ResourceSlice",
    "metadata": {"name": "network"},
    "spec": {
        "driver": "net.example.com",
        "allNodes": True,
        "pool": {"name": "network", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "fabric"}],
    },
}
"""A device that all nodes can use at the same time."""
NETWORK_CLASS: Final[Object] = {
    **GROUP,
    "kind": "DeviceClass",
    "metadata": {"name": "net"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "net.example.com"'}}]},
}
OWN_DEVICE: Final[Object] = {
    "resourceClaims": [*WITH_DEVICE["resourceClaims"], {"name": "own", "resourceClaimTemplateName": "own"}]
}
"""Spec of a pod with a claim of its own besides the one it shares."""


def network_claim() -> Object:
    claim = device_claim()
    claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "net"
    return claim


def nodes_of(scene: Scene, number: int, group: str = "g") -> list[str]:
    return sorted(scene.node_of(f"{group}{place}") for place in range(number))


def users(scene: Scene, name: str = "gpu") -> list[str]:
    (claim,) = (claim for claim in claims(scene) if claim["metadata"]["name"] == name)
    return sorted(user["name"] for user in (claim.get("status") or {}).get("reservedFor") or ())


@pytest.mark.parametrize("features", [pytest.param(ONLY_GANGS, id="gangs"), pytest.param(GROUP_GATES, id="all gates")])
@pytest.mark.parametrize("number", [2, 3, 20])
async def test_a_gang_that_shares_a_device_of_all_nodes_starts(features: dict[str, bool], number: int) -> None:
    gang = members(number, cpu="100m", **WITH_DEVICE)
    async with a_scene(node("n"), node("m"), NETWORK_CLASS, NETWORK, features=features) as scene:
        await scene.has(network_claim(), pod_group(min_count=number), *gang)

        assert set(nodes_of(scene, number)) == {"m", "n"}
        assert held_devices(scene) == ["fabric"]
        assert users(scene) == sorted(one["metadata"]["name"] for one in gang)


async def test_all_members_go_where_the_shared_device_is() -> None:
    objects = (node("n", "8"), node("m", "4"), device_class(None), devices("m", "gpu-1"))
    async with a_scene(*objects, features=ONLY_GANGS) as scene:
        await scene.has(device_claim(), pod_group(min_count=3), *members(3, **WITH_DEVICE))

        assert nodes_of(scene, 3) == ["m", "m", "m"]


async def test_no_member_starts_and_nothing_is_allocated_where_the_device_is_too_far_for_one_of_them() -> None:
    """The third would fit, but not where the device is."""
    objects = (node("n", "8"), node("m", "2"), device_class(None), devices("m", "gpu-1"))
    async with a_scene(*objects, features=ONLY_GANGS) as scene:
        await scene.has(device_claim(), pod_group(min_count=3), *members(3, **WITH_DEVICE))

        assert nodes_of(scene, 3) == ["", "", ""]
        assert held_devices(scene) == []

        await scene.has(pod("other", "1", **WITH_DEVICE))

        assert scene.node_of("other") == "m"


async def test_members_have_devices_of_their_own_besides_the_shared_one() -> None:
    template = {
        **GROUP,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "own"},
        "spec": {"spec": device_claim()["spec"]},
    }
    gpus = (device_class(None), devices("n", "gpu-1"), devices("m", "gpu-2"), template)
    async with a_scene(node("n"), node("m"), NETWORK_CLASS, NETWORK, *gpus, features=ONLY_GANGS) as scene:
        await scene.has(network_claim(), pod_group(min_count=2), *members(2, **OWN_DEVICE))

        assert "" not in nodes_of(scene, 2)
        assert held_devices(scene) == ["fabric", "gpu-1", "gpu-2"]


async def test_of_two_gangs_that_each_want_the_only_device_one_starts() -> None:
    """And the other once the first is gone."""
    async with a_scene(node("n", "8"), device_class(None), devices("n", "gpu-1"), features=ONLY_GANGS) as scene:
        spec: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "other"}]}
        await scene.has(
            *(device_claim(), device_claim("other"), pod_group("g", 2), pod_group("h", 2)),
            *members(2, **WITH_DEVICE),
            *members(2, of="h", **spec),
        )
        started = [group for group in ("g", "h") if nodes_of(scene, 2, group) == ["n", "n"]]
        assert len(started) == 1
        assert held_devices(scene) == ["gpu-1"]

        for place in range(2):
            await scene.loses(f"{started[0]}{place}", at_once=True)
        await scene.passes(30.0)

        assert nodes_of(scene, 2, "h" if started == ["g"] else "g") == ["n", "n"]


async def test_a_member_that_comes_late_joins_the_others_at_their_device() -> None:
    async with a_scene(node("n", "8"), device_class(None), devices("n", "gpu-1"), features=ONLY_GANGS) as scene:
        await scene.has(device_claim(), pod_group(min_count=2), *members(2, **WITH_DEVICE))
        await scene.has(*members(1, first=2, **WITH_DEVICE))

        assert nodes_of(scene, 3) == ["n", "n", "n"]
        assert users(scene) == ["g0", "g1", "g2"]


@pytest.mark.parametrize("seed", range(5))
async def test_a_gang_starts_in_the_end_although_writes_of_its_claim_fail(seed: int) -> None:
    """Its device is never promised to anybody else."""
    chance = random.Random(seed)

    def interferes(request: httpx.Request) -> httpx.Response | None:
        if request.method != "PATCH" or "/resourceclaims/" not in request.url.path or chance.random() < 0.6:
            return None
        if chance.random() < 0.5:
            raise httpx.ReadError("the connection is gone")
        return httpx.Response(409, json={"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409})

    objects = (node("n", "8"), device_class(None), devices("n", "gpu-1"))
    async with a_scene(*objects, features=ONLY_GANGS, interfere=interferes, seed=seed) as scene:
        other: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "other"}]}
        await scene.has(device_claim(), device_claim("other"), pod_group(min_count=4), *members(4, **WITH_DEVICE))
        await scene.has(pod("late", "1", **other), within=120.0)

        assert nodes_of(scene, 4) == ["n"] * 4
        assert scene.node_of("late") == ""
        assert held_devices(scene) == ["gpu-1"]
