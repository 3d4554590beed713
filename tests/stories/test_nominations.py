"""Promises of room: when they are written, and what they are worth.

Upstream: test/integration/scheduler/nominated_node_name, eventhandler.
"""

from typing import Any

import pytest

from extender.rules.api_resources import PODS, Object
from tests.kit.objects import node, pod
from tests.kit.scene import Scene, a_scene
from tests.stories.cluster_changes import changed


def _nominate(scene: Scene, name: str, where: str) -> None:
    nominated = changed(PODS, name, lambda obj: obj["status"].update(nominatedNodeName=where), subresource="status")
    nominated(scene)


async def _comes_nominated(scene: Scene, obj: Object, where: str) -> None:
    """Its gate is opened once somebody has nominated it."""
    name = obj["metadata"]["name"]
    await scene.has({**obj, "spec": {**obj["spec"], "schedulingGates": [{"name": "wait"}]}})
    _nominate(scene, name, where)
    await scene.changes(name, lambda obj: obj["spec"].pop("schedulingGates"), within=10)


@pytest.mark.over_a_socket
async def test_nomination_by_another_component_is_used_though_another_node_is_better() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, a pod with a nominated node name goes there, though another node
    were better.
    """
    async with a_scene(node("better", "8"), node("n", "2")) as scene:
        await _comes_nominated(scene, pod("p", "500m"), "n")

        assert scene.node_of("p") == "n"
        assert scene.nominated_node_of("p") == ""


@pytest.mark.anywhere
async def test_nomination_that_does_not_fit_is_overwritten_by_the_chosen_node() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, the nominated node does not fit: ignored, and cleared once the pod
    is bound.
    """
    async with a_scene(node("n", "200m"), node("other")) as scene:
        await _comes_nominated(scene, pod("p"), "n")

        assert scene.node_of("p") == "other"
        assert scene.nominated_node_of("p") == ""


@pytest.mark.anywhere
async def test_nomination_is_overwritten_by_that_of_a_preemption() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, set by others, overwritten by preemption."""
    async with a_scene(node("n"), node("small", "100m")) as scene:
        await scene.has(pod("low", "1500m", "low", stays=True))
        await _comes_nominated(scene, pod("high", "1500m", "high"), "small")

        assert scene.nominated_node_of("high") == "n"


@pytest.mark.anywhere
async def test_nomination_of_a_lower_priority_pod_does_not_block_a_higher_one() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, a nominated pod of low priority yields."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("middle", "1500m", "middle", nodeSelector={"never": "there"}))
        _nominate(scene, "middle", "n")
        await scene.has(pod("low", "1500m", "low"), pod("high", "1500m", "high"))

        assert scene.node_of("high") == "n"
        assert scene.node_of("low") == ""


@pytest.mark.over_a_socket
async def test_nomination_is_overwritten_by_that_of_a_better_node() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, overwrite NominatedNodeName with preemption: on the other node,
    fewer have to go.
    """
    on: list[dict[str, Any]] = [{"nodeSelector": {"kubernetes.io/hostname": name}} for name in ("n", "m")]
    async with a_scene(node("n", "4"), node("m", "4")) as scene:
        await scene.has(
            *(pod(f"low-{number}", "2", "low", **on[0]) for number in range(2)), pod("other", "3", "low", **on[1])
        )
        since = scene.now
        await _comes_nominated(scene, pod("high", "4", "high"), "n")

        promised = [
            obj["status"].get("nominatedNodeName") for obj in scene.history(since) if obj["metadata"]["name"] == "high"
        ]
        assert "m" in promised
        assert scene.node_of("high") == "m"
        assert scene.pods() == {"low-0", "low-1", "high"}


@pytest.mark.anywhere
async def test_nomination_that_cannot_fit_is_cleared_and_blocks_no_pod() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, NNN is ignored on pod that cannot fit on the node."""
    async with a_scene(node("n", "4")) as scene:
        await _comes_nominated(scene, pod("too-big", "5"), "n")
        await scene.has(pod("fits", "3"))

        assert (scene.nominated_node_of("too-big"), scene.node_of("too-big")) == ("", "")
        assert scene.node_of("fits") == "n"


@pytest.mark.anywhere
async def test_nomination_is_cleared_when_its_room_was_taken() -> None:
    """TestPreemptionAndNominatedNodeNameScenarios, NNN is ignored on lower priority pod when a higher priority one is
    being scheduled.
    """
    async with a_scene(node("n", "4")) as scene:
        await scene.has(pod("low", "4", "low", schedulingGates=[{"name": "wait"}]))
        _nominate(scene, "low", "n")
        await scene.has(pod("high", "4", "high"))
        assert scene.node_of("high") == "n"

        await scene.changes("low", lambda obj: obj["spec"].pop("schedulingGates"))

        assert (scene.nominated_node_of("low"), scene.node_of("low")) == ("", "")


def _is_deleted(scene: Scene) -> None:
    scene.api.delete(PODS, "default", "promised")


def _loses_its_promise(scene: Scene) -> None:
    _nominate(scene, "promised", "")


@pytest.mark.parametrize("happens", [_is_deleted, _loses_its_promise])
@pytest.mark.anywhere
async def test_pods_kept_out_by_a_nomination_are_retried_when_it_ends(happens: Any) -> None:
    """TestUpdateNominatedNodeName; the pods whose priority is higher did not have to, and are left alone."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("promised", "1500m", "high", nodeSelector={"never": "there"}))
        _nominate(scene, "promised", "n")
        await scene.has(pod("low", "1500m", "low"), pod("too-big", "3", "higher"))
        assert (scene.node_of("low"), scene.waits_in("low")) == ("", "unschedulable")
        assert (scene.waits_in("too-big"), scene.attempts("too-big")) == ("unschedulable", 1)

        happens(scene)
        await scene.passes(15)

        assert scene.node_of("low") == "n"
        assert scene.attempts("too-big") == 1


@pytest.mark.anywhere
async def test_gated_pod_reserves_no_room() -> None:
    """A pod that is not to be scheduled yet, and came with a promise, takes no room."""
    gated = pod("gated", "1500m", "high", schedulingGates=[{"name": "wait"}])
    async with a_scene(node("n"), {**gated, "status": {"nominatedNodeName": "n"}}) as scene:
        await scene.has(pod("low", "1500m", "low"))

        assert scene.nominated_node_of("gated") == "n"
        assert scene.node_of("low") == "n"


@pytest.mark.anywhere
async def test_pods_of_other_schedulers_reserve_no_room() -> None:
    """Whoever schedules them has to see to that."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("theirs", "1500m", "high", schedulerName="other"))
        _nominate(scene, "theirs", "n")
        await scene.has(pod("ours", "1500m", "low"))

        assert scene.node_of("ours") == "n"
