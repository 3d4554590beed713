"""Nodes that are tainted, opened and joined. Upstream: test/integration/scheduler/scheduler_test.go,
taint/taint_test.go.
"""

import pytest

from extender.rules.api_resources import NODES
from tests.kit.objects import node, pod
from tests.kit.pod_specs import taint, tolerating
from tests.kit.scene import a_scene
from tests.stories.cluster_changes import labels, spec

pytestmark = pytest.mark.with_whole_objects


@pytest.mark.anywhere
async def test_a_node_that_is_opened_gets_the_pods_that_waited_and_then_no_more() -> None:
    """TestNodeEvents: a taint that comes keeps out who comes later, and one that goes lets in who waited; who runs
    stays.
    """
    async with a_scene(node("first", "1")) as scene:
        await scene.has(pod("one", "900m"))
        assert scene.node_of("one") == "first"
        await scene.has(pod("two", "500m"))
        assert scene.waits_in("two") == "unschedulable"

        # A node that is not ready when it comes.
        await scene.has(node("second", "1", taints=[taint("not-yet")]))
        assert scene.node_of("two") == ""
        await scene.changes("second", spec(taints=[]), resource=NODES)
        assert scene.node_of("two") == "second"

        await scene.changes("second", spec(taints=[taint("no-more")]), resource=NODES)
        await scene.has(pod("three", "300m"), pod("four", "300m", **tolerating("no-more")))

        assert (scene.node_of("two"), scene.node_of("three"), scene.node_of("four")) == ("second", "", "second")


@pytest.mark.parametrize(
    ("key", "effect", "goes_there"),
    [
        pytest.param("node.kubernetes.io/not-ready", "NoSchedule", False, id="not ready"),
        pytest.param("node.kubernetes.io/unreachable", "NoSchedule", False, id="unreachable"),
        pytest.param("node.kubernetes.io/memory-pressure", "NoSchedule", False, id="memory pressure"),
        pytest.param("node.kubernetes.io/disk-pressure", "NoSchedule", False, id="disk pressure"),
        pytest.param("node.kubernetes.io/pid-pressure", "NoSchedule", False, id="pid pressure"),
        pytest.param("node.kubernetes.io/network-unavailable", "NoSchedule", False, id="no network"),
        pytest.param("example.com/soft", "PreferNoSchedule", True, id="a wish"),
    ],
)
async def test_condition_taint_keeps_out_pods_that_do_not_tolerate_it(key: str, effect: str, goes_there: bool) -> None:
    """TestTaintNodeByCondition, the scheduler's half. In memory without controllers, which would say themselves what is
    wrong.
    """
    async with a_scene(node("n", taints=[taint(key, effect)]), controllers=False) as scene:
        await scene.has(pod("minds", "100m"), pod("tolerates", "100m", **tolerating(key)))

        assert (scene.node_of("minds") == "n") is goes_there
        assert scene.node_of("tolerates") == "n"


@pytest.mark.anywhere
async def test_crowd_of_pending_pods_is_scheduled_after_a_label_change() -> None:
    async with a_scene(node("n", "4")) as scene:
        await scene.has(*(pod(f"p{number}", "500m", nodeSelector={"zone": "a"}) for number in range(8)))
        assert {scene.node_of(f"p{number}") for number in range(8)} == {""}

        await scene.changes("n", labels(zone="a"), resource=NODES, within=15)

        assert {scene.node_of(f"p{number}") for number in range(8)} == {"n"}
