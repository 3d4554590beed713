"""One attempt, and where it may end. Upstream: pkg/scheduler/schedule_one_test.go, TestSchedulerScheduleOne.

Two of its cases have a story of their own: a pod that is being deleted (test_outcomes.py), and one that is preempted
while its node is prepared (test_preemption_under_way.py).
"""

from dataclasses import dataclass
from typing import final

import httpx
import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import PODS
from extender.values.objects.pod import Pod
from tests.kit.objects import is_binding, node, pod, refusal
from tests.kit.saying_plugins import WAIT, filtering, permitting, pre_binding, reserving
from tests.kit.scene import a_scene

BOUND = ("Scheduled", "Successfully assigned default/p to n")
FAILED, REFUSED = "error backoff", "unschedulable"


@final
@dataclass(frozen=True)
class Ends:
    """How an attempt ends.

    Attributes:
        event: reason and note of its event.
        queue: where the pod waits then; empty if it is bound.
        was_kept: whether Reserve had kept something for it.
        was_promised: whether its node was written down on the way.
        binds: requests for a binding.
    """

    event: tuple[str, str]
    queue: str = ""
    was_kept: bool = True
    was_promised: bool = False
    binds: int = 0


def failed(
    note: str, queue: str = FAILED, *, was_kept: bool = True, was_promised: bool = False, binds: int = 0
) -> Ends:
    return Ends(("FailedScheduling", note), queue, was_kept, was_promised, binds)


async def _is_done(_: Pod) -> fwk.Status:
    return fwk.SUCCESS


async def _fails(_: Pod) -> fwk.Status:
    return fwk.error("broken")


ON_ONE = "0/1 nodes are available: 1 not now."
UNSUPPORTED = (
    'PreBindPreFlight PreBinding returned "Unschedulable", which is unsupported. It is supposed to return Success, '
    "Skip, or Error status"
)

CASES = {
    "the search fails": (filtering(lambda *_: fwk.error("broken")), failed('running "Filtering" filter plugin: '
                                                                           'broken', was_kept=False)),
    "Reserve fails": (reserving(lambda _: fwk.error("broken")), failed('running Reserve plugin "Reserving": broken')),
    "Reserve refuses": (reserving(lambda _: fwk.unschedulable("not now")), failed(ON_ONE, REFUSED)),
    "Permit fails": (permitting(lambda *_: (fwk.error("broken"), 0)), failed('running Permit plugin "Permitting": '
                                                                             'broken')),
    "Permit refuses": (permitting(lambda *_: (fwk.unschedulable("not now"), 0)), failed(ON_ONE, REFUSED)),
    "Permit does not answer": (permitting(lambda *_: (fwk.SKIP, 0)), failed('running Permit plugin "Permitting": ')),
    "Permit never says yes": (
        permitting(lambda *_: (WAIT, 0.1)),
        failed(
            "0/1 nodes are available: 1 rejected due to timeout after waiting 100ms at plugin "
            "Permitting.", REFUSED, was_promised=True
        ),
    ),
    "before PreBind, something is broken": (
        pre_binding(_is_done, before=fwk.error("broken")), failed('running PreBindPreFlight "PreBinding": broken'),
    ),
    "before PreBind, what may not be said": (pre_binding(_is_done, before=fwk.unschedulable("not now")), failed(UNSUPPORTED)),
    "PreBind has nothing to do": (pre_binding(_fails, before=fwk.SKIP), Ends(BOUND, binds=1)),
    "PreBind has something to do": (pre_binding(_is_done), Ends(BOUND, was_promised=True, binds=1)),
    "PreBind fails": (pre_binding(_fails), failed('running PreBind plugin "PreBinding": broken', was_promised=True)),
    "the binding is refused": (None, failed('running Bind plugin "DefaultBinder": not today', binds=1)),
    "nothing is in the way": (permitting(lambda *_: (fwk.SUCCESS, 0)), Ends(BOUND, binds=1)),
}  # fmt: skip


@pytest.mark.parametrize(("plugin", "ends"), CASES.values(), ids=CASES.keys())
@pytest.mark.anywhere
async def test_an_attempt_ends_well_or_leaves_nothing_behind(plugin: type[fwk.Plugin] | None, ends: Ends) -> None:
    """Who fails is forgotten, its room and what was kept for it are given back, and it waits for time or for its
    refuser.
    """
    given_back: list[str] = []
    binds: list[str] = []
    keeps = reserving(lambda _: fwk.SUCCESS, lambda pod: given_back.append(pod.name), "Keeping")

    def notes(request: httpx.Request) -> httpx.Response | None:
        if is_binding(request):
            binds.append(request.url.path)
            return refusal(403, "Forbidden", "not today") if plugin is None else None
        return None

    async with a_scene(node("n"), plugins=[keeps, *([plugin] if plugin is not None else [])], interfere=notes) as scene:
        since = scene.now
        await scene.has(pod("p"), within=0.5)

        assert scene.events("p") == [ends.event]
        assert scene.waits_in("p") == ends.queue
        assert scene.refused_by("p") == ({plugin.name} if plugin is not None and ends.queue == REFUSED else set())
        assert scene.node_of("p") == ("" if ends.queue else "n")
        assert not scene.is_assumed("p")
        assert given_back == (["p"] if ends.queue and ends.was_kept else [])
        assert ("n" in [obj["status"].get("nominatedNodeName") for obj in scene.history(since)]) is ends.was_promised
        assert scene.nominated_node_of("p") == ""
        assert len(binds) == ends.binds
        assert scene.alone.world.queue.in_flight_pods() == []


@pytest.mark.anywhere
async def test_nomination_is_cleared_when_the_search_of_the_pod_fails() -> None:
    """The case of a pod with an existing nominated node name."""
    fails = filtering(lambda *_: fwk.error("broken"))
    async with a_scene(node("n"), plugins=[fails]) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "wait"}]))
        obj = scene.pod("p")
        obj["status"]["nominatedNodeName"] = "n"
        scene.api.update(PODS, "default", "p", obj, subresource="status")
        await scene.changes("p", lambda obj: obj["spec"].pop("schedulingGates"), within=0.5)

        assert scene.nominated_node_of("p") == ""
        assert scene.condition("p") == ("False", "SchedulerError", 'running "Filtering" filter plugin: broken')
