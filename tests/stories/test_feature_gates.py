"""Feature gates, on and off. In memory only: a kube-apiserver has gates of its own.

Upstream: test/integration/scheduler/preemption, queueing, nominated_node_name, taint and filters.
"""

import asyncio
from typing import Any

import httpx
import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import NODES, Object
from extender.rules.statuses import ApiStatus
from extender.values.config.feature_gates import FeatureGates
from extender.values.objects.pod import Pod
from tests.kit.device_objects import device_class, devices, wanting
from tests.kit.objects import is_deletion, node, pod, refusal
from tests.kit.pod_specs import taint
from tests.kit.saying_plugins import holding, pre_binding
from tests.kit.scene import a_scene
from tests.kit.storage_objects import capacity, claim, csi, csi_driver, csi_node, storage_class, volume
from tests.stories.cluster_changes import labels

SYNCHRONOUS = {"SchedulerAsyncPreemption": False}
COMPARING = {"TaintTolerationComparisonOperators": True}


@pytest.mark.parametrize("is_asynchronous", [True, False], ids=["asynchronous", "synchronous"])
async def test_other_pods_wait_for_a_preemption_only_if_it_is_synchronous(is_asynchronous: bool) -> None:
    """TestAsyncPreemption against SchedulerAsyncPreemption=false: the cycle waits until the victims are deleted, and
    nominates the pod then.
    """

    async def later(request: httpx.Request) -> None:
        await asyncio.sleep(20)

    async with a_scene(
        node("n"),
        node("small", "200m"),
        interfere=lambda request: later(request) if is_deletion(request) else None,
        features={} if is_asynchronous else SYNCHRONOUS,
    ) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), pod("other", "100m"))

        assert (scene.node_of("other") == "small") is is_asynchronous
        assert (scene.nominated_node_of("high") == "n") is is_asynchronous

        await scene.passes(60)

        assert (scene.node_of("high"), scene.node_of("other")) == ("n", "small")
        assert "low" not in scene.pods()


async def test_a_victim_that_cannot_be_deleted_fails_a_synchronous_preemption() -> None:
    """TestPrepareCandidate, where the API fails: PostFilter answers with the error, and the pod is not nominated."""
    fails = [True]

    def refuses(request: httpx.Request) -> Any:
        return refusal(403, "Forbidden", "hands off") if fails and is_deletion(request) else None

    async with a_scene(node("n"), interfere=refuses, features=SYNCHRONOUS) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=2)

        condition = scene.condition("high")
        assert condition is not None
        assert condition[:2] == ("False", "Unschedulable")
        assert condition[2].startswith("0/1 nodes are available: 1 Insufficient cpu. ")
        assert "preemption: " in condition[2] and "hands off" in condition[2]
        assert (scene.nominated_node_of("high"), scene.leaving()) == ("", set())
        assert scene.alone.world.metrics.preemption_attempts == 1

        fails.clear()
        await scene.changes("n", labels(zone="a"), resource=NODES)
        await scene.passes(400)

        assert scene.node_of("high") == "n"


async def test_synchronous_preemption_clears_lower_nominations_and_deletes_each_victim_once() -> None:
    """TestPrepareCandidate: a victim that is leaving already is skipped."""
    deletions: list[str] = []

    def notes(request: httpx.Request) -> None:
        if is_deletion(request):
            deletions.append(request.url.path.rpartition("/")[2])

    async with a_scene(node("n"), interfere=notes, features=SYNCHRONOUS) as scene:
        await scene.has(pod("low", "1500m", "low", stays=True))
        await scene.has(pod("middle", "1500m", "middle"))
        assert (scene.nominated_node_of("middle"), scene.leaving()) == ("n", {"low"})

        await scene.has(pod("high", "1500m", "high"))

        assert (scene.nominated_node_of("high"), scene.nominated_node_of("middle")) == ("n", "")
        assert deletions == ["low"]

        await scene.lets_go("low", within=30)

        assert (scene.node_of("high"), scene.node_of("middle")) == ("n", "")


@pytest.mark.parametrize("is_popped_early", [True, False], ids=["on", "off"])
async def test_a_pod_that_pauses_is_tried_early_only_if_it_may_be_popped_from_backoff_q(is_popped_early: bool) -> None:
    """TestPopFromBackoffQWhenActiveQEmpty, with SchedulerPopFromBackoffQ on and off."""
    async with a_scene(node("n"), features={"SchedulerPopFromBackoffQ": is_popped_early}) as scene:
        await scene.has(pod("p", nodeSelector={"zone": "a"}), within=0.1)
        await scene.changes("n", labels(zone="a"), resource=NODES, within=0.1)

        assert scene.node_of("p") == ("n" if is_popped_early else "")
        assert scene.waits_in("p") == ("" if is_popped_early else "backoff")

        await scene.passes(3)

        assert scene.node_of("p") == "n"


async def _takes_a_while(_: Pod) -> fwk.Status:
    await asyncio.sleep(2)
    return fwk.SUCCESS


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
@pytest.mark.parametrize(
    "plugin", [pre_binding(_takes_a_while), holding("p", 5.0)], ids=["PreBind takes long", "the pod waits at Permit"]
)
async def test_the_node_is_nominated_before_a_long_binding_only_for_expectation(
    plugin: type[fwk.Plugin], is_on: bool
) -> None:
    """TestNominatedNodeNameIsSetBeforePreBindAndWaitOnPermit, with NominatedNodeNameForExpectation on and off."""
    async with a_scene(node("n"), plugins=[plugin], features={"NominatedNodeNameForExpectation": is_on}) as scene:
        since = scene.now
        await scene.has(pod("p"), within=10)

        nominated = [obj["status"].get("nominatedNodeName") for obj in scene.history(since)]
        assert ("n" in nominated) is is_on


async def test_without_expectation_every_pre_bind_runs_even_one_that_has_nothing_to_do() -> None:
    prepared: list[str] = []

    async def prepare(pod: Pod) -> fwk.Status:
        prepared.append(pod.name)
        return fwk.SUCCESS

    idle = pre_binding(prepare, concerns=lambda pod: False)
    async with a_scene(node("n"), plugins=[idle], features={"NominatedNodeNameForExpectation": False}) as scene:
        await scene.has(pod("p"))

        assert (scene.node_of("p"), prepared) == ("n", ["p"])


def _tolerating(operator: str, value: str, key: str = "sla", effect: str = "NoSchedule") -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": operator, "value": value, "effect": effect}]}


@pytest.mark.parametrize(
    ("operator", "tolerated_value", "of_taint", "fits"),
    [
        pytest.param("Gt", "900", "950", True, id="the taint is greater"),
        pytest.param("Gt", "950", "950", False, id="the taint is as great"),
        pytest.param("Gt", "950", "900", False, id="the taint is smaller, and greater is asked for"),
        pytest.param("Lt", "950", "900", True, id="the taint is smaller"),
        pytest.param("Lt", "900", "900", False, id="the taint is as small"),
        pytest.param("Lt", "900", "950", False, id="the taint is greater, and smaller is asked for"),
        pytest.param("Gt", "-10", "5", True, id="a negative number"),
        pytest.param("Gt", "5", "high", False, id="the taint is no number"),
        pytest.param("Gt", "5", "007", False, id="the taint has leading zeros"),
        pytest.param("Lt", "5", "", False, id="the taint has no value"),
        pytest.param("Gt", "0", "9223372036854775808", False, id="the taint is beyond int64"),
    ],
)
async def test_a_toleration_compares_numbers(operator: str, tolerated_value: str, of_taint: str, fits: bool) -> None:
    """TestTaintTolerationFilter and TestTaintNodeByCondition with Gt and Lt, while TaintTolerationComparisonOperators
    is on.
    """
    tainted = node("n", taints=[{**taint("sla"), "value": of_taint}])
    async with a_scene(tainted, features=COMPARING, controllers=False) as scene:
        await scene.has(pod("p", "100m", **_tolerating(operator, tolerated_value)))

        assert scene.node_of("p") == ("n" if fits else "")
        if not fits:
            assert scene.condition("p") == ("False", "Unschedulable", UNTOLERATED)


UNTOLERATED = (
    "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


async def test_pod_is_admitted_once_the_value_of_the_taint_is_tolerated() -> None:
    """TestTaintTolerationGtLtIntegration: a change of the node's taint requeues the pod, and only one that helps."""
    async with a_scene(
        node("n", taints=[{**taint("sla"), "value": "800"}]), features=COMPARING, controllers=False
    ) as scene:
        await scene.has(pod("p", "100m", **_tolerating("Gt", "900")))

        await scene.changes("n", lambda obj: obj["spec"]["taints"][0].update(value="850"), resource=NODES)
        assert (scene.waits_in("p"), scene.attempts("p")) == ("unschedulable", 1)

        await scene.changes("n", lambda obj: obj["spec"]["taints"][0].update(value="950"), resource=NODES)
        assert scene.node_of("p") == "n"


async def test_a_soft_taint_whose_number_is_tolerated_costs_no_score() -> None:
    soft = {"key": "sla", "effect": "PreferNoSchedule"}
    nodes = [node("little", taints=[{**soft, "value": "500"}]), node("much", taints=[{**soft, "value": "990"}])]
    async with a_scene(*nodes, features=COMPARING, controllers=False) as scene:
        await scene.has(*(pod(f"p{number}", "100m", **_tolerating("Gt", "900", effect="")) for number in range(4)))

        assert {scene.node_of(f"p{number}") for number in range(4)} == {"much"}


@pytest.mark.parametrize(
    ("features", "operator", "value", "why"),
    [
        pytest.param(
            {},
            "Gt",
            "5",
            'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
            id="off",
        ),
        pytest.param(
            COMPARING,
            "Lt",
            "05",
            'spec.tolerations[0].value: Invalid value: "05": must be a valid decimal integer in canonical form',
            id="on",
        ),
    ],
)
async def test_the_api_takes_comparisons_of_numbers_only_while_the_gate_is_on(
    features: dict[str, bool], operator: str, value: str, why: str
) -> None:
    async with a_scene(node("n"), features=features) as scene:
        with pytest.raises(ApiStatus) as refused:
            await scene.has(pod("p", **_tolerating(operator, value)))

        assert why in str(refused.value)


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
async def test_features_that_nodes_declare_count_only_while_their_gate_is_on(is_on: bool) -> None:
    """The plugin NodeDeclaredFeatures is in no profile while its gate is off."""
    async with a_scene(node("n"), features={"NodeDeclaredFeatures": is_on}) as scene:
        plugins = scene.alone.frameworks["default-scheduler"].plugins.filter

        assert ("NodeDeclaredFeatures" in [name for name, _ in plugins]) is is_on
        await scene.has(pod("p"))
        assert scene.node_of("p") == "n"


DRIVER = "disks.example.com"


def _pod_with(claim_name: str) -> Object:
    return pod("p", "100m", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def _room(name: str, amount: str) -> Object:
    """Capacity for new volumes on one node."""
    return capacity(name, "disks", amount) | {"nodeTopology": {"matchLabels": {"kubernetes.io/hostname": name}}}


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
async def test_the_node_with_more_storage_is_better_only_while_storage_is_scored(is_on: bool) -> None:
    """StorageCapacityScoring. The other node has more processors left."""
    storage = [
        storage_class("disks") | {"provisioner": DRIVER},
        csi_driver(DRIVER),
        _room("fast", "2Mi"),
        _room("roomy", "100Mi"),
    ]
    gates = {"StorageCapacityScoring": is_on}
    async with a_scene(
        node("fast", "8"), node("roomy", "2"), *storage, claim("c", storage_class="disks"), features=gates
    ) as scene:
        await scene.has(_pod_with("c"))

        assert scene.node_of("p") == ("roomy" if is_on else "fast")


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
async def test_a_driver_keeps_pods_off_nodes_where_it_is_not_installed_only_while_limits_scale(is_on: bool) -> None:
    """VolumeLimitScaling, with preventPodSchedulingIfMissing. A CSINode that comes lets the pod in."""
    driver = csi_driver(DRIVER) | {"spec": {"preventPodSchedulingIfMissing": True}}
    storage = [driver, volume("v", **csi(DRIVER, "v")), claim("c", bound_to="v")]
    async with a_scene(node("n"), *storage, features={"VolumeLimitScaling": is_on}) as scene:
        await scene.has(_pod_with("c"))

        assert scene.node_of("p") == ("" if is_on else "n")
        if is_on:
            state = scene.condition("p")
            assert state is not None
            assert state[2].startswith(f"0/1 nodes are available: 1 {DRIVER} CSI driver is not installed on the node.")

            entry = csi_node("n") | {"spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "topologyKeys": None}]}}
            await scene.has(entry)

            assert scene.node_of("p") == "n"


@pytest.mark.parametrize(("version", "is_written"), [("1.33", False), ("1.36", True)])
async def test_a_condition_names_the_generation_that_was_judged_from_the_version_on_that_tracks_it(
    version: str, is_written: bool
) -> None:
    """PodObservedGenerationTracking, which is alpha and off in 1.33."""
    async with a_scene(node("n"), features=FeatureGates.of({}, version)) as scene:
        await scene.has(pod("p", "8"))

        [condition] = [
            condition for condition in scene.pod("p")["status"]["conditions"] if condition["type"] == "PodScheduled"
        ]
        assert ("observedGeneration" in condition) is is_written


@pytest.mark.parametrize(("version", "fits"), [("1.33", True), ("1.36", False)])
async def test_a_claim_gets_a_volume_of_another_attributes_class_until_those_count(version: str, fits: bool) -> None:
    """VolumeAttributesClass, which is off in 1.33."""
    gold = claim("c", storage_class="local")
    gold["spec"]["volumeAttributesClassName"] = "gold"
    storage = [
        storage_class("local") | {"provisioner": "kubernetes.io/no-provisioner"},
        volume("v", storage_class="local"),
        gold,
    ]
    async with a_scene(node("n"), *storage, features=FeatureGates.of({}, version)) as scene:
        await scene.has(_pod_with("c"))

        assert (scene.node_of("p") == "n") is fits


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
async def test_pods_get_devices_for_extended_resources_only_while_their_gate_is_on(is_on: bool) -> None:
    """While it is off, a node has what its device plugin offers, and nothing else."""
    async with a_scene(
        node("n"), device_class(), devices("n", "gpu-1"), features={"DRAExtendedResource": is_on}
    ) as scene:
        await scene.has(wanting("p"))

        assert (scene.node_of("p") == "n") is is_on
        condition = scene.condition("p")
        assert condition is not None
        assert ("Insufficient example.com/gpu" in condition[2]) is not is_on
