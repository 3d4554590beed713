"""Administrators taint devices by rules, whichever driver publishes them. In memory only: a kube-apiserver has gates of
its own.

Upstream: test/integration/dra, device taints; resourceslice/tracker/tracker_test.go.
"""

from typing import Any

import pytest

from extender.rules.api_resources import DEVICE_TAINT_RULES, RESOURCE_SLICES, Object
from extender.rules.statuses import ApiStatus
from tests.kit.device_objects import DRIVER, device_class, devices, wanting
from tests.kit.objects import node
from tests.kit.scene import a_scene
from tests.stories.devices import held_devices

RULES = {"DRADeviceTaintRules": True}
BROKEN = {"key": "example.com/broken", "effect": "NoSchedule"}
NOT_ENOUGH = (
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def rule(selector: dict[str, str] | None, taint: dict[str, str] | None = None, *, name: str = "rule") -> Object:
    spec = {"taint": taint or BROKEN, **({} if selector is None else {"deviceSelector": selector})}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("selector", "got"),
    [
        pytest.param({"device": "gpu-1"}, "gpu-2", id="one device"),
        pytest.param({"driver": DRIVER, "pool": "n", "device": "gpu-1"}, "gpu-2", id="driver, pool and device"),
        pytest.param({"driver": "other.example.com", "device": "gpu-1"}, "gpu-1", id="a device of another driver"),
        pytest.param({"pool": "m", "device": "gpu-1"}, "gpu-1", id="a device of another pool"),
        pytest.param({"driver": DRIVER}, "", id="all devices of a driver"),
        pytest.param({}, "", id="all devices"),
        pytest.param(None, "gpu-1", id="no selector selects nothing"),
    ],
)
async def test_a_rule_keeps_pods_off_the_devices_that_it_selects(selector: dict[str, str] | None, got: str) -> None:
    async with a_scene(
        node("n"), device_class(), devices("n", "gpu-1", "gpu-2"), rule(selector), features=RULES
    ) as scene:
        await scene.has(wanting("p"))

        assert held_devices(scene) == ([got] if got else [])
        if not got:
            assert scene.condition("p") == ("False", "Unschedulable", NOT_ENOUGH)


async def test_a_pod_that_waits_is_tried_again_when_the_rule_goes() -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1"), rule({}), features=RULES) as scene:
        await scene.has(wanting("p"))
        assert scene.waits_in("p") == "unschedulable"

        await scene.loses("rule", resource=DEVICE_TAINT_RULES)
        assert held_devices(scene) == ["gpu-1"]


async def test_a_rule_that_changes_requeues_pods_only_if_taints_of_devices_change() -> None:
    async with a_scene(
        node("n"), device_class(), devices("n", "gpu-1"), rule({"driver": DRIVER}), features=RULES
    ) as scene:
        await scene.has(wanting("p"))

        await scene.changes(
            "rule", lambda obj: obj["spec"].update(deviceSelector={"pool": "n"}), resource=DEVICE_TAINT_RULES
        )
        assert (scene.waits_in("p"), scene.attempts("p")) == ("unschedulable", 1)

        await scene.changes(
            "rule", lambda obj: obj["spec"].update(deviceSelector={"pool": "m"}), resource=DEVICE_TAINT_RULES
        )
        assert held_devices(scene) == ["gpu-1"]


async def test_rules_taint_devices_that_are_published_later_beside_taints_of_the_driver() -> None:
    driver_taints = {"taints": [{"key": "example.com/slow", "effect": "None"}]}
    async with a_scene(node("n"), device_class(), rule({"device": "gpu-1"}), features=RULES) as scene:
        await scene.has(devices("n", "gpu-1", "gpu-2", **driver_taints), wanting("p"))
        assert held_devices(scene) == ["gpu-2"]
        (published,) = scene.api.list(RESOURCE_SLICES, "")
        assert [device["taints"] for device in published["spec"]["devices"]] == [driver_taints["taints"]] * 2


async def test_device_taint_without_effect_keeps_no_pod_away() -> None:
    async with a_scene(
        node("n"),
        device_class(),
        devices("n", "gpu-1"),
        rule({}, {"key": "example.com/note", "effect": "None"}),
        features=RULES,
    ) as scene:
        await scene.has(wanting("p"))
        assert held_devices(scene) == ["gpu-1"]


async def test_a_device_that_is_tainted_later_stays_with_its_pod_and_goes_to_no_other() -> None:
    async with a_scene(node("n"), device_class(), devices("n", "gpu-1"), features=RULES) as scene:
        await scene.has(wanting("p"))
        await scene.has(rule({}, {**BROKEN, "effect": "NoExecute"}), wanting("q"))

        assert held_devices(scene) == ["gpu-1"]
        assert (scene.node_of("p"), scene.node_of("q")) == ("n", "")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"taint": {"key": "k"}}, "spec.taint.effect: Required value", id="no effect"),
        pytest.param(
            {"taint": BROKEN, "deviceSelector": {"pool": "A/"}},
            "spec.deviceSelector.pool: Invalid value",
            id="no pool name",
        ),
        pytest.param(
            {"taint": BROKEN, "deviceSelector": {"driver": ""}},
            "spec.deviceSelector.driver: Required value",
            id="empty driver",
        ),
    ],
)
async def test_the_api_refuses_rules_that_make_no_sense(spec: dict[str, Any], why: str) -> None:
    async with a_scene(node("n"), features=RULES) as scene:
        with pytest.raises(ApiStatus) as refused:
            await scene.has({**rule({}), "spec": spec})
        assert why in str(refused.value)
