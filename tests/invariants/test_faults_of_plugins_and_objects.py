"""Plugins that raise, objects that nobody has reckoned with, storms: one pod's trouble is not another's."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.engine import framework as fwk
from extender.rules.api_resources import PODS
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.invariants.odd_plugins import UNRESERVED, with_odd_plugin
from tests.invariants.oracle import leftovers, lost_pods, settles
from tests.invariants.planted_bugs import writing
from tests.invariants.worlds import SIZE, Bugs, Take, a_world
from tests.kit.faults import Action, Fault, answers

AFTER_RESERVE = ("reserve", "permit", "permit-wrong", "preBind", "bind")


@pytest.mark.parametrize(
    "point", ["preFilter", "filter", "filter-wrong", "preScore", "score", "score-nan", "score-101", *AFTER_RESERVE]
)
async def test_a_plugin_that_goes_wrong_costs_its_pod_a_pause_and_others_nothing(point: str) -> None:
    """The pod fails and comes back; what was kept for it is given back."""
    async with a_world(**with_odd_plugin()) as world:
        world.new_node("n")
        world.new_node("m")
        world.new_pod("odd", labels={"odd": point})
        world.new_pod("even")
        await asyncio.sleep(60)

        assert (world.node_of("odd") == "", world.node_of("even") != "") == (True, True)
        assert [*lost_pods(world), *leftovers(world)] == []
        (condition,) = world.pod("odd")["status"]["conditions"]
        assert condition["reason"] == "SchedulerError"
        assert 4 <= world.life.alone.world.queue.scheduling_cycle <= 20
        assert ("odd" in UNRESERVED) == (point in AFTER_RESERVE)


async def test_unprintable_answer_of_a_plugin_delays_its_own_pod_only() -> None:
    """What is to be done about the failure goes wrong itself."""
    async with a_world(**with_odd_plugin()) as world:
        world.new_node("n")
        world.new_pod("odd", labels={"odd": "bind-nonsense"})
        world.new_pod("even")
        await asyncio.sleep(60)

        assert (world.node_of("odd"), world.node_of("even")) == ("", "n")
        assert [*lost_pods(world), *leftovers(world)] == []
        assert 4 <= world.life.alone.world.queue.scheduling_cycle <= 20
        assert not world.life.task.done()


def raising(which: Callable[[fwk.ApiCall[Any]], bool]) -> Bugs:
    """Writes of whose request the dispatcher itself chokes, the first three times."""

    times = iter(range(3))

    def choke(call: fwk.ApiCall[Any]) -> fwk.ApiCall[Any]:
        if which(call) and next(times, None) is not None:
            raise RuntimeError("choked")
        return call

    return writing(choke)


@pytest.mark.parametrize(
    "how", ["when it is refused", "when it is not bound", "when it is bound", "when it makes room"]
)
async def test_unreportable_failure_affects_its_own_pod_only(how: str) -> None:
    """Whatever is to be done after an attempt goes wrong itself. The pod comes back, and the scheduler goes
    on.
    """
    room, priority = (how == "when it makes room"), "high" if how == "when it makes room" else ""

    def is_about_it(call: fwk.ApiCall[Any]) -> bool:
        return isinstance(call, fwk.RecordEvent) and (
            call.regarding.name == "odd" or (room and call.reason == "Preempted")
        )

    async with a_world(bugs=raising(is_about_it)) as world:
        world.new_node("n", "2")
        world.new_pod("small", "500m", priority="low")
        await asyncio.sleep(3)
        if how == "when it is not bound":
            world.faults.add(Fault(answers.status(403), verb="create", subresource="binding", name="odd", times=3))
        world.new_pod("odd", "9" if how == "when it is refused" else "2" if room else "1", priority=priority)
        await asyncio.sleep(3)
        assert list(lost_pods(world)) == []
        world.new_pod("even", "100m", priority="middle")
        await asyncio.sleep(60)

        assert not world.life.task.done()
        assert bool(world.node_of("odd")) == (how != "when it is refused")
        assert room or world.node_of("even")
        assert [*lost_pods(world), *leftovers(world)] == []
        assert world.life.alone.world.queue.scheduling_cycle <= 40


async def test_nonsense_among_the_pods_to_activate_does_not_prevent_the_binding() -> None:
    async with a_world(**with_odd_plugin()) as world:
        world.new_node("n")
        world.new_pod("odd", labels={"odd": "activates-nonsense"})
        await settles(world, but_first=5)

        assert world.node_of("odd") == "n"


@pytest.mark.parametrize("when", ["order", "order-later", "order-nothing"])
async def test_pods_that_cannot_be_put_into_an_order_are_tried_all_the_same(when: str) -> None:
    """QueueSort."""
    async with a_world(**with_odd_plugin("OddOrder")) as world:
        world.new_pod("odd", "900m", labels={"odd": when})
        world.new_pod("odder", "900m", labels={"odd": when})
        world.new_pod("even", "900m")
        await asyncio.sleep(30)
        assert list(lost_pods(world)) == []
        world.new_node("n", "3")
        await settles(world, but_first=15)

        assert len(world.monitor.done("binding")) == 3


async def test_a_gate_that_goes_wrong_keeps_its_pod_and_no_other() -> None:
    """PreEnqueue."""
    async with a_world(**with_odd_plugin()) as world:
        world.new_node("n")
        world.new_pod("odd", labels={"odd": "preEnqueue"})
        world.new_pod("even")
        await asyncio.sleep(10)

        assert (world.node_of("odd"), world.node_of("even")) == ("", "n")
        assert list(lost_pods(world)) == []


async def test_hanging_pre_bind_delays_no_other_pod() -> None:
    """PreBind is waited for beside everything else."""
    async with a_world(**with_odd_plugin()) as world:
        world.new_node("n")
        world.new_pod("odd", labels={"odd": "preBind-hangs"})
        world.new_pod("even")
        await asyncio.sleep(10)
        assert (world.node_of("odd"), world.node_of("even")) == ("", "n")
        await settles(world, but_first=60)

        assert world.node_of("odd") == "n"


async def test_an_object_that_cannot_be_taken_in_keeps_no_other_from_it() -> None:
    """Whoever was told of it has raised; what came with it and after it is known."""

    def choking(take: Take) -> Take:
        def choosy(old: HasMetadata | None, new: HasMetadata | None) -> None:
            if isinstance(new, Pod) and new.name == "poison":
                raise RuntimeError("poison")
            take(old, new)

        return choosy

    async with a_world(bugs=Bugs(taking=choking)) as world:
        world.new_node("n")
        for name in ("a", "poison", "b"):
            world.new_pod(name, "100m")
        await asyncio.sleep(10)

        assert (world.node_of("a"), world.node_of("poison"), world.node_of("b")) == ("n", "", "n")
        assert len(world.life.failed) == 1


async def test_pods_deleted_while_they_wait_leave_nothing_behind() -> None:
    """A namespace's worth of them, at once."""
    async with a_world() as world:
        world.new_node("n", "4")
        for number in range(300 * SIZE):
            world.new_pod(f"p{number}", "100m" if number % 2 else "9")
        await asyncio.sleep(0.05)
        for number in range(300 * SIZE):
            world.delete(f"p{number}", at_once=True)
        await settles(world, but_first=30)
        num_writes = len(world.monitor.writes)
        await asyncio.sleep(400)

        assert len(world.monitor.writes) == num_writes
        assert sum(world.life.alone.world.queue.pending_counts().values()) == 0


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(answers.status(429, retry_after=5), id="429"),
        pytest.param(answers.status(500), id="500"),
        pytest.param(answers.black_hole(), id="hangs"),
    ],
)
async def test_bindings_do_not_wait_for_events_to_be_written(sink: Action) -> None:
    """The pods are bound as soon as without the fault."""
    async with a_world() as world:
        for number in range(10):
            world.new_node(f"n{number}", "10")
        world.faults.add(Fault(sink, resource="events", times=None))
        await asyncio.sleep(5)
        for number in range(80):
            world.new_pod(f"p{number}")
        await asyncio.sleep(2)

        assert len(world.monitor.done("binding")) == 80


async def test_unreadable_pod_is_reported_and_delays_no_other() -> None:
    """A quantity that is none, behind the API server's back."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        poison = world.new_pod("poison", "100m", schedulingGates=[{"name": "wait"}])
        poison["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1e99x"
        poison["spec"]["schedulingGates"] = []
        world.registry.store.put(PODS, "default", "poison", poison)
        world.new_pod("web")
        await asyncio.sleep(60)

        assert (world.node_of("web"), world.node_of("poison")) == ("n", "")
        assert world.life.alone.world.queue.scheduling_cycle <= 20
        assert world.num_events("poison", "FailedScheduling") >= 1
        assert not world.life.task.done()
        await world.restart()
        await asyncio.sleep(10)
        assert not world.life.task.done()


async def test_pods_that_fit_nowhere_do_not_starve_a_less_important_one_that_does() -> None:
    """An endless stream of them."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.new_pod("modest", "1", priority="low")
        for number in range(60):
            for which in range(3):
                world.new_pod(f"greedy-{number}-{which}", "9", priority="high")
            if world.node_of("modest"):
                break
            await asyncio.sleep(1)

        assert world.node_of("modest") == "n"


@pytest.mark.slow
async def test_crowd_of_pending_pods_fills_new_room_and_the_rest_backs_off() -> None:
    """One node for three hundred pods."""
    async with a_world() as world:
        world.new_node("small", "500m")
        for number in range(300 * SIZE):
            world.new_pod(f"p{number}", "1")
        await asyncio.sleep(60)
        before = world.life.alone.world.queue.scheduling_cycle
        world.new_node("big", "50", pods="200")
        await asyncio.sleep(30)

        assert len(world.monitor.done("binding")) == 50
        assert world.life.alone.world.queue.scheduling_cycle - before <= 300 * SIZE * 5
        await settles(world)
