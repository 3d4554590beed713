"""What the server says comes twice, late, never, or makes no sense: in the end the reflector knows what a new list
says.

See `test_reflector_faults.py`.
"""

import asyncio
from typing import Any

import pytest

from tests.extender.client.reflector_world import PODS, Server, a_world, begin, begun, both_ways, lists_of_pods, now
from tests.kit.faults import Fault, answers, watches

# Events that are missing, come again, or come in another order.


KNOWN = {"nodes": "n1", "pods": "p1", "pvcs": "c0"}


def _happen(server: Server, table: str, what: str) -> None:
    if what == "MODIFIED":
        server.label(table, KNOWN[table], "new")
    elif what == "DELETED":
        server.end(table, KNOWN[table])
    else:
        server.new(table, "x")


@both_ways
@pytest.mark.parametrize("what", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize("table", ["nodes", "pods", "pvcs"])
async def test_an_event_that_was_missed_is_made_up_for_by_the_next_list(table: str, what: str, streams: bool) -> None:
    """The server never said it."""
    unsaid = watches.skipping(watches.event_of("x" if what == "ADDED" else KNOWN[table], what))
    resource = "persistentvolumeclaims" if table == "pvcs" else table
    async with begun(
        Fault(unsaid, verb="watch", resource=resource), streams_lists=streams, relist_period=600, seconds=600
    ) as world:
        _happen(world.server, table, what)
        await asyncio.sleep(100)
        assert world.wrong() != []

    assert world.reflector(table).counters.lists == 2


@both_ways
async def test_event_that_is_sent_three_times_is_delivered_once(streams: bool) -> None:
    async with begun(
        Fault(watches.repeating(3), verb="watch", resource="pods", times=None), streams_lists=streams
    ) as world:
        world.server.new_pod("x")
        world.server.label("pods", "x", "1")
        world.server.end("pods", "p0")
        world.server.new_pod("p0")

    assert world.changes("pods") == ["+p0", "+p1", "+p2", "+x", "~x", "~p0", "-p0", "+p0"]


@pytest.mark.parametrize(
    ("late", "distance", "changes"),
    [
        pytest.param(watches.event_of("x", "MODIFIED"), 1, ["+x", "-x", "+y"], id="the end before the last change"),
        pytest.param(watches.event_of("x", "ADDED"), 1, ["+x", "~x", "-x", "+y"], id="the change before the beginning"),
        pytest.param(watches.event_of("x", "ADDED", "MODIFIED"), 3, ["+y"], id="the end before the beginning"),
        pytest.param(watches.event_of("x", "DELETED"), 1, ["+x", "~x", "~x", "+y", "-x"], id="the end after others"),
    ],
)
async def test_events_out_of_order_lead_to_the_right_end_and_revive_no_deleted_object(
    late: watches.Which, distance: int, changes: list[str]
) -> None:
    async with begun(
        Fault(watches.reordered(distance, late), verb="watch", resource="pods"), streams_lists=False
    ) as world:
        world.server.new_pod("x")
        world.server.label("pods", "x", "1")
        world.server.end("pods", "x")
        world.server.new_pod("y")
        world.server.new_pod("end")

    assert world.changes("pods")[3:-1] == changes


@pytest.mark.parametrize("late", ["nodes", "pods"])
async def test_kinds_need_not_be_in_step(late: str) -> None:
    """A pod is seen before its node, a node goes before its pods."""
    async with begun(Fault(watches.delayed(7), verb="watch", resource=late, times=None), streams_lists=False) as world:
        world.server.new_node("n2")
        world.server.new_pod("x", nodeName="n2")
        await asyncio.sleep(30)
        world.server.end("pods", "x")
        world.server.end("nodes", "n2")


# Servers that lag behind.


async def test_a_list_older_than_asked_for_is_not_taken() -> None:
    """A server that lags behind answers with what was some time ago."""
    lagging = Fault(answers.first_time_again(), verb="list", resource="pods", times=2)
    async with begun(lagging, streams_lists=False, relist_period=100) as world:
        world.server.label("pods", "p0", "new")
        world.server.end("pods", "p1")
        await asyncio.sleep(150)
    lists = lists_of_pods(world)

    assert world.changes("pods") == ["+p0", "+p1", "+p2", "~p0", "~p1", "-p1"]
    assert lists[1]["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in lists[2]


async def test_a_watch_that_tells_of_the_past_changes_nothing() -> None:
    """After a new connection a server that lags behind says again what was said before."""
    lines: list[bytes] = []
    first = Fault(watches.recorded(lines), verb="watch", resource="pods")
    second = Fault(watches.rewound(lines), verb="watch", resource="pods")
    async with begun(first, second, streams_lists=False) as world:
        world.server.label("pods", "p0", "new")
        world.server.end("pods", "p1")
        world.server.new_pod("x")
        world.server.end("pods", "x")
        world.server.new_pod("x")
        await asyncio.sleep(1)
        world.faults.cut(cleanly=True)
        await asyncio.sleep(1)

    assert len(lines) >= 5
    assert world.changes("pods") == ["+p0", "+p1", "+p2", "~p0", "~p1", "-p1", "+x", "~x", "-x", "+x"]
    assert len(lists_of_pods(world)) == 1


@both_ways
async def test_recreated_object_of_the_same_name_is_another_object(streams: bool) -> None:
    """Deleted and created again while nobody watched."""
    async with begun(streams_lists=streams) as world:
        world.faults.go_down()
        world.server.end("pods", "p0")
        world.server.new_pod("p0")
        world.server.compact()
        world.faults.come_up()

    assert world.changes("pods")[-2:] == ["-p0", "+p0"]


# Objects that cannot be read, and those who are told.


def _poison(event: dict[str, Any]) -> None:
    if event["object"]["metadata"].get("name") == "poison":
        event["object"]["spec"]["containers"] = "poison"


@both_ways
async def test_one_object_that_can_not_be_read_is_set_aside(streams: bool) -> None:
    """The stream goes on; the object is named, until it can be read or is gone."""
    unreadable_objects: list[dict[Any, str]] = []

    def poison_list(body: dict[str, Any]) -> None:
        for item in body["items"]:
            _poison({"object": item})

    faults = [
        Fault(watches.changed(_poison), verb="watch", resource="pods", times=None),
        Fault(answers.edited_json(poison_list), verb="list", resource="pods", times=None),
    ]
    async with a_world(*faults, streams_lists=streams, misses=True) as world:
        world.server.new_pod("poison")
        await begin(world)
        world.server.new_pod("x")
        await asyncio.sleep(1)
        unreadable_objects.append(dict(world.reflector("pods").health(now()).unreadable))
        assert world.names("pods") == [*PODS, "x"]
        world.server.end("pods", "poison")
        await asyncio.sleep(1)
        unreadable_objects.append(dict(world.reflector("pods").health(now()).unreadable))

    assert list(unreadable_objects[0]) == [("default", "poison")]
    assert "spec.containers" in unreadable_objects[0]["default", "poison"]
    assert unreadable_objects[1] == {}
    assert len(lists_of_pods(world)) == 1


@both_ways
async def test_an_object_that_can_not_be_read_any_more_is_known_as_it_was(streams: bool) -> None:
    """A pod that holds room on a node does not let go of it because its latest state cannot be read."""
    during: list[Any] = []
    async with begun(streams_lists=streams) as world:
        world.server.new_pod("poison", nodeName="n0")
        await asyncio.sleep(1)
        world.faults.add(Fault(watches.changed(_poison), verb="watch", resource="pods", times=None))
        world.faults.cut(cleanly=True)
        world.server.label("pods", "poison", "1")
        await asyncio.sleep(2)
        during.append((world.names("pods"), list(world.reflector("pods").health(now()).unreadable)))
        world.faults.faults.clear()
        world.faults.cut(cleanly=True)
        world.server.label("pods", "poison", "2")
        await asyncio.sleep(2)

        assert world.reflector("pods").health(now()).unreadable == {}

    assert during == [([*PODS, "poison"], [("default", "poison")])]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"{]\n", id="no JSON"),
        pytest.param(
            b'{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}}\n', id="another kind"
        ),
        pytest.param(
            b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"\xff"}}}\n', id="no UTF-8"
        ),
        pytest.param(b'{"type":"WHATEVER","object":{}}\n', id="no type of event"),
        pytest.param(b'{"type":"DELETED","object":{}}\n', id="a deletion without an object"),
        pytest.param(b'{"type":"BOOKMARK","object":{}}\n', id="a bookmark nowhere"),
        pytest.param(b'{"type":"ERROR","object":[]}\n', id="an error that is none"),
        pytest.param(b'{"type":"ERROR","object":{"message":[]}}\n', id="an error that says nothing"),
        pytest.param(b"[" * 100_000 + b"\n", id="nested without end"),
    ],
)
async def test_a_line_that_makes_no_sense_ends_the_watch_and_nothing_is_lost(line: bytes) -> None:
    """Nobody knows what was to be said, so it must be said again."""
    garbage = Fault(watches.line_after(0, line), verb="watch", resource="pods")
    async with begun(garbage, streams_lists=False) as world:
        world.server.new_pod("x")
        await asyncio.sleep(3)

        assert world.wrong() == []

    assert len(lists_of_pods(world)) == 1
    assert world.reflector("pods").counters.errors.total() == 1


async def test_a_line_that_makes_no_sense_again_and_again_is_got_past_by_a_list() -> None:
    garbage = Fault(watches.line_after(0, b"{]\n"), verb="watch", resource="pods", times=3)
    async with begun(garbage, streams_lists=False) as world:
        await asyncio.sleep(10)

    assert len(lists_of_pods(world)) == 2
