"""Pods that fit nowhere, until something happens. Upstream: test/integration/scheduler/filters/filters_test.go."""

import pytest

from extender.rules.api_resources import Object
from tests.kit.objects import node, pod
from tests.kit.pod_specs import claims, near, taint
from tests.kit.scene import a_scene
from tests.kit.storage_objects import claim, volume
from tests.stories.cluster_changes import Happens, changed_node, changed_pod, labels, leaves, new_node, new_pod, spec

pytestmark = pytest.mark.with_whole_objects

ONCE = "ReadWriteOncePod"


def bound(**where: str) -> list[Object]:
    """A volume that only nodes with these labels reach, and the claim that has it; both are for one pod at a time."""
    return [
        {**volume("data", ONCE, near=where or None, storage_class=""), "status": {"phase": "Bound"}},
        {**claim("data", ONCE, bound_to="data"), "status": {"phase": "Bound"}},
    ]


@pytest.mark.parametrize(
    ("objects", "waits", "happens"),
    [
        pytest.param([], pod("p"), new_node("n"), id="a node comes"),
        pytest.param([node("n", taints=[taint("test")])], pod("p"), changed_node("n", spec(taints=[])), id="a taint goes"),
        pytest.param([node("n", pods="1"), pod("other", nodeName="n")], pod("p"), leaves("other"), id="another pod goes"),
        pytest.param(
            [node("n", labels={"region": "test"})], pod("p", affinity=near("region", friend="true")),
            new_pod("friend", labels={"friend": "true"}), id="the pod comes that it wants to be near to",
        ),
        pytest.param(
            [node("n", labels={"region": "test"}), pod("other", nodeName="n")], pod("p", affinity=near("region", friend="true")),
            changed_pod("other", labels(friend="true")), id="a pod becomes the one that it wants to be near to",
        ),
        pytest.param(
            [node("n"), *bound(), pod("other", nodeName="n", **claims("data"))], pod("p", **claims("data")), leaves("other"),
            id="the pod goes that has its claim, which only one may have",
        ),
        pytest.param(
            bound(**{"kubernetes.io/hostname": "n"}), pod("p", **claims("data")), new_node("n"), id="the node comes "
                "that reaches its volume"
        ),
        pytest.param(
            [node("n", labels={"foo": "foo"}), *bound(foo="bar")], pod("p", **claims("data")), changed_node("n", labels(foo="bar")),
            id="the node reaches its volume now",
        ),
    ],
)  # fmt: skip
@pytest.mark.anywhere
async def test_a_pod_that_fits_nowhere_runs_as_soon_as(objects: list[Object], waits: Object, happens: Happens) -> None:
    """TestUnschedulablePodBecomesSchedulable, its eight cases."""
    async with a_scene(*objects) as scene:
        await scene.has(waits)
        condition = scene.condition("p")
        assert condition is not None
        assert condition[:2] == ("False", "Unschedulable")

        happens(scene)
        await scene.passes(15)

        assert scene.node_of("p") == "n"
        assert sum(scene.alone.world.queue.pending_counts().values()) == 0
