"""Who is tried again, and after what. Upstream: test/integration/scheduler/queueing, rescheduling_test.go, filters.

Not told: TestCoreResourceEnqueueWithoutQueueingHints (hints cannot be turned off), the cases of GangScheduling and pod
groups (behind gates that are off), TestCustomResourceEnqueue (plugins register for the kinds of `EventResource`).
TestCoreResourceEnqueue is told in test_enqueueing.py and test_enqueueing_of_volumes.py. Every hint, event by event:
tests/extender/engine/plugins/test_hints.py and test_storage_hints.py.
"""

import httpx
import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import NODES
from tests.kit.objects import is_binding, node, pod, priority_class, refusal
from tests.kit.saying_plugins import WAIT, filtering, gating, permitting, reserving
from tests.kit.scene import a_scene
from tests.stories.cluster_changes import allocatable, labels, spec

# TestSchedulingGates, four cases.


@pytest.mark.anywhere
async def test_gated_pod_is_not_tried_and_has_no_events() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}, {"name": "two"}]), within=400)

        assert (scene.waits_in("p"), scene.attempts("p"), scene.events("p")) == ("gated", 0, [])
        condition = scene.condition("p")
        assert condition is not None
        assert condition[:2] == ("False", "SchedulingGated")


@pytest.mark.anywhere
async def test_a_pod_with_one_gate_left_stays_gated() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}, {"name": "two"}]))
        await scene.changes("p", spec(schedulingGates=[{"name": "two"}]))

        assert (scene.waits_in("p"), scene.attempts("p")) == ("gated", 0)


@pytest.mark.anywhere
async def test_a_label_opens_no_gate() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}]))
        await scene.changes("p", labels(app="x"))

        assert (scene.waits_in("p"), scene.attempts("p")) == ("gated", 0)


@pytest.mark.over_a_socket
async def test_a_pod_whose_gates_are_gone_is_scheduled() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", schedulingGates=[{"name": "one"}]))
        await scene.changes("p", spec(schedulingGates=[]))

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_freed_room_goes_to_the_pod_whose_gates_are_gone() -> None:
    async with a_scene(node("n", pods="1")) as scene:
        await scene.has(*(pod(name, schedulingGates=[{"name": name}]) for name in ("p", "q")), pod("free"))
        assert scene.node_of("free") == "n"

        await scene.changes("p", spec(schedulingGates=[]))
        assert scene.waits_in("p") == "unschedulable"
        await scene.loses("free", at_once=True, within=10)

        assert (scene.node_of("p"), scene.waits_in("q")) == ("n", "gated")


@pytest.mark.anywhere
async def test_a_plugin_that_gates_is_only_asked_after_events_that_it_registered_for() -> None:
    """TestPreEnqueuePlugin, TestPreEnqueuePluginEventsToRegister."""
    is_open: list[bool] = []
    calls: list[str] = []

    def says(pod: fwk.Pod) -> fwk.Status:
        calls.append(pod.name)
        return fwk.SUCCESS if is_open else fwk.unschedulable("closed")

    on_nodes = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]
    async with a_scene(node("n"), plugins=[gating(says, events=on_nodes)]) as scene:
        await scene.has(pod("p"))
        is_open.append(True)
        before = len(calls)
        await scene.changes("n", labels(zone="a"), resource=NODES, within=30)
        assert (scene.waits_in("p"), len(calls)) == ("gated", before)

        await scene.has(node("m"))

        assert scene.node_of("p") != ""


# Bindings that fail.


@pytest.mark.anywhere
async def test_a_pod_whose_binding_fails_is_bound_by_another_attempt() -> None:
    """TestRequeueByBindFailure: it waits for nothing but the end of its pause."""
    refused: list[str] = []

    def refuses(request: httpx.Request) -> httpx.Response | None:
        if is_binding(request) and not refused:
            refused.append(request.url.path)
            return refusal(403, "Forbidden", "not now")
        return None

    async with a_scene(node("n"), interfere=refuses) as scene:
        await scene.has(pod("p"), within=0.2)

        assert scene.waits_in("p") == "error backoff"
        assert scene.condition("p") == ("False", "SchedulerError", 'running Bind plugin "DefaultBinder": not now')

        await scene.passes(5)

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_pods_that_failed_wait_until_their_pause_is_over_though_there_is_nothing_else_to_do() -> None:
    """TestPopFromBackoffQWhenActiveQEmpty: never from the error queue."""
    fails = [True]

    def says(pod: fwk.Pod, _: fwk.NodeInfo) -> fwk.Status:
        return fwk.error("out of order") if fails else fwk.SUCCESS

    async with a_scene(node("n"), plugins=[filtering(says)]) as scene:
        await scene.has(pod("p"), within=0.1)
        assert scene.waits_in("p") == "error backoff"
        assert scene.condition("p") == ("False", "SchedulerError", 'running "Filtering" filter plugin: out of order')
        fails.clear()

        await scene.passes(0.5)
        assert scene.node_of("p") == ""

        await scene.passes(3)
        assert scene.node_of("p") == "n"


@pytest.mark.parametrize("where", ["Reserving", "Permitting"])
@pytest.mark.parametrize(
    "code", [fwk.Code.UNSCHEDULABLE, fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, fwk.Code.ERROR, fwk.Code.PENDING], ids=str
)
@pytest.mark.anywhere
async def test_late_refusal_waits_for_an_event_and_late_error_needs_none(where: str, code: fwk.Code) -> None:
    """TestReScheduling, six cases: the refusals of Reserve and of Permit, and their errors."""
    says = [fwk.Status(code, ("not now",))]
    events = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]

    def answer() -> fwk.Status:
        return says[0] if says else fwk.SUCCESS

    plugin = (
        reserving(lambda _: answer(), events=events)
        if where == "Reserving"
        else permitting(lambda *_: (answer(), 0), events=events)
    )
    async with a_scene(node("n"), plugins=[plugin]) as scene:
        await scene.has(pod("p"), within=0.2)
        if code is fwk.Code.ERROR:
            point = where.removesuffix("ing").replace("Reserv", "Reserve").replace("Permitt", "Permit")
            assert scene.condition("p") == ("False", "SchedulerError", f'running {point} plugin "{where}": not now')
            assert scene.waits_in("p") == "error backoff"
        else:
            assert scene.condition("p") == ("False", "Unschedulable", "0/1 nodes are available: 1 not now.")
            assert (scene.waits_in("p"), scene.refused_by("p")) == ("unschedulable", {where})
        assert not scene.is_assumed("p")
        says.clear()

        # What has nothing to do with it, though it is room that gets free.
        await scene.has(pod("other", "100m"))
        await scene.loses("other", within=25)
        assert (scene.node_of("p") != "") is (code is fwk.Code.ERROR)

        await scene.has(node("m"))

        assert scene.node_of("p") != ""


@pytest.mark.anywhere
async def test_room_of_a_pod_rejected_at_permit_is_free_for_others() -> None:
    """TestReScheduling, Permit rejects after a while. The end of the promise alone would be no news to a pod of higher
    priority.
    """
    events = [fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE)]
    handles: list[fwk.Handle] = []

    def says(pod: fwk.Pod, handle: fwk.Handle) -> tuple[fwk.Status, float]:
        handles.append(handle)
        return (WAIT, 600) if pod.name == "held" else (fwk.SUCCESS, 0)

    patient = priority_class("patient", 1000, preemptionPolicy="Never")
    async with a_scene(node("n"), patient, plugins=[permitting(says, events=events)]) as scene:
        await scene.has(pod("held", "1500m"))
        await scene.has(pod("other", "1500m", "patient"))
        assert scene.waits_in("other") == "unschedulable"

        (waiting,) = handles[0].waiting_pods
        assert waiting.reject("Permitting", "not now")
        await scene.passes(15)

        assert scene.node_of("other") == "n"
        assert scene.node_of("held") == ""
        assert ("FailedScheduling", "0/1 nodes are available: 1 not now.") in scene.events("held")


async def test_a_pod_that_cannot_be_scheduled_is_written_about_once() -> None:
    """TestUpdatePodStatus: the same refusal again changes nothing on the API server."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", "3"))
        since = scene.now
        await scene.changes("n", allocatable(cpu="2900m"), resource=NODES, subresource="status", within=320)
        await scene.has(node("m", "100m"), within=320)

        assert scene.attempts("p") > 1
        changed = [obj for obj in scene.history(since) if obj["metadata"]["name"] == "p"]
        messages = [obj["status"]["conditions"][0]["message"] for obj in changed]
        assert len(messages) == len(set(messages))
