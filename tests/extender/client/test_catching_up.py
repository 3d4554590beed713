"""Catching up: a new leader lists what has changed before it decides."""

import asyncio

from tests.extender.client.reflector_world import World, begun, both_ways, now
from tests.kit.faults import Fault, answers, watches


def behind(world: World) -> bool:
    return "late" not in world.names("pods")


@both_ways
async def test_catching_up_lists_what_a_lagging_watch_has_not_delivered(streams: bool) -> None:
    """The watch says nothing of it, nor that it has not. The list that is asked for does."""
    unsaid = Fault(watches.skipping(watches.event_of("late", "ADDED")), verb="watch", resource="pods")
    async with begun(unsaid, streams_lists=streams) as world:
        world.server.new_pod("late", nodeName="n0")
        await asyncio.sleep(10)
        assert behind(world)
        began = now()

        await world.informers.catch_up()

        assert not behind(world)
        assert now() - began < 2


@both_ways
async def test_catching_up_waits_for_the_newest_changes(streams: bool) -> None:
    async with begun(streams_lists=streams) as world:
        for table, name in (("nodes", "n2"), ("pods", "late"), ("pvcs", "c1")):
            world.server.new(table, name)
        await world.informers.catch_up()

        assert world.names("nodes") == ["n0", "n1", "n2"]
        assert not behind(world)


async def test_news_that_come_by_themselves_need_no_list() -> None:
    async with begun() as world:
        for table in ("nodes", "pods", "pvcs"):
            world.server.new(table, "x")
        catching_up = asyncio.ensure_future(world.informers.catch_up())
        await asyncio.sleep(0.5)
        for table in ("nodes", "pods", "pvcs"):
            world.server.label(table, "x", "1")
        await catching_up
    assert world.reflector("pvcs").counters.lists == 1


async def test_catching_up_waits_while_the_server_is_away() -> None:
    async with begun() as world:
        world.faults.go_down()
        catching_up = asyncio.ensure_future(world.informers.catch_up())
        await asyncio.sleep(60)
        assert not catching_up.done()
        world.server.new_pod("late", nodeName="n0")
        world.faults.come_up()
        await catching_up

        assert not behind(world)


async def test_a_question_that_fails_is_asked_again() -> None:
    async with begun() as world:
        world.faults.add(Fault(answers.status(500), verb="list", resource="pods"))
        world.faults.add(Fault(answers.login_page(), verb="list", resource="nodes"))
        await world.informers.catch_up()
