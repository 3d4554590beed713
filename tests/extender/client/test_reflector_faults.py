"""The connection between a reflector and the server goes wrong: in the end the reflector knows what a new list says.

All tests run in virtual time against the embedded API; `tell` checks at the end of each that the reflectors, and a
cache that is fed by them, are what a new list would make them.
"""

import asyncio
import logging
from itertools import pairwise
from typing import Any, final

import pytest

from extender.values.targets.target import Credentials, Identity, Target
from tests.extender.client.reflector_world import (
    PODS,
    World,
    a_world,
    begin,
    begun,
    both_ways,
    is_plain,
    lists_of_pods,
    now,
    tell,
    times,
)
from tests.kit.faults import Action, Fault, answers, watches

# Watches that end.


@both_ways
async def test_a_watch_that_is_closed_goes_on_where_it_was(streams: bool) -> None:
    """The server closes the watch while objects change. No list; every change is told once."""
    async with begun(streams_lists=streams) as world:
        world.server.new_pod("x")
        await asyncio.sleep(1)
        world.faults.cut(cleanly=True)
        world.server.new_pod("y")
        world.server.label("pods", "x", "1")
        world.server.end("pods", "p0")
        await asyncio.sleep(1.6)

        assert world.wrong() == []

    assert world.changes("pods")[-5:] == ["+x", "+y", "~x", "~p0", "-p0"]
    assert len(lists_of_pods(world)) == 1


async def test_half_a_line_is_dropped_and_read_again_after_reconnecting() -> None:
    """The connection is reset in the middle of an event."""
    cut = Fault(watches.reset_after(1, partial=300), verb="watch", resource="pods")
    async with begun(cut, streams_lists=False) as world:
        world.server.new_pod("x")
        world.server.new_pod("y")
        await asyncio.sleep(1.7)

    assert world.changes("pods")[-2:] == ["+x", "+y"]
    assert len(lists_of_pods(world)) == 1
    assert world.reflector("pods").counters.cuts == 1


@final
class Moody(Credentials):
    """Raises what nobody foresees, as long as it is told to."""

    raises: Exception | None = None

    async def identity(self, now: float) -> Identity:
        if self.raises is not None:
            raise self.raises
        return Identity()

    def invalidate(self, refused: Identity) -> None:
        """Keeps what it has."""


@both_ways
@pytest.mark.parametrize(
    "raised", [RuntimeError("File descriptor 40 is used by transport"), KeyError("x"), OSError("busy"), ValueError()]
)
async def test_whatever_is_raised_no_reflector_ends_by_it(
    streams: bool, raised: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """All know again what is there when it is over, and each has said what it was."""
    credentials = Moody()
    async with begun(streams_lists=streams, target=Target("http://server", credentials=credentials)) as world:
        credentials.raises = raised
        world.faults.cut()
        world.server.new_pod("x")
        await asyncio.sleep(100)
        assert [reflector.failing_for(now()) is not None for reflector in world.informers.reflectors] == [True] * 3
        credentials.raises = None
        await asyncio.sleep(61)

        assert world.wrong() == []

    assert world.names("pods") == [*PODS, "x"]
    assert {record.exc_info[1] for record in caplog.records if record.exc_info} == {raised}


# History that is gone.


@both_ways
@pytest.mark.parametrize(
    "too_old",
    [
        pytest.param(answers.status(410, "too old resource version"), id="as the status of the watch"),
        pytest.param(watches.error_after(0, 410, "too old resource version"), id="as an event of the watch"),
    ],
)
async def test_when_history_is_gone_there_is_one_list_of_the_newest_state(too_old: Action, streams: bool) -> None:
    async with begun(streams_lists=streams) as world:
        world.faults.go_down()
        world.server.end("pods", "p0")
        world.server.new_pod("x")
        world.server.compact()
        world.faults.add(Fault(too_old, verb="watch", resource="pods", where=is_plain))
        world.faults.come_up()
    lists = lists_of_pods(world)

    assert len(lists) == 2
    assert "resourceVersion" not in lists[1]
    assert world.changes("pods")[-2:] == ["-p0", "+x"]


@both_ways
async def test_a_server_that_has_compacted_its_history_is_listed_again(streams: bool) -> None:
    """With the server's own 410: the watch was away while everything was forgotten."""
    async with begun(streams_lists=streams) as world:
        world.faults.go_down()
        for name in PODS:
            world.server.end("pods", name)
        world.server.compact()
        world.faults.come_up()

    assert world.reflector("pods").counters.errors["Gone"] == 1
    assert len(lists_of_pods(world)) == 2


async def test_a_list_that_can_not_be_continued_is_begun_anew_and_never_half_seen() -> None:
    """The third page is answered with 410."""
    first = Fault(answers.status(410), verb="list", resource="pods")
    third_page = Fault(
        answers.status(410), verb="list", resource="pods", where=lambda call: "continue" in call.params, skip=1
    )
    async with a_world(first, third_page, streams_lists=False, page_size=2) as world:
        for number in range(7):
            world.server.new_pod(f"x{number}")
        await world.informers.wait_for_sync()

    assert [query.get("limit") for query in lists_of_pods(world)] == ["2", "2", "2", "2", None]
    assert [size for table, size in world.sizes if table == "pods"] == [7]


@both_ways
async def test_a_server_that_has_not_seen_what_we_have_is_asked_for_the_newest(streams: bool) -> None:
    """504, too large resource version."""
    behind = Fault(
        answers.too_large_resource_version(),
        resource="pods",
        where=lambda call: (
            call.params.get("resourceVersion", "0") != "0" and (call.verb == "list" or not is_plain(call))
        ),
    )
    async with begun(behind, streams_lists=streams, relist_period=100) as world:
        world.server.new_pod("x")
        await asyncio.sleep(200)
    lists = lists_of_pods(world)

    assert lists[1]["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in lists[2]


@both_ways
async def test_a_history_of_one_second_is_enough_to_make_progress(streams: bool) -> None:
    """The server forgets its history every second, and every connection is cut."""
    async with begun(streams_lists=streams, seconds=130) as world:
        for second in range(120):
            world.server.new_pod(f"x{second}")
            if second:
                world.server.end("pods", f"x{second - 1}")
            world.faults.cut()
            world.server.compact()
            await asyncio.sleep(1)
    additions = {change for change in world.changes("pods") if change.startswith("+x")}

    assert len(additions) >= 3
    assert 4 <= len(lists_of_pods(world)) <= 12


# Servers that are busy, broken, or away.


async def test_a_busy_server_is_given_the_time_it_asks_for_and_no_list_to_make() -> None:
    """429 with Retry-After 7 on the watch."""
    busy = Fault(answers.status(429, retry_after=7), verb="watch", resource="pods")
    async with begun(busy, streams_lists=False) as world:
        await asyncio.sleep(10)
    first, second = times(world, "watch")[:2]

    assert 7 <= second - first < 10
    assert len(lists_of_pods(world)) == 1


def test_a_list_that_is_refused_for_now_comes_when_the_server_has_time() -> None:
    """429 with Retry-After 7 on the list."""
    world = tell(begin, Fault(answers.status(429, retry_after=7), verb="list", resource="pods"), streams_lists=False)
    first, second = times(world, "list")[:2]

    assert 7 <= second - first < 10


@pytest.mark.parametrize("code", [403, 429, 500, 503, 504])
@pytest.mark.parametrize(
    "forever",
    [
        pytest.param({"retry_after": 99_999_999}, id="header"),
        pytest.param({"details": {"retryAfterSeconds": 10**400}}, id="details"),
    ],
)
async def test_a_server_that_asks_to_wait_for_years_is_asked_again_after_a_minute(
    code: int, forever: dict[str, Any]
) -> None:
    """All is refused for twelve seconds."""
    async with begun(seconds=61) as world:
        world.faults.add(Fault(answers.status(code, **forever), times=None))
        world.faults.cut()
        world.server.new_pod("x")
        await asyncio.sleep(12)
        world.faults.faults.clear()


@pytest.mark.parametrize("refusal", [answers.status(429, retry_after=60), answers.status(503, retry_after=60)])
async def test_reflector_that_is_to_wait_is_woken_by_another_one_that_was_refused_and_is_answered(
    refusal: Action,
) -> None:
    """The nodes may be asked for after three seconds, the pods after a minute."""
    async with begun(
        Fault(answers.status(429, retry_after=3), verb="watch", resource="nodes", where=is_plain),
        Fault(refusal, verb="watch", resource="pods", where=is_plain),
        seconds=6,
    ) as world:
        world.faults.cut()
        world.server.new_pod("x")


@both_ways
@pytest.mark.parametrize("seed", range(3))
async def test_a_server_that_fails_three_times_in_ten_is_followed_all_the_same(seed: int, streams: bool) -> None:
    """500, 503 and 504 on everything; all is well within a minute after it ends."""
    flaky = [Fault(answers.status(code), probability=0.1, times=None) for code in (500, 503, 504)]
    async with begun(*flaky, streams_lists=streams, seed=seed, seconds=60) as world:
        for number in range(60):
            world.server.new_pod(f"x{number}")
            if number % 3 == 0:
                world.server.label("nodes", "n0", str(number))
            if number % 4 == 0:
                world.faults.cut()
            await asyncio.sleep(2)
        world.faults.faults.clear()


@both_ways
async def test_a_server_that_is_away_in_the_middle_of_a_burst_is_caught_up_with(streams: bool) -> None:
    """Down for ten seconds while pods come by the hundred. Nobody lists while nobody listens."""
    async with begun(streams_lists=streams, seconds=60) as world:
        for number in range(300):
            world.server.new_pod(f"x{number}", nodeName="n0" if number % 2 else "")
            if number == 100:
                world.faults.go_down()
            if number == 200:
                world.faults.come_up()
            await asyncio.sleep(0.1)

    assert len(lists_of_pods(world)) == 1


@both_ways
def test_a_server_that_comes_back_with_an_older_past_is_believed(
    streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Down for ten minutes, then restored from a copy: resource versions count from further back."""

    async def story(world: World) -> None:
        await begin(world)
        world.server.new_pod("lost")
        await asyncio.sleep(1)
        world.faults.go_down()
        await asyncio.sleep(600)
        world.restart_server(resource_version=10)
        world.server.new_node("n0", cpu="4")
        world.server.new_pod("p0", nodeName="n0")
        world.server.new_pod("x")
        world.faults.come_up()

    with caplog.at_level(logging.WARNING, logger="extender.client.informers.reflector"):
        world = tell(story, streams_lists=streams, seconds=240)

    assert world.names("pods") == ["p0", "x"]
    assert world.reflector("pods").counters.went_back == 1
    assert "pods: the resource version went backwards" in caplog.text


@both_ways
@pytest.mark.parametrize("away", [3, 15, 600])
@pytest.mark.parametrize("restarts", [False, True], ids=["as it was", "without its history"])
def test_all_resources_are_known_again_within_seconds_of_the_servers_return(
    streams: bool, away: float, restarts: bool
) -> None:
    """The first reflector that gets through wakes the others. How long the server was away makes no difference."""

    async def story(world: World) -> None:
        await begin(world)
        world.faults.go_down()
        await asyncio.sleep(away)
        if restarts:
            world.server.new_pod("x")
            world.server.compact()
        world.faults.come_up()
        await asyncio.sleep(13)

        assert [health.last_error for health in world.informers.health(now())] == ["", "", ""]

    for seed in range(3):
        tell(story, streams_lists=streams, seed=seed)


async def test_pauses_grow_to_some_seconds_while_connections_are_refused_and_not_beyond() -> None:
    async with begun() as world:
        world.faults.go_down()
        await asyncio.sleep(600)
        world.faults.come_up()
    times = [call.at for call in world.faults.calls if call.resource == "pods"]
    pauses = [after - before for before, after in pairwise(times)]

    assert 5 <= max(pauses[5:-3]) <= 10
    assert len(times) < 600 / 5 + 10


# Silence.


async def test_a_list_that_is_never_answered_is_given_up_and_others_go_on() -> None:
    """The connection is accepted, and no byte comes. The list may have been too long, so that it is asked for in
    pages.
    """
    synced: dict[str, float] = {}
    async with a_world(Fault(answers.black_hole(), verb="list", resource="pods"), streams_lists=False) as world:
        world.server.new_pod("x")
        for table in ("nodes", "pods"):
            await world.reflector(table).wait_for_sync()
            synced[table] = now()

    assert synced["nodes"] < 1
    assert 60 <= synced["pods"] < 62
    assert lists_of_pods(world) == [{"limit": "500", "resourceVersion": "0"}, {"limit": "500"}]


async def test_a_peer_that_has_vanished_is_noticed_within_ninety_seconds() -> None:
    """The watch is open, and nobody is at the other end. There is no list, but for one object, so as to know that the
    server is the same. That is no error: a kind of which nothing has changed yet is as silent on a real server.
    """
    silences: list[float] = []
    async with begun(Fault(watches.silent_after(0), verb="watch", resource="pods"), streams_lists=False) as world:
        world.server.new_pod("x")
        await asyncio.sleep(60)
        health = world.reflector("pods").health(now())
        assert health.silent_for is not None
        silences.append(health.silent_for)
        assert world.names("pods") == PODS
        await asyncio.sleep(90 - now())

        assert world.names("pods") == [*PODS, "x"]
        assert world.reflector("pods").counters.errors == {}

    assert 60 <= silences[0] <= 66
    assert [query["limit"] for query in lists_of_pods(world)] == ["500", "1"]


@both_ways
async def test_a_watch_with_nothing_but_bookmarks_is_alive(streams: bool) -> None:
    """Nothing happens for an hour. The watch is renewed when its time is over, and not before."""
    async with begun(streams_lists=streams) as world:
        await asyncio.sleep(3600)
    watched = times(world, "watch")

    assert all(299 <= later - earlier <= 602 for earlier, later in pairwise(watched))
    assert world.reflector("pods").counters.errors == {}
    assert len(lists_of_pods(world)) == 1
