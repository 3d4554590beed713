"""When people are told why a pod waits, and when that is no news.

Upstream: pkg/scheduler/schedule_one_test.go, TestUpdatePodStatus.
"""

import httpx
import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import PODS, Object
from tests.kit.objects import node, pod
from tests.kit.saying_plugins import filtering
from tests.kit.scene import a_scene

LONG_AGO = "2020-05-12T01:01:01Z"
WHY = "0/1 nodes are available: 1 not now."


def condition(
    kind: str = "PodScheduled", status: str = "False", reason: str = "Unschedulable", message: str = WHY
) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": LONG_AGO}


@pytest.mark.parametrize(
    ("conditions", "promised", "writes", "is_of_today"),
    [
        pytest.param([], "", 1, True, id="nothing was said"),
        pytest.param([condition("Odd", "True")], "", 1, True, id="something else was said"),
        pytest.param([condition(message="another")], "", 1, False, id="another message was said"),
        pytest.param([condition(reason="SchedulerError")], "", 1, False, id="another reason was said"),
        pytest.param([condition(status="True", reason="", message="")], "", 1, True, id="the opposite was said"),
        pytest.param([condition()], "", 0, False, id="just that was said"),
        pytest.param([condition()], "n", 1, False, id="just that was said, and a node promised"),
        pytest.param([], "n", 1, True, id="a node was promised"),
    ],
)
@pytest.mark.anywhere
async def test_refusal_is_written_only_when_it_changes_the_status(
    conditions: list[Object], promised: str, writes: int, is_of_today: bool
) -> None:
    """Eight cases: in one write at most, and with the time at which the status became what it is, not that of a new
    message.
    """
    patches: list[bytes] = []

    def notes(request: httpx.Request) -> None:
        if request.method == "PATCH":
            patches.append(request.content)

    refuses = filtering(lambda *_: fwk.unschedulable("not now"))
    disabled = ("DefaultPreemption", "DynamicResources")
    async with a_scene(node("n"), plugins=[refuses], without=disabled, interfere=notes) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "wait"}]))
        obj = scene.pod("p")
        obj["status"] |= {"conditions": conditions} | ({"nominatedNodeName": promised} if promised else {})
        scene.api.update(PODS, "default", "p", obj, subresource="status")
        await scene.changes("p", lambda obj: obj["spec"].pop("schedulingGates"), within=0.5)

        assert scene.refused_by("p") == {"Filtering"}
        assert len(patches) == writes
        assert (scene.condition("p"), scene.nominated_node_of("p")) == (("False", "Unschedulable", WHY), "")
        since = {row["type"]: row["lastTransitionTime"] for row in scene.pod("p")["status"]["conditions"]}
        assert (since["PodScheduled"] != LONG_AGO) is is_of_today
        assert set(since) == {"PodScheduled", *(row["type"] for row in conditions)}
