"""Whose turn it is. Upstream: pkg/scheduler/backend/queue/scheduling_queue_test.go."""

import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import NODES
from tests.kit.objects import node, pod
from tests.kit.saying_plugins import looking_first
from tests.kit.scene import Scene, a_scene
from tests.stories.cluster_changes import labels


class Turns:
    """Whose turn it was, as a plugin sees it that refuses whom it is told to."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.taken: list[str] = []

    def plugin(self) -> type[fwk.Plugin]:
        def says(pod: fwk.Pod) -> fwk.Status:
            self.taken.append(pod.name)
            return fwk.unschedulable("not now") if pod.name in self.refused else fwk.SUCCESS

        return looking_first(says, events=[fwk.on(fwk.EventResource.NODE, fwk.ActionType.UPDATE_NODE_LABEL)])


async def _calls_all(scene: Scene, value: str) -> None:
    await scene.changes("n", labels(called=value), resource=NODES, within=0.1)


@pytest.mark.over_a_socket
async def test_a_pod_that_was_tried_goes_behind_its_equals() -> None:
    """TestRecentlyTriedPodsGoBack."""
    turns = Turns("p0")
    async with a_scene(node("n"), plugins=[turns.plugin()], by_hand=True) as scene:
        await scene.has(*(pod(f"p{number}", "100m") for number in range(5)), within=0.1)
        await scene.tries(1)
        assert scene.waits_in("p0") == "unschedulable"
        await _calls_all(scene, "yes")
        await scene.tries(5)

        assert turns.taken == ["p0", "p1", "p2", "p3", "p4", "p0"]


@pytest.mark.anywhere
async def test_a_pod_that_is_refused_again_and_again_does_not_block_a_newer_one() -> None:
    """TestPodFailedSchedulingMultipleTimesDoesNotBlockNewerPod."""
    turns = Turns("old", "new")
    async with a_scene(node("n"), plugins=[turns.plugin()], by_hand=True) as scene:
        await scene.has(pod("old", "100m", "high"), within=0.1)
        await scene.tries(1)
        await scene.has(pod("new", "100m", "high"), within=0.1)
        await scene.tries(1)
        await _calls_all(scene, "once")
        await scene.tries(1)
        turns.refused.clear()
        await _calls_all(scene, "twice")
        await scene.tries(2)

        # The old one was tried again, and is behind the new one then.
        assert turns.taken == ["old", "new", "old", "new", "old"]
        assert (scene.node_of("old"), scene.node_of("new")) == ("n", "n")


@pytest.mark.anywhere
async def test_a_pod_that_pauses_lets_less_important_ones_pass() -> None:
    """TestHighPriorityBackoff: importance counts among those whose turn it may be."""
    turns = Turns("high")
    async with a_scene(node("n"), plugins=[turns.plugin()], by_hand=True) as scene:
        await scene.has(pod("high", "100m", "high"), pod("middle", "100m", "middle"), within=0.1)
        await scene.tries(1)
        await _calls_all(scene, "yes")
        assert scene.waits_in("high") == "backoff"
        await scene.tries(1)

        assert turns.taken == ["high", "middle"]


async def test_most_important_pod_is_flushed_first_after_five_minutes() -> None:
    """TestHighPriorityFlushUnschedulablePodsLeftover: after five minutes, without any event."""
    turns = Turns("high", "middle")
    async with a_scene(node("n"), plugins=[turns.plugin()]) as scene:
        await scene.has(pod("middle", "100m", "middle"), pod("high", "100m", "high"))
        assert {scene.waits_in("high"), scene.waits_in("middle")} == {"unschedulable"}
        turns.taken.clear()
        turns.refused.clear()
        await scene.passes(280)
        assert turns.taken == []
        await scene.passes(60)

        assert turns.taken == ["high", "middle"]
        assert (scene.node_of("high"), scene.node_of("middle")) == ("n", "n")
