"""What is more important than what. Upstream: test/integration/scheduler/preemption/preemption_test.go."""

import pytest

from tests.kit.objects import node, pod, priority_class
from tests.kit.pod_specs import claims
from tests.kit.scene import a_scene
from tests.kit.storage_objects import claim, volume

ONCE = "ReadWriteOncePod"


@pytest.mark.anywhere
async def test_importance_is_what_the_class_says() -> None:
    """TestPodPriorityResolution: of the system's own classes too, and nothing is what a pod without one has."""
    class_by_name = {"kube": "system-cluster-critical", "node": "system-node-critical", "own": "high", "none": ""}
    async with a_scene(node("n")) as scene:
        await scene.has(*(pod(name, "100m", of_class) for name, of_class in class_by_name.items()))

        assert {name: scene.pod(name)["spec"]["priority"] for name in class_by_name} == {
            "kube": 2_000_000_000, "node": 2_000_001_000, "own": 100, "none": 0,
        }  # fmt: skip
        assert {scene.node_of(name) for name in class_by_name} == {"n"}


@pytest.mark.parametrize(
    ("user", "claim_names", "goes"),
    [
        pytest.param("low", ["data"], True, id="a less important user goes"),
        pytest.param("high", ["data"], False, id="an equal user stays"),
        pytest.param("low", ["data", "more"], True, id="one of two claims is in use"),
    ],
)
@pytest.mark.anywhere
async def test_a_claim_that_only_one_pod_may_use_is_for_the_most_important(
    user: str, claim_names: list[str], goes: bool
) -> None:
    """TestReadWriteOncePodPreemption (3)."""
    storage = [obj for name in ("data", "more") for obj in (volume(name, ONCE), claim(name, ONCE, bound_to=name))]
    async with a_scene(node("n"), *storage) as scene:
        await scene.has(pod("user", "100m", user, **claims("data")))
        await scene.has(pod("wants", "100m", "high", **claims(*claim_names)), within=10)

        assert scene.pods() == ({"wants"} if goes else {"user", "wants"})
        assert scene.node_of("wants") == ("n" if goes else "")


@pytest.mark.anywhere
async def test_pod_with_policy_never_is_still_tried_before_less_important_pods() -> None:
    patient = priority_class("patient", 1000, preemptionPolicy="Never")
    async with a_scene(node("n"), patient) as scene:
        await scene.has(pod("first", "1500m", "high"))
        await scene.has(pod("low", "1500m", "low"), pod("patient", "1500m", "patient"))
        await scene.loses("first", at_once=True, within=10)

        assert (scene.node_of("patient"), scene.node_of("low")) == ("n", "")
