"""Preemptions that are under way, and victims that are not bound yet.

Upstream: test/integration/scheduler/preemption/preemption_test.go, TestAsyncPreemption; preemption/executor_test.go.
"""

import asyncio
from typing import Any

import httpx
import pytest

from extender.engine import framework as fwk
from extender.testing import make_node, make_pod
from extender.values.objects.pod import Pod
from tests.kit.objects import GROUP_GATES, is_deletion, members, node, pod, pod_group, refusal
from tests.kit.pod_specs import away_from
from tests.kit.saying_plugins import binding_when, holding, lending_one, pre_binding, reserving
from tests.kit.scene import a_scene
from tests.kit.told_scheduler import ToldScheduler


async def _takes_long(_: Pod) -> fwk.Status:
    await asyncio.sleep(600)
    return fwk.SUCCESS


PREPARED_LONG = pre_binding(_takes_long, concerns=lambda pod: pod.name == "prepared")

# Pods that are decided about and not bound yet are victims, too.


@pytest.mark.anywhere
async def test_a_victim_that_waits_for_leave_is_sent_back_and_not_deleted() -> None:
    """TestPreemptionRespectsWaitingPod."""
    async with a_scene(node("n"), plugins=[holding("held")]) as scene:
        await scene.has(pod("held", "1500m", "low"))
        uid = scene.pod("held")["metadata"]["uid"]
        assert scene.is_assumed("held")
        await scene.has(pod("high", "1500m", "high"), within=3)

        assert scene.node_of("high") == "n"
        assert (scene.node_of("held"), scene.pod("held")["metadata"]["uid"], scene.leaving()) == ("", uid, set())
        assert scene.condition("held", "DisruptionTarget") is None
        note = f"Preempted by pod {scene.pod('high')['metadata']['uid']} on node n (in kube-scheduler memory)."
        assert ("Preempted", note) in scene.events("held")
        assert ("FailedScheduling", "waiting on permit for pod: preempted") in scene.events("held")

        await scene.has(node("other"), within=15)

        assert scene.is_assumed("held")


@pytest.mark.anywhere
async def test_a_victim_whose_node_is_being_prepared_is_sent_back_and_not_deleted() -> None:
    """TestPreemptionRespectsBindingPod."""
    async with a_scene(node("n"), plugins=[PREPARED_LONG]) as scene:
        await scene.has(pod("prepared", "1500m", "low"))
        assert scene.nominated_node_of("prepared") == "n"
        await scene.has(pod("high", "1500m", "high"), within=3)

        assert scene.node_of("high") == "n"
        assert scene.node_of("prepared") == ""
        assert scene.leaving() == set()
        assert scene.nominated_node_of("prepared") == ""
        assert ("FailedScheduling", "preempted by DefaultPreemption") in scene.events("prepared")


# While victims are told to go: TestAsyncPreemption.


def slow_deletions(seconds: float) -> Any:
    async def later(request: httpx.Request) -> None:
        await asyncio.sleep(seconds)

    return lambda request: later(request) if is_deletion(request) else None


@pytest.mark.anywhere
async def test_preemptor_is_gated_while_its_victims_are_being_evicted() -> None:
    """TestAsyncPreemption, basic: preemptor is gated until the API calls finish."""
    async with a_scene(node("n"), node("m"), interfere=slow_deletions(20)) as scene:
        await scene.has(pod("low", "1500m", "low"), pod("other", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"))
        assert scene.nominated_node_of("high") != ""

        scene.alone.world.queue.activate([scene.alone.world.pod_by_key("default/high")])  # type: ignore[list-item]

        assert scene.waits_in("high") == "gated"

        await scene.passes(30)

        assert scene.node_of("high") != ""
        assert len(scene.pods()) == 2


@pytest.mark.parametrize(
    ("ends", "attempts"),
    [
        pytest.param({"first", "second"}, 1, id="all others are gone"),
        pytest.param({"first"}, 1, id="one of the others is gone"),
        pytest.param(set[str](), 1, id="all still end"),
        pytest.param({"last"}, 2, id="only the last is gone"),
        pytest.param({"second", "last"}, 2, id="the last is gone, and one of the others"),
    ],
)
async def test_a_preemptor_waits_for_its_last_victim(ends: set[str], attempts: int) -> None:
    """Victims that end go at once. The last that is told to go is the least important."""
    classes = {"first": "high", "second": "middle", "last": "low"}
    async with a_scene(node("n", "3")) as scene:
        await scene.has(
            *(
                pod(name, "1", priority, stays=name not in ends, terminationGracePeriodSeconds=0)
                for name, priority in classes.items()
            )
        )
        await scene.has(pod("higher", "3", "higher"))

        assert scene.leaving() == set(classes) - ends
        assert scene.nominated_node_of("higher") == "n"
        assert scene.attempts("higher") == attempts
        condition, words = scene.condition("higher"), "0/1 nodes are available: 1 Insufficient cpu."
        assert condition is not None
        assert (condition[2] == words) == (attempts == 1)
        assert len(scene.events("higher")) == attempts

        for name in sorted(set(classes) - ends):
            await scene.lets_go(name)

        assert scene.node_of("higher") == "n"


async def test_members_of_a_group_wait_for_their_last_victim() -> None:
    async with a_scene(node("n"), features=GROUP_GATES) as scene:
        await scene.has(pod("first", "1", "middle", terminationGracePeriodSeconds=0))
        await scene.has(pod("last", "1", "low", stays=True))
        await scene.has(pod_group("g", 2, "high"), *members(2, "g", "1", "high"))

        assert scene.leaving() == {"last"}
        assert [scene.attempts(f"g{place}") for place in range(2)] == [1, 1]

        await scene.lets_go("last", within=20)

        assert [scene.node_of(f"g{place}") for place in range(2)] == ["n", "n"]


@pytest.mark.anywhere
async def test_pods_of_lower_priority_do_not_take_over_the_place_of_a_preemptor() -> None:
    """TestAsyncPreemption, lower priority Pod doesn't take over the place for higher priority Pod that is running the
    preemption.
    """
    async with a_scene(node("n"), interfere=slow_deletions(10)) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), pod("middle", "1", "middle"), within=30)

        assert scene.node_of("high") == "n"
        assert scene.node_of("middle") == ""


@pytest.mark.anywhere
async def test_a_pod_of_higher_priority_takes_over_the_place_of_a_preemptor() -> None:
    """TestAsyncPreemption, higher priority Pod takes over the place for lower priority Pod that is running the
    preemption.
    """
    async with a_scene(node("n"), interfere=slow_deletions(10)) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=2)
        await scene.has(pod("higher", "1500m", "higher"), within=40)

        assert scene.node_of("higher") == "n"
        assert scene.node_of("high") == ""
        assert scene.nominated_node_of("high") == ""


@pytest.mark.anywhere
async def test_small_pod_shares_a_node_with_a_nominated_pod() -> None:
    """TestAsyncPreemption, lower priority Pod can select the same place where the higher priority Pod is preempting if
    the node is big enough.
    """
    async with a_scene(node("n", "4"), interfere=slow_deletions(10)) as scene:
        await scene.has(pod("low", "1", "low", labels={"app": "low"}))
        await scene.has(pod("high", "1", "high", affinity=away_from(app="low")), within=2)
        await scene.has(pod("small", "100m", "low"), pod("big", "2500m", "low"), within=2)

        assert scene.nominated_node_of("high") == "n"
        assert scene.node_of("small") == "n"
        assert scene.node_of("big") == ""


@pytest.mark.anywhere
async def test_a_preemptor_whose_place_is_taken_goes_elsewhere() -> None:
    """TestAsyncPreemption, when preemptor is waiting and a higher priority Pod takes its place, it's activated and goes
    to another node.
    """
    async with a_scene(node("n"), interfere=slow_deletions(5)) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=2)
        await scene.has(
            node("other", "1600m"),
            pod("higher", "1500m", "higher", nodeSelector={"kubernetes.io/hostname": "n"}),
            within=40,
        )

        assert scene.node_of("higher") == "n"
        assert scene.node_of("high") == "other"


@pytest.mark.anywhere
async def test_a_preemptor_whose_place_is_taken_makes_room_elsewhere() -> None:
    """TestAsyncPreemption, while lower priority Pod is waiting for preemption, higher priority Pod takes its place on
    the node: the first one is not forgotten, and preempts on the other node.
    """
    on_m: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": "m"}}
    async with a_scene(node("n", "4"), interfere=slow_deletions(10)) as scene:
        await scene.has(*(pod(f"low-{number}", "1", "low") for number in range(4)))
        await scene.has(pod("middle", "4", "middle"), within=2)
        assert scene.nominated_node_of("middle") == "n"
        await scene.has(node("m", "4"), *(pod(f"other-{number}", "1", "low", **on_m) for number in range(4)), within=2)
        await scene.has(pod("high", "2", "high", nodeSelector={"kubernetes.io/hostname": "n"}), within=60)

        assert scene.node_of("high") == "n"
        assert scene.node_of("middle") == "m"
        assert scene.pods() == {"middle", "high"}


@pytest.mark.parametrize("lends", [False, True], ids=["", "and has kept something"])
@pytest.mark.parametrize("stays", [False, True], ids=["goes at once", "takes its time to go"])
@pytest.mark.anywhere
async def test_room_of_a_deleted_victim_is_free_while_its_binding_does_not_end_but_reservations_are_kept(
    stays: bool, lends: bool
) -> None:
    """TestAsyncPreemption, victim blocked in binding: deleted, or under graceful termination; with and without what it
    has reserved.
    """
    goes_on = asyncio.Event()
    waits = binding_when(lambda pod: goes_on.wait() if pod.name == "victim" else asyncio.sleep(0))
    lending = lending_one("victim", lambda uid: scene.alone.world.cluster.cache.pod(uid) is not None)
    plugins = [waits, lending] if lends else [waits]
    async with a_scene(node("n", "4"), plugins=plugins, without=("DefaultBinder",)) as scene:
        await scene.has(pod("victim", "2", "low", stays=stays), within=1)
        assert scene.is_assumed("victim")
        await scene.has(pod("high", "4", "high"), within=3)

        assert (scene.node_of("high") == "n") is not lends
        assert (scene.pods(), scene.leaving()) == (({"victim", "high"}, {"victim"}) if stays else ({"high"}, set()))

        goes_on.set()
        await scene.passes(15)

        assert scene.node_of("high") == "n"
        assert not stays or scene.node_of("victim") == ""


@pytest.mark.parametrize("stays", [False, True], ids=["deleted at once", "deleted with grace"])
@pytest.mark.anywhere
async def test_a_pod_that_is_deleted_while_it_is_prepared_takes_no_room_any_more(stays: bool) -> None:
    """It is forgotten, and nobody has to go for the room it took."""
    async with a_scene(node("n"), plugins=[PREPARED_LONG]) as scene:
        await scene.has(pod("prepared", "1500m", "low", stays=stays), within=1)
        assert scene.is_assumed("prepared")
        await scene.loses("prepared", within=1)

        assert not scene.is_assumed("prepared")

        await scene.has(pod("high", "1500m", "high"))

        assert scene.node_of("high") == "n"


@pytest.mark.anywhere
async def test_the_room_of_a_victim_is_free_once_what_was_kept_for_it_was_given_back_and_not_before() -> None:
    """TestAsyncPreemption, victim blocked in binding, reserved until Unreserve ran."""
    given_back: list[float] = []

    async def ends_slowly(pod: Pod) -> fwk.Status:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(3)
        return fwk.SUCCESS

    plugins = [
        pre_binding(ends_slowly, concerns=lambda pod: pod.name == "prepared"),
        reserving(lambda pod: fwk.SUCCESS, lambda pod: given_back.append(asyncio.get_running_loop().time())),
    ]
    async with a_scene(node("n"), plugins=plugins) as scene:
        await scene.has(pod("prepared", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=2)

        assert scene.is_assumed("prepared")
        assert (scene.node_of("high"), given_back) == ("", [])

        await scene.passes(3)

        assert len(given_back) == 1
        assert scene.node_of("high") == "n"
        assert scene.pods() == {"prepared", "high"}


@pytest.mark.anywhere
async def test_deleted_preemptor_evicts_no_pod() -> None:
    """Deleted before the promise to it was written: nobody goes for a pod that is gone."""

    def slow(request: httpx.Request) -> Any:
        async def later() -> None:
            await asyncio.sleep(3)

        return later() if request.method == "PATCH" and request.url.path.endswith("/pods/high/status") else None

    async with a_scene(node("n"), interfere=slow) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=1)
        await scene.loses("high", at_once=True, within=0)
        await scene.passes(20)

        assert scene.node_of("low") == "n"
        assert scene.leaving() == set()


@pytest.mark.parametrize("happens", ["comes again", "gets a node"])
async def test_no_victim_is_evicted_for_a_preemptor_that_was_replaced_or_bound_meanwhile(happens: str) -> None:
    """What a PostFilter waits for may take long; meanwhile there is another pod of the name, or somebody else has bound
    it.
    """

    class Slow(fwk.PostFilterPlugin):
        async def post_filter(
            self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses
        ) -> fwk.PostFilterResult:
            await asyncio.sleep(3)
            low = scene.alone.world.pod_by_key("default/low")
            assert low is not None
            return fwk.PostFilterResult(fwk.SUCCESS, "n", fwk.Candidate("n", (low,), 0))

    async with a_scene(node("n"), plugins=[Slow], without=("DefaultPreemption", "DynamicResources")) as scene:
        await scene.has(pod("low", "1500m", "low"))
        await scene.has(pod("high", "1500m", "high"), within=1)
        if happens == "comes again":
            await scene.loses("high", at_once=True, within=0)
            await scene.has(pod("high", "1500m", "high", schedulingGates=[{"name": "wait"}]), within=10)
        else:
            scene.bind("high", "n")
            await scene.passes(10)

        assert scene.pods() == {"low", "high"}
        assert scene.leaving() == set()
        assert scene.nominated_node_of("high") == ""


async def test_no_victim_is_evicted_for_a_preemptor_that_somebody_binds_before_the_first_eviction() -> None:
    """The decision is made and the eviction has not begun when the watch shows that another scheduler was faster."""
    told_scheduler, victim = ToldScheduler(), make_pod("low").req(cpu=2).priority(1).node("n").obj()
    high = make_pod("high").req(cpu=2).priority(9)
    told_scheduler.comes(make_node("n").capacity(cpu=2), make_node("m").capacity(cpu=1), victim, high)
    queue, scheduler = told_scheduler.alone.world.queue, told_scheduler.alone.scheduler
    async with asyncio.TaskGroup() as acting:
        info = queue.pop_nowait()
        assert info is not None
        await scheduler.schedule_one(info, acting)
        promised = [pod.name for pod in queue.nominated_pods().get("n", [])]
        told_scheduler.alone.handlers.changed(high.obj(), high.node("m").obj())

    assert promised == ["high"]
    assert [call.name for call in told_scheduler.writes.calls if isinstance(call, fwk.DeletePod)] == []


@pytest.mark.anywhere
async def test_a_failed_deletion_leaves_the_last_victim_alone_and_the_preemptor_is_tried_again() -> None:
    """TestAsyncPreemptionFailure: any failure means that the last victim stays, and the preemptor is activated."""
    refused: list[str] = []

    def refuses(request: httpx.Request) -> httpx.Response | None:
        if is_deletion(request) and len(refused) < 1:
            refused.append(request.url.path)
            return refusal(403, "Forbidden", "not now")
        return None

    async with a_scene(node("n"), interfere=refuses) as scene:
        await scene.has(pod("low-1", "700m", "low"), pod("low-2", "700m", "low"))
        await scene.has(pod("high", "2", "high"), within=20)

        assert len(refused) == 1
        assert scene.node_of("high") == "n"
