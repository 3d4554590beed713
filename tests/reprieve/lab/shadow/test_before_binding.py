"""Pods with volumes and devices are decided as if these were not bound yet: they are bound to the scheduler's node
before the pod is.
"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.rules.api_resources import Object
from extender.values.config.feature_gates import FeatureGates
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.device_objects import WITH_DEVICE, device_claim, device_class, devices
from tests.kit.storage_objects import DATA, NOT_PROVISIONED, PROVISIONED, WITH_DATA, local_volume
from tests.reprieve.lab.recordings.recorded_cluster import create, zoned
from tests.reprieve.lab.shadow.shadowed_cluster import shadowed
from tests.reprieve.lab.shadow.test_shadow import PACKING, sees

STORAGE = [NOT_PROVISIONED, DATA, local_volume("on-n1", on="n1"), local_volume("on-n2", on="n2")]
DEVICES = [device_class(None), device_claim(), devices("n1", "d0"), devices("n2", "d0")]
CASES = [
    pytest.param("volumes", WITH_DATA, STORAGE, id="volumes that are there"),
    pytest.param("volumes", WITH_DATA, [PROVISIONED, DATA], id="volumes that are made for the pod"),
    pytest.param("devices", WITH_DEVICE, DEVICES, id="devices"),
]


SILENT = FeatureGates.of({"NominatedNodeNameForExpectation": False})


async def one_on_n1_and_then(cluster: ObjectRegistry, spec: dict[str, Any]) -> None:
    create(cluster, "first", nodeSelector={"kubernetes.io/hostname": "n1"})
    await asyncio.sleep(10)
    create(cluster, "web", **spec)
    await asyncio.sleep(60)


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_equal_profiles_agree(shape: str, spec: dict[str, Any], objects: list[Object]) -> None:
    result = shadowed(lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects)

    assert (sees(result), result.total.agreement, result.total.unclear) == (set(), 1.0, 0)
    assert [share.decisions for share in result.by_shape if share.name == shape] == [1]


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_another_choice_is_seen_though_it_is_bound_already(
    shape: str, spec: dict[str, Any], objects: list[Object]
) -> None:
    result = shadowed(
        lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects, theirs=PACKING
    )

    assert sees(result) == {("web", "elsewhere", "NodeResourcesFit")}
    assert result.total.decisions == 2
    assert (result.differences[0].theirs.node, result.differences[0].ours.node) == ("n1", "n2")


@pytest.mark.parametrize(("shape", "spec", "objects"), CASES)
def test_a_scheduler_that_does_not_say_the_node_before(shape: str, spec: dict[str, Any], objects: list[Object]) -> None:
    silent = replace(PACKING, feature_gates=SILENT)

    result = shadowed(
        lambda cluster: one_on_n1_and_then(cluster, spec), zoned("n1", "a"), zoned("n2", "a"), *objects, theirs=silent
    )

    assert sees(result) == {("web", "elsewhere", "NodeResourcesFit")}
