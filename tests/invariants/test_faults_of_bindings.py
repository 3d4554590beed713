"""What goes wrong around a binding, and what must hold all the same."""

import asyncio
from typing import Any

import pytest

from extender.rules.api_resources import PODS
from tests.invariants.oracle import places_of, settles
from tests.invariants.worlds import SIZE, World, a_world
from tests.kit.faults import Action, Fault, answers, watches

BINDING: dict[str, Any] = {"verb": "create", "resource": "pods", "subresource": "binding"}


def bound(world: World) -> list[str]:
    """Names of pods, in the order in which the server bound them."""
    return [write.name for write in world.monitor.done("binding")]


async def test_recreated_pod_is_bound_and_the_old_uid_is_refused() -> None:
    """The old UID's Binding is refused, and no more than now and then tried again until the watch tells; the
    new one is bound.
    """
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(
            Fault(answers.delay(5), **BINDING), Fault(watches.delayed(20), verb="watch", resource="pods", times=None)
        )
        world.faults.cut()
        await asyncio.sleep(5)
        old = world.new_pod("web")["metadata"]["uid"]
        await asyncio.sleep(21)  # the binding is on its way
        world.delete("web", at_once=True)
        new = world.new_pod("web")["metadata"]["uid"]
        await settles(world, but_first=60)

        attempts = [(write.body["metadata"]["uid"], write.status) for write in world.monitor.writes if write.is_binding]
        assert set(attempts) == {(old, 409), (new, 201)}
        assert attempts.count((old, 409)) <= 4
        assert attempts.count((new, 201)) == 1


async def test_assumption_ends_when_another_scheduler_binds_the_pod() -> None:
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(Fault(answers.delay(3), **BINDING))
        world.new_pod("web", "1500m")
        await asyncio.sleep(1)
        world.new_node("other")
        world.bind("web", "other")
        world.new_pod("next", "1500m", nodeSelector={"name": "n"})
        await settles(world, but_first=10)

        assert (world.node_of("web"), world.node_of("next")) == ("other", "n")


@pytest.mark.parametrize("how", ["is gone", "is going"])
async def test_a_pod_that_goes_while_it_is_bound_leaves_nothing_behind(how: str) -> None:
    """404, and 409 for a pod that is being deleted."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(Fault(answers.delay(3), **BINDING))
        world.new_pod("web", "1500m", metadata={"finalizers": ["example.com/stay"] if how == "is going" else []})
        await asyncio.sleep(1)
        world.delete("web")
        world.new_pod("next", "1500m")
        await asyncio.sleep(20)
        if how == "is going":
            world.let_go("web")
        await settles(world, but_first=5)

        assert bound(world) == ["next"]


GATED = "pod web has non-empty .spec.schedulingGates"
ANSWERS = [
    pytest.param(answers.status(409, GATED), 10, id="refused as gated: an error like others"),
    pytest.param(answers.commit_then(answers.answer("}{", 201)), 20, id="201 with garbage is success"),
    # As good as a restore of etcd: the server has said that it is done, and knows nothing of it.
    pytest.param(answers.answer("{}", 201), 45, id="a binding that the server has lost"),
]


@pytest.mark.parametrize(("fault", "seconds"), ANSWERS)
async def test_after_an_odd_answer_to_its_binding_a_pod_is_bound_once(fault: Action, seconds: float) -> None:
    """The status decides, whatever the body is; what no watch tells of is requested again."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(Fault(fault, **BINDING))
        world.new_pod("web")
        await settles(world, but_first=seconds)

        assert bound(world) == ["web"]


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(answers.commit_then_drop(), id="the connection is cut"),
        pytest.param(answers.commit_then(answers.black_hole()), id="the answer never comes"),
        pytest.param(answers.commit_then(answers.status(500)), id="the answer is 500"),
        pytest.param(
            answers.commit_then(answers.answer("<html>", 502, content_type="text/html")), id="a proxy answers"
        ),
    ],
)
async def test_a_binding_whose_answer_is_lost_has_happened_once(lost: Action) -> None:
    """It is asked for again, for the same pod and node, and what it says then is success; one event says
    so.
    """
    async with a_world() as world:
        world.new_node("n")
        world.new_node("m")
        world.faults.add(Fault(lost, **BINDING))
        world.new_pod("web")
        await settles(world, but_first=60)

        assert {write.body["target"]["name"] for write in world.monitor.writes if write.is_binding} == {
            world.node_of("web")
        }
        assert bound(world) == ["web"]
        assert world.num_events("web", "Scheduled") == 1
        assert not world.faults.missed


async def test_unconfirmed_binding_keeps_its_room_while_the_server_is_away() -> None:
    """After the outage the pod is bound once, and nobody has got its room meanwhile."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(Fault(answers.drop_before_commit(), **BINDING))
        world.new_pod("first", "1500m")
        world.new_pod("second", "1500m")
        await asyncio.sleep(0.05)
        world.faults.go_down()
        await asyncio.sleep(60)
        uid = world.pod("first")["metadata"]["uid"]
        assert list(world.life.dispatcher.in_limbo) == [uid]
        assert places_of(world.life.alone)[uid] == ["under way"]
        world.faults.come_up()
        await settles(world, but_first=10)

        assert bound(world) == ["first"]


@pytest.mark.slow
async def test_a_crowd_that_comes_while_the_server_is_away_is_bound_when_it_is_back() -> None:
    """Ten seconds in the middle of it; no pod stays pending, and no room is taken by nobody."""
    async with a_world() as world:
        for number in range(20 * SIZE):
            world.new_node(f"n{number}", "2")
        await asyncio.sleep(5)
        for number in range(200 * SIZE):
            world.new_pod(f"p{number}", "150m")
            await asyncio.sleep(0.01)
            if number == 50 * SIZE:
                world.faults.go_down()
        await asyncio.sleep(10)
        world.faults.come_up()
        await settles(world)

        assert len(bound(world)) == 200 * SIZE


async def test_a_binding_that_is_done_late_does_not_over_commit_the_node() -> None:
    """Somebody who came in the meantime did not get the room."""
    async with a_world() as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(
            Fault(answers.commit_late(50), **BINDING), Fault(answers.drop_before_commit(), **BINDING, times=8)
        )
        world.new_pod("late", "1500m")
        await asyncio.sleep(40)
        world.new_pod("hopeful", "1500m")
        await settles(world, but_first=60)

        assert (world.node_of("late"), world.node_of("hopeful")) == ("n", "")


async def test_an_assumption_has_no_end_of_its_own() -> None:
    """The watch lags by half a minute, and the room is taken all the time."""
    async with a_world(relist=1800.0) as world:
        world.new_node("n")
        await asyncio.sleep(5)
        world.faults.add(Fault(watches.delayed(30), verb="watch", resource="pods", times=None))
        world.faults.cut()
        await asyncio.sleep(5)
        for name in ("a", "b", "c"):
            world.new_pod(name, "1500m")
        await asyncio.sleep(80)
        assert len(bound(world)) == 1
        world.faults.faults.clear()
        world.faults.cut()
        await settles(world, but_first=10)

        assert len(bound(world)) == 1


async def test_a_pod_whose_status_cannot_be_written_is_tried_again_and_not_too_often() -> None:
    async with a_world() as world:
        world.new_node("small", "500m")
        world.faults.add(Fault(answers.status(500), verb="patch", times=None))
        world.new_pod("web")
        await asyncio.sleep(660)
        attempts = world.life.alone.world.queue.scheduling_cycle
        patches = world.faults.count("patch", "pods")
        world.new_node("n")
        await settles(world)

        assert 2 <= attempts <= 5
        assert patches <= 4 * attempts
        assert bound(world) == ["web"]


def condition(world: World, name: str) -> tuple[str, str]:
    """Status and message of PodScheduled."""
    (scheduled,) = [entry for entry in world.pod(name)["status"]["conditions"] if entry["type"] == "PodScheduled"]
    return scheduled["status"], scheduled.get("message", "")


async def test_a_condition_that_is_written_late_does_not_replace_a_newer_one() -> None:
    """The first patch is given up after ten seconds, and done after forty."""
    async with a_world() as world:
        world.new_node("n", "500m")
        await asyncio.sleep(5)
        world.faults.add(Fault(answers.commit_late(40), verb="patch", name="web"))
        world.new_pod("web")
        await asyncio.sleep(20)
        world.new_node("m", "4", taints=[{"key": "not", "value": "yours", "effect": "NoSchedule"}])
        await asyncio.sleep(15)
        assert condition(world, "web")[1].startswith("0/2 nodes are available")
        await asyncio.sleep(60)

        assert condition(world, "web")[1].startswith("0/2 nodes are available")
        assert not world.faults.missed


async def test_late_condition_write_does_not_overwrite_that_of_a_bound_pod() -> None:
    async with a_world(kubelet=False) as world:
        world.new_node("small", "500m")
        await asyncio.sleep(5)
        world.faults.add(Fault(answers.commit_late(40), verb="patch", name="web"))
        world.new_pod("web")
        await asyncio.sleep(20)
        world.new_node("n")
        await settles(world, but_first=60)

        assert (world.node_of("web"), condition(world, "web")) == ("n", ("True", ""))


async def test_the_room_of_a_pod_that_the_server_says_is_nowhere_is_for_others() -> None:
    """A binding that all had seen is forgotten; who waits for the room hears of it at once."""
    async with a_world(kubelet=False) as world:
        world.new_node("n")
        world.new_pod("web", "1500m")
        await asyncio.sleep(5)
        world.new_pod("next", "1500m")
        await asyncio.sleep(5)
        pod = world.pod("web")
        del pod["spec"]["nodeName"]
        pod["spec"]["nodeSelector"] = {"name": "elsewhere"}
        world.registry.store.put(PODS, "default", "web", pod)
        await settles(world, but_first=11, seconds=1)

        assert (world.node_of("web"), world.node_of("next")) == ("", "n")
