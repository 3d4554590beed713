"""What goes wrong while room is made, and what must hold all the same."""

import asyncio
from typing import Any

import httpx
import pytest

from extender.rules.api_resources import NODES, POD_DISRUPTION_BUDGETS
from tests.invariants.oracle import settles
from tests.invariants.planted_bugs import slow_to_kill
from tests.invariants.worlds import SIZE, Bugs, World, a_world, clock
from tests.kit.faults import Action, Call, Fault, answers
from tests.kit.faults.script import Forward
from tests.kit.objects import budget

VICTIM_GOES: dict[str, Any] = {"verb": "delete", "resource": "pods"}


async def a_full_node(world: World, *victims: str, cpu: str = "1", **spec: Any) -> None:
    """Node n is full of pods of low priority."""
    world.new_node("n")
    for name in victims:
        world.new_pod(name, cpu, priority="low", labels={"app": name}, **spec)
    await asyncio.sleep(10)
    assert {world.node_of(name) for name in victims} == {"n"}


def told_to_go(world: World) -> list[str]:
    """Names of pods, in the order in which the server took their deletions."""
    return [write.name for write in world.monitor.done(verb="delete")]


@pytest.mark.parametrize("code", [403, 500])
async def test_a_victim_that_may_not_be_deleted_stops_the_others_and_is_tried_again_with_pauses(code: int) -> None:
    """Nothing spins; once it may be deleted, room is made."""
    async with a_world() as world:
        await a_full_node(world, "a", "b")
        world.faults.add(Fault(answers.status(code), **VICTIM_GOES, times=None))
        world.new_pod("high", "2", priority="high")
        await asyncio.sleep(60)
        assert told_to_go(world) == []
        assert 3 <= world.faults.count("delete", "pods") <= 60
        world.faults.faults.clear()
        await settles(world, but_first=15)

        assert sorted(told_to_go(world)) == ["a", "b"]
        assert world.node_of("high") == "n"


@pytest.mark.parametrize("code", [403, 500])
async def test_a_failure_among_the_victims_leaves_the_last_one_where_it_is(code: int) -> None:
    """Of four, one may not be deleted. The last one is not told before that one has gone, so that nobody
    goes for nothing.
    """
    async with a_world() as world:
        await a_full_node(world, "a", "b", "c", "d", cpu="500m")
        world.faults.add(Fault(answers.status(code), **VICTIM_GOES, skip=1, times=40))
        world.new_pod("high", "2", priority="high")
        await asyncio.sleep(3)
        assert len(told_to_go(world)) in (1, 2)
        assert len(world.names()) >= 3
        await settles(world, but_first=120)

        assert (world.node_of("high"), sorted(told_to_go(world))) == ("n", ["a", "b", "c", "d"])
        assert not world.faults.missed


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_a_victim_that_has_gone_by_itself_counts_as_told(which: int) -> None:
    """404 for the first, the second or the last of three; the pod does not wait for anything else."""
    async with a_world() as world:
        await a_full_node(world, "a", "b", "c", cpu="600m")
        world.faults.add(Fault(gone_by_itself(world), **VICTIM_GOES, skip=which))
        world.new_pod("high", "1800m", priority="high")
        await settles(world, but_first=10, seconds=5)

        assert world.node_of("high") == "n"
        assert world.names() == ["high"]
        assert len(told_to_go(world)) == 2
        assert world.faults.count("delete", "pods") == 3
        # One attempt for each victim, one that preempts, and one as each victim goes.
        assert world.life.alone.world.queue.scheduling_cycle <= 3 + 1 + 3


def gone_by_itself(world: World) -> Action:
    """Somebody else was quicker."""

    async def act(call: Call, forward: Forward) -> httpx.Response:
        world.delete(call.name, at_once=True)
        return await forward()

    return act


async def test_a_victim_that_is_another_pod_by_now_is_left_alone() -> None:
    """The deletion names the UID, so that 409 protects who came after."""
    async with a_world() as world:
        await a_full_node(world, "a", cpu="1500m")
        world.faults.add(Fault(answers.delay(3), **VICTIM_GOES))
        world.new_pod("high", "1500m", priority="high")
        await asyncio.sleep(1)
        world.delete("a", at_once=True)
        new = world.new_pod("a", "100m", priority="low")["metadata"]["uid"]
        await settles(world, but_first=15)

        assert world.pod("a")["metadata"]["uid"] == new
        assert (world.node_of("high"), world.node_of("a"), told_to_go(world)) == ("n", "n", [])


async def test_no_victim_is_evicted_while_the_nomination_cannot_be_written() -> None:
    """Nothing spins meanwhile."""
    async with a_world() as world:
        await a_full_node(world, "a", cpu="1500m")
        world.faults.add(Fault(answers.status(403), verb="patch", name="high", times=None))
        world.new_pod("high", "1500m", priority="high")
        await asyncio.sleep(60)
        assert world.faults.count("delete", "pods") == 0
        assert world.faults.count("patch", "pods") <= 60
        world.faults.faults.clear()
        await settles(world, but_first=15)

        assert (world.node_of("high"), told_to_go(world)) == ("n", ["a"])


async def test_room_that_is_freed_for_a_pod_that_has_gone_is_for_others() -> None:
    """The promise ends with the pod, and no more victims go."""
    async with a_world() as world:
        await a_full_node(world, "a", cpu="1500m", metadata={"finalizers": ["example.com/stay"]})
        world.new_pod("high", "1500m", priority="high")
        world.new_pod("next", "1500m")
        await asyncio.sleep(5)
        world.delete("high")
        await asyncio.sleep(5)
        world.let_go("a")
        await settles(world, but_first=15)

        assert (world.node_of("next"), told_to_go(world)) == ("n", ["a"])


async def test_victim_evicted_for_a_pod_that_is_long_gone_is_reported() -> None:
    async with a_world(bugs=Bugs(writing=slow_to_kill)) as world:
        await a_full_node(world, "a", cpu="1500m")
        world.new_pod("high", "1500m", priority="high")
        await asyncio.sleep(5)
        world.delete("high")
        world.new_pod("next")  # somebody whose writes let the monitor see that it is gone
        await asyncio.sleep(200)

        assert [complaint.partition(":")[0] for complaint in world.monitor.complaints] == ["needed victims"]


async def test_a_pod_waits_for_a_victim_that_takes_its_time() -> None:
    """Ten minutes; nobody else has to go, and nobody less important takes the room."""
    async with a_world() as world:
        await a_full_node(world, "a", "b", cpu="900m", metadata={"finalizers": ["example.com/stay"]})
        world.new_pod("high", "1", priority="high")
        await asyncio.sleep(5)
        world.new_pod("small", "100m", priority="low")
        world.new_pod("eager", "900m")
        await asyncio.sleep(600)
        assert len(told_to_go(world)) == 1
        assert world.pod("high")["status"]["nominatedNodeName"] == "n"
        (victim,) = told_to_go(world)
        world.let_go(victim)
        await settles(world, but_first=15)

        assert (world.node_of("high"), world.node_of("eager")) == ("n", "")
        assert len(told_to_go(world)) == 1


async def test_pod_that_its_budget_protects_is_not_chosen_as_victim() -> None:
    """Of two pods that would do, the one without a spent budget goes."""
    async with a_world() as world:
        world.new_node("m")
        world.new_node("n")
        for name, node in (("a", "m"), ("b", "n")):
            world.new_pod(name, "1500m", priority="low", labels={"app": name}, nodeSelector={"name": node})
        world.create(budget("kept", {"matchLabels": {"app": "a"}}, minAvailable=1))
        await asyncio.sleep(10)
        world.new_pod("high", "1500m", priority="high")
        await settles(world, but_first=15)

        assert (told_to_go(world), world.node_of("high")) == (["b"], "n")


@pytest.mark.parametrize("evicted", ["a", "b"])
async def test_recently_evicted_pod_is_not_counted_twice_against_its_budget(evicted: str) -> None:
    """Its budget lets one of two go, and says itself that this one is gone already; the other one is counted
    against it.
    """
    async with a_world(kubelet=False) as world:
        for node, name in (("m", "a"), ("n", "b")):
            world.new_node(node)
            world.new_pod(name, "1500m", priority="low", labels={"app": "a"}, nodeSelector={"name": node})
        world.create(budget("kept", {"matchLabels": {"app": "a"}}, minAvailable=2))
        await asyncio.sleep(5)
        stored_budget = world.get("kept", POD_DISRUPTION_BUDGETS)
        disrupted = {evicted: clock().strftime("%Y-%m-%dT%H:%M:%SZ")}
        stored_budget["status"] |= {"disruptionsAllowed": 0, "disruptedPods": disrupted}
        world.registry.update(POD_DISRUPTION_BUDGETS, "default", "kept", stored_budget, subresource="status")
        await asyncio.sleep(1)
        world.new_pod("high", "1500m", priority="high")
        await asyncio.sleep(10)

        assert told_to_go(world) == [evicted]
        assert world.monitor.complaints == []


@pytest.mark.slow
async def test_attempts_are_bounded_while_nodes_flap() -> None:
    """Forty nodes come and go each second, and are cordoned in between."""
    async with a_world() as world:
        for number in range(40 * SIZE):
            world.new_node(f"n{number}", "500m")
        for number in range(20):
            world.new_pod(f"p{number}", "1")
        for second in range(30):
            number = second % (40 * SIZE)
            world.delete(f"n{number}", NODES)
            node = world.get(f"n{(number + 1) % (40 * SIZE)}", NODES)
            node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)
            world.registry.update(NODES, "", node["metadata"]["name"], node)
            await asyncio.sleep(0.5)
            world.new_node(f"n{number}", "500m")
            await asyncio.sleep(0.5)
        attempts = world.life.alone.world.queue.scheduling_cycle
        await settles(world)

        assert attempts <= 20 * 4 * 30


async def test_no_pod_is_lost_while_all_nodes_flap() -> None:
    """Each second each of ten nodes goes, is cordoned, is tainted, or is as it was."""
    pods, seconds, taint = 20, 12, {"key": "flaps", "effect": "NoSchedule"}

    def flap(world: World, name: str, turn: int, is_there: bool) -> None:
        if not is_there:
            world.new_node(name, "500m", unschedulable=True)
        elif turn == 0:
            world.delete(name, NODES)
        else:
            node = world.get(name, NODES)
            node["spec"] |= {"unschedulable": turn == 1, "taints": [taint] if turn == 2 else []}
            world.registry.update(NODES, "", name, node)

    async with a_world() as world:
        nodes = [f"n{number}" for number in range(10 * SIZE)]
        for name in nodes:
            world.new_node(name, "500m")
        for number in range(pods):
            world.new_pod(f"p{number}", "1")
        await asyncio.sleep(1)
        for second in range(seconds):
            present_names = set(world.names(NODES))
            for number, name in enumerate(nodes):
                flap(world, name, (number + second) % 4, name in present_names)
            await asyncio.sleep(1)
        attempts = world.life.alone.world.queue.scheduling_cycle
        assert sum(world.life.alone.world.queue.pending_counts().values()) == pods
        world.new_node("big", "16")
        await settles(world)

        # Nobody else waits, so that pauses are cut short; but not each change of each node is a reason of its own
        # for each pod.
        assert attempts <= seconds * (2 * pods + len(nodes))
        assert sum(bool(world.node_of(f"p{number}")) for number in range(pods)) == 16
