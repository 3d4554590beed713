"""Pods with volumes and devices are decided as if these were not bound yet: they are bound to the scheduler's node
before the pod is.
"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.cluster.api_resources import Object
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.values.config import FeatureGates
from extender.values.objects.claims import NO_PROVISIONER
from tests.extender.lab.recordings.recorded_cluster import create, zoned
from tests.extender.lab.shadow.shadowed_cluster import shadowed
from tests.extender.lab.shadow.test_shadow import PACKING, sees
from tests.walks.test_pod_with_volumes_and_devices_is_bound import DEVICE, SCRATCH, claim, storage_class, volume

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
REQUEST = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": REQUEST,
}


def devices(on: str) -> Object:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": on,
        "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{on}"},
        "spec": spec,
    }


STORAGE = [storage_class(NO_PROVISIONER), claim(), volume("on-n1", on="n1"), volume("on-n2", on="n2")]
PROVISIONED = [storage_class("disks.example.com"), claim()]
DEVICES = [CLASS, CLAIM, devices("n1"), devices("n2")]
CASES = [
    pytest.param("volumes", SCRATCH, STORAGE, id="volumes that are there"),
    pytest.param("volumes", SCRATCH, PROVISIONED, id="volumes that are made for the pod"),
    pytest.param("devices", DEVICE, DEVICES, id="devices"),
]


SILENT = FeatureGates.of({"NominatedNodeNameForExpectation": False})


async def one_on_n1_and_then(cluster: ObjectRegistry, spec: dict[str, Any]) -> None:
    create(cluster, "first", nodeSelector={"kubernetes.io/hostname": "n1"})
    await asyncio.sleep(10)
    create(cluster, "web", **spec)
    await asyncio.sleep(60)


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_equal_profiles_agree(shape: str, spec: dict[str, Any], objects: list[Object]) -> None:
    found = shadowed(lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects)

    assert (sees(found), found.total.agreement, found.total.unclear) == (set(), 1.0, 0)
    assert [share.decisions for share in found.by_shape if share.name == shape] == [1]


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_another_choice_is_seen_though_it_is_bound_already(
    shape: str, spec: dict[str, Any], objects: list[Object]
) -> None:
    found = shadowed(
        lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects, theirs=PACKING
    )

    assert sees(found) == {("web", "elsewhere", "NodeResourcesFit")}
    assert found.total.decisions == 2
    assert (found.differences[0].theirs.node, found.differences[0].ours.node) == ("n1", "n2")


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_a_scheduler_that_does_not_say_the_node_before(shape: str, spec: dict[str, Any], objects: list[Object]) -> None:
    silent = replace(PACKING, feature_gates=SILENT)

    found = shadowed(
        lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects, theirs=silent
    )

    assert sees(found) == {("web", "elsewhere", "NodeResourcesFit")}
