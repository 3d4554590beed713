"""The server refuses, or something else answers for it: nothing that is no list passes for one.

With controls at the end; see `test_reflector_faults.py`.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from extender.values.targets.target import Target, TokenFile
from tests.extender.client.reflector_world import (
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
from tests.kit.faults import Action, Call, Fault, answers, watches

# Who we are.


@both_ways
async def test_one_resource_that_is_forbidden_is_named_and_the_others_go_on(streams: bool) -> None:
    """RBAC is taken away while we run, and given back."""
    errors: dict[str, str] = {}
    async with begun(streams_lists=streams) as world:
        world.faults.add(Fault(answers.status(403, "pods is forbidden"), resource="pods", times=None))
        world.faults.cut()
        await asyncio.sleep(300)
        world.server.new_node("n2")
        world.server.new_pod("x")
        await asyncio.sleep(5)
        assert world.names("nodes") == ["n0", "n1", "n2"]
        errors.update({health.resource: health.last_error for health in world.informers.health(now())})
        world.faults.faults.clear()
        await asyncio.sleep(61)

        assert world.wrong() == []

    assert errors == {"nodes": "", "pods": "Forbidden: pods is forbidden", "persistentvolumeclaims": ""}
    assert world.informers.has_synced


@both_ways
@pytest.mark.parametrize("late", [None, "pods"], ids=["all", "pods alone"])
@pytest.mark.parametrize("status", [401, 403])
async def test_roles_that_come_late_are_noticed_within_ten_seconds(
    streams: bool, late: str | None, status: int
) -> None:
    """A new installation may start before its ServiceAccount has its roles. The server is not asked more for it."""
    for seed in range(3):
        refused = Fault(answers.status(status, "not yet"), resource=late, times=None)
        async with a_world(refused, streams_lists=streams, seed=seed) as world:
            world.server.new_node("n0")
            await asyncio.sleep(600)
            assert not world.informers.has_synced
            num_calls = sum(call.resource == "pods" for call in world.faults.calls)
            world.faults.faults.clear()
            await asyncio.sleep(10)

            assert world.informers.is_ready()
            assert num_calls <= 2 * 600 / 4


async def test_reflectors_that_may_list_and_not_watch_do_not_wake_each_other_for_ever() -> None:
    refused = Fault(answers.status(403, "not yet"), times=None)
    async with a_world(refused, streams_lists=False, misses=True) as world:
        world.server.new_node("n0")
        await asyncio.sleep(60)
        world.faults.faults[:] = [Fault(answers.status(403, "no watch"), verb="watch", times=None)]
        before = len(world.faults.calls)
        await asyncio.sleep(600)
        num_calls = len(world.faults.calls) - before
        world.faults.faults.clear()

    assert num_calls <= 3 * 2 * (600 / 30 + 5)


async def test_a_token_that_was_replaced_on_disk_is_read_again(tmp_path: Path) -> None:
    """The old token is refused. One more try with the new one; nothing is listed again."""
    file = tmp_path / "token"
    file.write_text("first")
    valid = ["first"]
    refused = Fault(
        answers.status(401, "Unauthorized"),
        times=None,
        where=lambda call: call.request.headers["Authorization"] != f"Bearer {valid[0]}",
    )
    async with begun(refused, target=Target("http://server", credentials=TokenFile(file))) as world:
        file.write_text("second")
        valid[0] = "second"
        world.faults.cut()
        world.server.new_pod("x")
        await asyncio.sleep(3)

        assert world.wrong() == []

    assert len(lists_of_pods(world)) == 1
    assert refused.struck <= 3


# Streamed lists.


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(answers.status(400, "sendInitialEvents is not known"), id="400"),
        pytest.param(answers.status(405), id="405"),
        pytest.param(answers.status(422, "sendInitialEvents: Forbidden"), id="422"),
    ],
)
async def test_a_server_that_does_not_stream_lists_is_asked_once(refusal: Action) -> None:
    """From then on lists are ordinary ones."""
    refuses = Fault(refusal, verb="watch", times=None, where=lambda call: not is_plain(call))
    async with begun(refuses, relist_period=100) as world:
        await asyncio.sleep(500)

    assert refuses.struck == 3
    assert len(times(world, "list")) >= 4


async def test_a_streamed_list_that_failed_once_is_asked_for_again_later() -> None:
    fails = Fault(answers.status(500), verb="watch", resource="pods", where=lambda call: not is_plain(call))
    async with begun(fails, relist_period=100) as world:
        await asyncio.sleep(500)

    assert fails.struck == 1
    assert len(times(world, "list")) == 1


async def test_a_streamed_list_without_an_end_is_given_up_and_never_seen() -> None:
    """The server does not know the bookmark that ends it."""
    endless = watches.skipping(lambda event: event["type"] == "BOOKMARK")
    async with begun(
        Fault(endless, verb="watch", resource="pods", times=None, where=lambda call: not is_plain(call))
    ) as world:
        await asyncio.sleep(60)

    assert [size for table, size in world.sizes if table == "pods"] == [3]
    assert len(times(world, "list")) == 1
    assert 15 <= times(world, "list")[0] < 17


@pytest.mark.parametrize("cut", [watches.close_after, watches.reset_after])
def test_a_streamed_list_that_is_cut_before_its_end_is_never_seen(cut: Callable[[int], Action]) -> None:
    """There were two of three pods."""
    world = tell(begin, Fault(cut(2), verb="watch", resource="pods"))

    assert [size for table, size in world.sizes if table == "pods"] == [3]
    assert len(times(world, "list")) == 1


# Answers that are none.

NO_LISTS = [
    pytest.param(answers.login_page(), id="a login page"),
    pytest.param(answers.answer('{"kind":"Status","apiVersion":"v1","status":"Success"}'), id="a Status"),
    pytest.param(
        answers.answer('{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}'),
        id="another kind",
    ),
    pytest.param(
        answers.answer('{"kind":"PodList","apiVersion":"v2","metadata":{"resourceVersion":"9"},"items":[]}'),
        id="another API",
    ),
    pytest.param(
        answers.answer('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"}}'), id="no items"
    ),
    pytest.param(
        answers.answer('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}'), id="no resource version"
    ),
    pytest.param(answers.answer("{}"), id="nothing"),
    pytest.param(answers.answer("[]"), id="an array"),
    pytest.param(answers.answer(""), id="no body"),
    pytest.param(answers.answer("no gzip", headers={"Content-Encoding": "gzip"}), id="what cannot be decompressed"),
    pytest.param(answers.truncate(500), id="half a list"),
    pytest.param(answers.status(404, "404 page not found"), id="404"),
]


@both_ways
@pytest.mark.parametrize("nothing", NO_LISTS)
async def test_answer_that_is_no_list_does_not_empty_the_cluster(nothing: Action, streams: bool) -> None:
    """A proxy answers for the server, with status 200 and nonsense."""
    async with begun(streams_lists=streams, relist_period=20) as world:
        world.faults.add(Fault(nothing, resource="pods", times=6))
        world.faults.cut()
        await asyncio.sleep(150)

    assert world.changes("pods") == ["+p0", "+p1", "+p2"]


def _crowd(world: World) -> None:
    for number in range(20):
        world.server.new_node(f"m{number:02}")


@pytest.mark.parametrize("which", [[1], [1, 3]], ids=["once", "again later"])
async def test_that_all_nodes_are_gone_at_once_is_asked_twice(which: list[int]) -> None:
    """Lists are empty, by a fault of a proxy."""
    lists = count()
    empty = Fault(
        answers.edited_json(lambda body: body.update(items=[])),
        verb="list",
        resource="nodes",
        times=len(which),
        where=lambda call: next(lists) in which,
    )
    async with a_world(empty, streams_lists=False, relist_period=100) as world:
        _crowd(world)
        await begin(world)
        await asyncio.sleep(400)

    assert not any(change.startswith("-") for change in world.changes("nodes"))


@both_ways
async def test_that_all_nodes_are_gone_is_believed_the_second_time(streams: bool) -> None:
    async with a_world(streams_lists=streams) as world:
        _crowd(world)
        await begin(world)
        world.faults.go_down()
        for name in world.server.names_in("nodes"):
            world.server.end("nodes", name)
        world.server.compact()
        world.faults.come_up()

    assert world.names("nodes") == []


# Controls: with these the checks above must fail, or they check nothing.


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param(watches.skipping(watches.event_of("x", "ADDED")), id="an event is missed, and nothing heals it"),
        pytest.param(
            watches.changed(lambda event: event.update(type="BOOKMARK")), id="all events are said to be bookmarks"
        ),
    ],
)
def test_a_reflector_that_is_lied_to_is_found_out(lie: Action) -> None:
    """What `tell` checks at the end is not always true."""

    async def story(world: World) -> None:
        await begin(world)
        world.server.new_pod("x")

    with pytest.raises(AssertionError, match="the reflector of pods knows"):
        tell(story, Fault(lie, verb="watch", resource="pods"), streams_lists=False)


def test_half_a_list_with_a_false_end_would_be_detected() -> None:
    meta = b'{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}'
    end = b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":' + meta + b"}}\n"
    world = tell(begin, Fault(watches.line_after(1, end), verb="watch", resource="pods"))

    assert next(size for table, size in world.sizes if table == "pods") == 1


def test_a_reflector_that_is_never_told_of_the_end_of_history_is_found_out() -> None:
    """As if 410 were ignored. The server's own is kept from it, and the watch stays open."""

    async def ignored(call: Call, forward: Any) -> Any:
        return await answers.black_hole()(call, forward)

    async def story(world: World) -> None:
        await begin(world)
        world.faults.go_down()
        world.server.end("pods", "p0")
        world.server.compact()
        world.faults.add(Fault(ignored, verb="watch", resource="pods", times=None))
        world.faults.come_up()

    with pytest.raises(AssertionError, match="the reflector of pods knows"):
        tell(story, streams_lists=False, seconds=60)
