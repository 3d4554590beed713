"""What one attempt leaves behind: the condition, the event, the promise, the place in the queue, what is kept.

Upstream: pkg/scheduler/schedule_one_test.go, scheduler_test.go: TestSchedulerScheduleOne, TestFailureHandler. Cases of
one attempt that have a story of their own: those of plugins in test_plugins.py, those of preemption in
test_preemption.py.
"""

import asyncio
import re

import httpx
import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import EVENTS, NODES
from extender.values.objects.pod import Pod
from tests.kit.objects import is_binding, node, pod, refusal
from tests.kit.saying_plugins import WAIT, filtering, holding, permitting, pre_binding
from tests.kit.scene import a_scene
from tests.kit.scene.stages import Interfere

NO_ROOM = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: "
    "1 Preemption is not helpful for scheduling."
)


@pytest.mark.over_a_socket
async def test_a_pod_is_bound() -> None:
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p"))

        assert (scene.node_of("p"), scene.nominated_node_of("p"), scene.waits_in("p")) == ("n", "", "")
        assert scene.condition("p") == ("True", "", "")
        assert scene.events("p") == [("Scheduled", "Successfully assigned default/p to n")]
        assert not scene.is_assumed("p")


@pytest.mark.anywhere
async def test_a_pod_in_an_empty_cluster_is_tried_again_without_an_event() -> None:
    async with a_scene() as scene:
        await scene.has(pod("p"), within=0.5)

        assert scene.condition("p") == ("False", "Unschedulable", "no nodes available to schedule pods")
        assert scene.events("p") == [("FailedScheduling", "no nodes available to schedule pods")]
        assert (scene.waits_in("p"), scene.refused_by("p")) == ("error backoff", set())


@pytest.mark.anywhere
async def test_a_pod_that_fits_nowhere_waits_for_what_its_refusers_say() -> None:
    async with a_scene(node("n", "500m")) as scene:
        await scene.has(pod("p"))

        assert scene.condition("p") == ("False", "Unschedulable", NO_ROOM)
        assert scene.events("p") == [("FailedScheduling", NO_ROOM)]
        assert (scene.waits_in("p"), scene.refused_by("p")) == ("unschedulable", {"NodeResourcesFit"})


@pytest.mark.anywhere
async def test_missing_claim_is_the_message_of_the_condition_in_upstreams_words() -> None:
    """Where PreFilter ends early, DynamicResources has no state, and says `not found`: preemption is not asked then."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))

        assert scene.condition("p") == (
            "False",
            "Unschedulable",
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found',
        )
        assert scene.waits_in("p") == "unschedulable"


@pytest.mark.anywhere
async def test_a_long_message_is_cut_in_the_event_and_whole_in_the_condition() -> None:
    reason = "ü" * 1000
    refuses = filtering(lambda *_: fwk.unresolvable(reason))
    async with a_scene(node("n"), plugins=[refuses]) as scene:
        await scene.has(pod("p"))

        condition = scene.condition("p")
        assert condition is not None
        assert reason in condition[2]
        ((_, note),) = scene.events("p")
        assert len(note.encode()) <= 1024
        assert note.endswith("ü ...")


@pytest.mark.anywhere
async def test_a_pod_that_is_being_deleted_is_not_attempted() -> None:
    """TestSchedulerScheduleOne, deleting pod."""
    async with a_scene(node("n", "500m")) as scene:
        await scene.has(pod("p", stays=True))
        before = scene.condition("p")
        await scene.loses("p")
        await scene.changes(
            "n", lambda obj: obj["status"]["allocatable"].update(cpu="4"), resource=NODES, subresource="status"
        )
        await scene.has(node("m"), within=15)

        assert scene.node_of("p") == ""
        assert scene.condition("p") == before
        assert scene.events("p")[-1] == ("FailedScheduling", "skip schedule deleting pod: default/p")
        assert scene.waits_in("p") == ""


@pytest.mark.anywhere
async def test_a_plugin_that_refuses_and_one_that_waits_are_both_remembered() -> None:
    """A Filter that says Pending: the pod comes back at once when its plugin sees a chance, without a pause."""
    waits: list[bool] = [True]

    def says(pod: Pod, where: fwk.NodeInfo) -> fwk.Status:
        return fwk.Status(fwk.Code.PENDING, ("waits for a driver",)) if waits else fwk.SUCCESS

    events = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.UPDATE_NODE_LABEL)]
    async with a_scene(node("n"), plugins=[filtering(says, events=events)]) as scene:
        await scene.has(pod("p"), within=0.2)
        info = scene.alone.world.queue.get("default/p")
        assert info is not None
        assert info.pending_plugins == {"Filtering"}
        assert scene.waits_in("p") == "unschedulable"

        waits.clear()
        await scene.changes("n", lambda obj: obj["metadata"]["labels"].update(zone="a"), resource=NODES, within=0.1)

        assert scene.node_of("p") == "n"


# Pods that change, go, or come again while they are being decided about.


async def _takes_long(_: Pod) -> fwk.Status:
    await asyncio.sleep(5)
    return fwk.error("too late")


def _slow_bindings(seconds: float, pod_name: str = "") -> Interfere:
    """Those of one pod, or of all."""

    async def later() -> None:
        await asyncio.sleep(seconds)

    return lambda request: later() if request.url.path.endswith(f"{pod_name}/binding") else None


@pytest.mark.anywhere
async def test_a_pod_that_came_again_under_its_name_is_not_blamed() -> None:
    """TestHandleSchedulingFailureSkipsRecreatedPod: neither requeued nor written about; the new one has an entry of its
    own.
    """
    async with a_scene(
        node("n"), plugins=[pre_binding(_takes_long, concerns=lambda pod: "old" in pod.labels)]
    ) as scene:
        await scene.has(pod("p", labels={"old": ""}), within=1)
        await scene.loses("p", at_once=True, within=0)
        await scene.has(pod("p", nodeSelector={"zone": "a"}), within=1)
        new = scene.pod("p")
        await scene.passes(8)

        assert scene.pod("p")["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]
        assert "too late" not in str(scene.events("p"))
        assert (scene.waits_in("p"), scene.attempts("p")) == ("unschedulable", 1)


@pytest.mark.anywhere
async def test_a_binding_is_for_one_pod_and_not_for_the_next_of_its_name() -> None:
    """TestDefaultBinder: a binding that arrives after the pod was deleted and made again is refused by the UID in
    it.
    """
    async with a_scene(node("n"), interfere=_slow_bindings(3)) as scene:
        await scene.has(pod("p"), within=1)
        await scene.loses("p", at_once=True, within=0)
        await scene.has(pod("p", nodeSelector={"zone": "a"}), within=10)

        assert scene.node_of("p") == ""
        assert [reason for reason, _ in scene.events("p")] == ["FailedScheduling"]


@pytest.mark.parametrize("when", ["waiting for leave", "being prepared", "being bound"])
@pytest.mark.anywhere
async def test_a_pod_that_is_deleted_on_its_way_leaves_nothing_on_the_node(when: str) -> None:
    """TestSchedulerNoPhantomPodAfterDelete, TestSchedulerForgetAssumedPodAfterDelete."""
    plugins: dict[str, list[type[fwk.Plugin]]] = {
        "waiting for leave": [holding("p")],
        "being prepared": [pre_binding(_takes_long, concerns=lambda pod: pod.name == "p")],
        "being bound": [],
    }
    interfere = _slow_bindings(3, pod_name="pods/p") if when == "being bound" else None
    async with a_scene(node("n"), plugins=plugins[when], interfere=interfere) as scene:
        await scene.has(pod("p", "1500m"), within=1)
        assert scene.is_assumed("p")
        await scene.has(pod("q", "1500m"), within=1)
        assert scene.node_of("q") == ""

        await scene.loses("p", within=10)

        assert scene.pods() == {"q"}
        assert scene.node_of("q") == "n"
        assert scene.alone.world.queue.in_flight_pods() == []


@pytest.mark.over_a_socket
async def test_a_pod_that_others_bind_is_dropped() -> None:
    """TestFailureHandler_PodAlreadyBound, and a pod in the queue that somebody else binds."""
    async with a_scene(node("n", "500m")) as scene:
        await scene.has(pod("p"))
        assert scene.waits_in("p") == "unschedulable"
        scene.bind("p", "n")
        await scene.passes(1)

        assert scene.waits_in("p") == ""
        await scene.has(node("m"), within=15)
        assert (
            scene.node_of("p"),
            scene.alone.world.cluster.cache.pod(scene.pod("p")["metadata"]["uid"]) is not None,
        ) == ("n", True)


@pytest.mark.anywhere
async def test_a_pod_that_others_bind_elsewhere_on_its_way_stays_there() -> None:
    """TestAddPod, bind assumed pod to a different node: what others say counts, and nothing is left on the node we had
    chosen.
    """
    async with a_scene(node("a"), node("b"), plugins=[holding("p", 5)]) as scene:
        await scene.has(pod("p", "1500m"), within=1)
        uid = scene.pod("p")["metadata"]["uid"]
        assumed = scene.alone.world.cluster.cache.pod(uid)
        assert assumed is not None
        other = "b" if assumed.spec.node_name == "a" else "a"
        scene.bind("p", other)
        await scene.passes(10)

        assert scene.node_of("p") == other
        assert scene.waits_in("p") == ""
        await scene.has(pod("q", "1500m"))
        assert scene.node_of("q") == assumed.spec.node_name


@pytest.mark.anywhere
async def test_a_pod_that_changed_while_it_was_tried_is_tried_as_it_is_now() -> None:
    """TestFailureHandler, pod updated during the scheduling cycle: the new one is queued."""
    async with a_scene(node("n"), plugins=[pre_binding(_takes_long)]) as scene:
        await scene.has(pod("p"), within=1)
        await scene.changes("p", lambda obj: obj["metadata"].update(labels={"new": "yes"}), within=0.5)
        await scene.passes(4)

        info = scene.alone.world.queue.get("default/p")
        assert info is not None
        assert info.pod.labels == {"new": "yes"}


@pytest.mark.anywhere
async def test_pod_bound_by_another_scheduler_is_not_tried_again() -> None:
    """TestDefaultBinder: the API server refuses a pod of the same name and another UID, or one that has a node."""
    async with a_scene(node("a"), node("b"), interfere=_slow_bindings(2)) as scene:
        await scene.has(pod("p"), within=1)
        uid = scene.pod("p")["metadata"]["uid"]
        assumed = scene.alone.world.cluster.cache.pod(uid)
        assert assumed is not None
        other = "b" if assumed.spec.node_name == "a" else "a"
        scene.bind("p", other)
        await scene.passes(10)

        assert scene.node_of("p") == other
        assert (scene.waits_in("p"), scene.alone.world.queue.in_flight_pods()) == ("", [])


@pytest.mark.anywhere
async def test_pod_in_pre_bind_is_no_longer_in_flight() -> None:
    """TestScheduleOneMarksPodAsProcessedBeforePreBind: events are not kept for it."""
    async with a_scene(node("n"), plugins=[pre_binding(_takes_long)]) as scene:
        await scene.has(pod("p"), within=1)

        assert scene.is_assumed("p")
        assert scene.alone.world.queue.in_flight_pods() == []


@pytest.mark.anywhere
async def test_while_a_pod_waits_for_leave_it_is_in_flight_and_misses_nothing() -> None:
    """Test_InFlightPods, whole: what comes while it waits is looked at when it is refused."""
    events = [fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD)]

    def says(pod: Pod, _: fwk.Handle) -> tuple[fwk.Status, float]:
        return WAIT, 3

    async with a_scene(node("n"), plugins=[permitting(says, events=events)]) as scene:
        await scene.has(pod("p"), within=1)
        assert scene.waits_in("p") == "in flight"
        await scene.has(node("m"), within=2.1)

        assert scene.waits_in("p") in ("backoff", "in flight")


@pytest.mark.anywhere
async def test_a_binding_that_is_refused_leaves_the_room_to_others() -> None:
    def refuses(request: httpx.Request) -> httpx.Response | None:
        return refusal(403, "Forbidden", "never") if is_binding(request) and "/p/" in request.url.path else None

    async with a_scene(node("n"), interfere=refuses) as scene:
        await scene.has(pod("p", "1500m"), pod("q", "1500m"), within=15)

        assert (scene.node_of("p"), scene.node_of("q")) == ("", "n")


# Whose pods are whose.


@pytest.mark.over_a_socket
async def test_finished_pods_take_no_room() -> None:
    """TestSchedulerInformers."""
    async with a_scene(node("n"), kubelet=False) as scene:
        await scene.has(pod("done", "1500m", nodeName="n"), pod("p", "1500m"))
        assert scene.node_of("p") == ""

        await scene.changes(
            "done", lambda obj: obj["status"].update(phase="Succeeded"), subresource="status", within=10
        )

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_pods_of_other_schedulers_take_their_room_and_are_left_alone() -> None:
    """TestMultipleSchedulers."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("theirs", "1500m", schedulerName="other"), pod("ours", "1500m"))
        assert (scene.node_of("theirs"), scene.node_of("ours"), scene.waits_in("theirs")) == ("", "n", "")

        await scene.loses("ours")
        scene.bind("theirs", "n")
        await scene.has(pod("ours", "1500m"))

        assert scene.node_of("ours") == ""


@pytest.mark.anywhere
async def test_each_profile_schedules_the_pods_that_ask_for_it_and_speaks_in_its_own_name() -> None:
    """TestMultipleSchedulingProfiles: over one queue and one cache."""
    async with a_scene(node("n"), profiles=["default-scheduler", "other"]) as scene:
        await scene.has(pod("ours", "1500m"), pod("theirs", "1500m", schedulerName="other"))

        assert (scene.node_of("ours"), scene.node_of("theirs")) == ("n", "")
        spoke = {
            event["involvedObject"]["name"]: event["reportingComponent"] for event in scene.api.list(EVENTS, "default")
        }
        assert spoke == {"ours": "default-scheduler", "theirs": "other"}

        await scene.loses("ours")

        assert scene.node_of("theirs") == "n"


@pytest.mark.anywhere
async def test_allocatable_counts_and_not_capacity() -> None:
    """TestAllocatable."""
    small = node("n")
    small["status"]["capacity"] = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    async with a_scene(small) as scene:
        await scene.has(pod("p", "3"))

        assert scene.node_of("p") == ""


@pytest.mark.anywhere
async def test_pod_with_too_many_demands_stays_pending_with_an_event_while_others_are_bound() -> None:
    terms = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"other-{number}"}}} for number in range(1000)
    ]
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    async with a_scene(node("n")) as scene:
        await scene.has(pod("lower", "1500m", "low"))
        await scene.has(pod("demanding", "1500m", "high", affinity=anti_affinity), pod("ordinary", "100m"))

        condition = scene.condition("demanding")
        assert condition is not None
        assert re.fullmatch(
            r"0/1 nodes are available: the pod's scheduling demands have \d{5} bytes, more than the 65536 that are "
            r"considered\.",
            condition[2],
        )
        assert scene.events("demanding") == [("FailedScheduling", condition[2])]
        assert (scene.waits_in("demanding"), scene.refused_by("demanding")) == ("unschedulable", {"Demands"})
        assert (scene.node_of("lower"), scene.node_of("ordinary")) == ("n", "n")
