"""Promises that come to nothing. Upstream: preemption/nominatednodename/nominatednodename_test.go, TestNominatedNode."""

from typing import Any

import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import NODES, Object
from extender.values.objects.pod import Pod
from tests.kit.objects import node, pod
from tests.kit.pod_specs import taint
from tests.kit.saying_plugins import pre_binding
from tests.kit.scene import a_scene
from tests.stories.cluster_changes import Happens, changed_node, goes, spec


async def _fails(_: Pod) -> fwk.Status:
    return fwk.unschedulable()


LOW = pod("low", "1", "low")
OTHERS = [pod(f"low-{number}", "1", "low") for number in range(4)]


@pytest.mark.parametrize(
    ("nodes", "waves", "loses_its_node", "leaves", "plugins"),
    [
        pytest.param(
            [node("n", "5")], [OTHERS, [pod("middle", "4", "middle")], [pod("high", "5", "high")]], False, [], [],
            id="a more important pod preempts there too",
        ),
        pytest.param(
            [node("n")], [[LOW], [pod("middle", "2", "middle")], [pod("high", "1", "high")]], False, ["low"], [],
            id="a more important pod goes there without preemption",
        ),
        pytest.param(
            [node("n", "1")], [[LOW], [pod("middle", "1", "middle")]], True, ["low"], [], id="the node goes, and it "
                "was the only one"
        ),
        pytest.param(
            [node("m", "1", taints=[taint("taint-node")]), node("n", "1")], [[LOW], [pod("middle", "1", "middle")]], True, ["low"], [],
            id="the node goes, and the others are hopeless",
        ),
        pytest.param(
            [node("n", "1")], [[LOW], [pod("middle", "1", "middle")]], False, ["low"],
            [pre_binding(_fails, concerns=lambda pod: pod.name != "low")], id="the node cannot be prepared",
        ),
    ],
)  # fmt: skip
@pytest.mark.anywhere
async def test_the_promise_of_a_preemption_ends_when(
    nodes: list[Object],
    waves: list[list[Object]],
    loses_its_node: bool,
    leaves: list[str],
    plugins: list[type[fwk.Plugin]],
) -> None:
    """TestNominatedNode, its five cases: pods that were told to go are on their way for as long as the story wants
    it. In the first one the more important pod asks for more than upstream's, so that one more has to go.
    """
    async with a_scene(*nodes, plugins=plugins, kubelet=False) as scene:
        for wave in waves[:2]:
            await scene.has(*wave)
        assert scene.nominated_node_of("middle") == "n"
        for wave in waves[2:]:
            await scene.has(*wave)
        if loses_its_node:
            await scene.loses("n", resource=NODES)
        for name in leaves:
            await scene.loses(name, at_once=True)

        assert scene.nominated_node_of("middle") == ""
        assert scene.node_of("middle") == ""
        if len(waves) > 2:
            assert scene.node_of("high") == "n" or scene.nominated_node_of("high") == "n"


async def _promised(scene: Any) -> None:
    await scene.has(pod("low", "1500m", "low", stays=True))
    await scene.has(pod("middle", "1500m", "middle"))
    assert scene.nominated_node_of("middle") == "n"


@pytest.mark.anywhere
async def test_nomination_is_cleared_for_a_pod_of_higher_priority() -> None:
    """TestNominatedNode, when a pod of higher priority preempts on the node."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("low", "900m", "low", stays=True), pod("lowest", "900m", "low", stays=True))
        await scene.has(pod("middle", "900m", "middle"))
        assert (scene.nominated_node_of("middle"), len(scene.leaving())) == ("n", 1)
        await scene.has(pod("high", "1500m", "high"))

        assert scene.nominated_node_of("high") == "n"
        assert scene.nominated_node_of("middle") == ""
        assert scene.leaving() == {"low", "lowest"}

        await scene.lets_go("low", within=10)
        await scene.lets_go("lowest", within=10)

        assert scene.node_of("high") == "n"
        assert scene.node_of("middle") == ""


@pytest.mark.anywhere
@pytest.mark.parametrize(
    ("elsewhere", "waiting"),
    [
        pytest.param([], [pod("middle", "1500m", "middle")], id="a pod"),
        pytest.param([], [pod(name, "700m", "middle") for name in ("middle", "other")], id="two pods"),
        pytest.param(
            [node("m"), pod("spared", "1500m", "middle", nodeName="m")], [pod("middle", "1500m", "high")],
            id="a pod that would evict a more important one elsewhere",
        ),
        pytest.param(
            [node("m"), pod("spared", "900m", "low", nodeName="m"), pod("also", "900m", "low", nodeName="m")],
            [pod("middle", "1500m", "middle")], id="a pod that would evict others elsewhere",
        ),
    ],
)  # fmt: skip
async def test_nominations_stay_while_all_victims_are_leaving_for_them_already(
    elsewhere: list[Object], waiting: list[Object]
) -> None:
    """Pods of lower priority look for no other node, and evict nobody there. Upstream: prepareCandidateAsync."""
    async with a_scene(node("n"), *elsewhere) as scene:
        await scene.has(pod("low", "1500m", "low", stays=True))
        await scene.has(*waiting)
        assert scene.leaving() == {"low"}
        await scene.has(pod("high", "1500m", "higher"), within=30)

        names = [obj["metadata"]["name"] for obj in waiting]
        assert [scene.nominated_node_of(name) for name in ("high", *names)] == ["n", *("n" for _ in names)]
        assert scene.leaving() == {"low"}

        await scene.lets_go("low", within=10)

        assert scene.node_of("high") == "n"


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(goes(NODES, "n"), id="is deleted"),
        pytest.param(changed_node("n", spec(taints=[taint("broken")])), id="is tainted"),
    ],
)
@pytest.mark.anywhere
async def test_pod_runs_elsewhere_when_its_nominated_node(happens: Happens) -> None:
    """TestNominatedNode, when the node is deleted, and when it gets a taint."""
    async with a_scene(node("n")) as scene:
        await _promised(scene)
        happens(scene)
        await scene.passes(5)
        await scene.has(node("other"), within=15)

        assert scene.node_of("middle") == "other"
        assert scene.nominated_node_of("middle") == ""


@pytest.mark.anywhere
async def test_nomination_is_kept_while_other_pods_come_and_go() -> None:
    """TestNominatedNode, the quiet case: pods of lower priority do not get the room, and the pod does."""
    async with a_scene(node("n")) as scene:
        await _promised(scene)
        await scene.has(pod("small", "600m", "low"))
        await scene.lets_go("low", within=10)

        assert scene.node_of("middle") == "n"
        assert scene.node_of("small") == ""


@pytest.mark.anywhere
async def test_nomination_ends_when_preparing_the_node_fails() -> None:
    """TestNominatedNode, after a PreBind failure: no promise is left that keeps others out."""

    async def fails(pod: Pod) -> fwk.Status:
        return fwk.error("out of order")

    async with a_scene(node("n"), plugins=[pre_binding(fails, concerns=lambda pod: pod.name == "middle")]) as scene:
        await scene.has(pod("middle", "1500m", "middle"), within=2.5)

        assert scene.condition("middle") == (
            "False",
            "SchedulerError",
            'running PreBind plugin "PreBinding": out of order',
        )
        assert scene.nominated_node_of("middle") == ""

        await scene.has(pod("equal", "1500m", "middle"))

        assert scene.node_of("equal") == "n"
