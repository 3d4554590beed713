"""Reflectors while all is well, and what they say of themselves."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from random import Random
from typing import Any

import pytest

from extender.client.client import Client
from extender.client.informers.listing import Lister
from extender.client.informers.reading import ObjectReader
from extender.client.informers.reflector import Reflector
from extender.client.informers.store import Change
from extender.rules.api_resources import RESOURCES
from extender.values.objects import kinds
from extender.values.objects.cluster import ClusterObjects, ClusterState
from extender.values.objects.kinds import KINDS, WatchedKind
from extender.values.objects.pod import Pod
from extender.values.targets.target import Target
from tests.extender.client.reflector_world import World, a_world, begin, begun, both_ways, lists_of_pods, now, tell
from tests.extender.client.scripted import Scripted, answer, never, stream
from tests.kit.faults import Fault, answers


def pod(name: str, version: int) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"containers": [{"name": "c"}]}}


def pod_list(version: int, *items: dict[str, Any], **meta: str) -> dict[str, Any]:
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(version), **meta},
        "items": list(items),
    }


def event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}})


@asynccontextmanager
async def reflected(
    server: Scripted, on_changes: Callable[[Sequence[Change[Pod]]], None] = lambda changes: None, **options: Any
) -> AsyncIterator[Reflector[Pod]]:
    """A reflector of pods that runs against a scripted server."""
    client = Client(Target("http://server"), transport=server, rng=Random(0))
    reflector = Reflector(client, kinds.PODS, on_changes, rng=Random(0), **{"streams_lists": False} | options)
    running = asyncio.ensure_future(reflector.run())
    try:
        yield reflector
    finally:
        if running.done():
            running.result()
        running.cancel()
        await asyncio.wait([running])
        await client.aclose()


def names(changes: Sequence[Change[Pod]]) -> list[str]:
    return [obj.name for change in changes for obj in (change.new or change.old,) if obj is not None]


# What is told.


async def test_list_and_simultaneous_events_are_each_delivered_together() -> None:
    deliveries: list[list[str]] = []
    together = event("ADDED", pod("b", 11)) + event("ADDED", pod("c", 12))
    first = answer(200, pod_list(10, pod("a", 1), pod("z", 2)))
    server = Scripted(first, stream(together, 1.0, event("DELETED", pod("a", 13)), 9.0), never)
    async with reflected(server, lambda changes: deliveries.append(names(changes))) as reflector:
        await asyncio.sleep(5)
        assert reflector.has_synced
        assert sorted(name for _, name in reflector.objects) == ["b", "c", "z"]

    assert deliveries == [["a", "z"], ["b", "c"], ["a"]]


async def test_failing_listener_is_counted_and_hears_of_the_next_change() -> None:
    """No exception of theirs ends the watch."""
    delivered_names: list[str] = []

    def fails_at_first(changes: Sequence[Change[Pod]]) -> None:
        delivered_names.extend(names(changes))
        if len(delivered_names) < 3:
            raise ValueError("no")

    server = Scripted(
        answer(200, pod_list(10, pod("a", 1))),
        stream(event("ADDED", pod("b", 11)), 1.0, event("ADDED", pod("c", 12)), 9.0),
    )
    async with reflected(server, fails_at_first) as reflector:
        await asyncio.sleep(5)

    assert delivered_names == ["a", "b", "c"]
    assert reflector.counters.on_changes_failed == 2
    assert sorted(name for _, name in reflector.objects) == ["a", "b", "c"]


async def test_empty_list_syncs_the_reflector_without_changes() -> None:
    deliveries: list[list[str]] = []
    async with reflected(
        Scripted(answer(200, pod_list(10)), never), lambda changes: deliveries.append(names(changes))
    ) as reflector:
        assert not reflector.has_synced
        await reflector.wait_for_sync()

    assert deliveries == []


async def test_changes_before_a_malformed_line_are_delivered() -> None:
    deliveries: list[list[str]] = []
    server = Scripted(
        answer(200, pod_list(10)), stream(event("ADDED", pod("a", 11)) + b"{]\n" + event("ADDED", pod("b", 12))), never
    )
    async with reflected(server, lambda changes: deliveries.append(names(changes))):
        await asyncio.sleep(5)

    assert deliveries == [["a"]]
    assert server.asked[-1].url.params["resourceVersion"] == "11"


# What is asked for.


async def test_pods_that_are_finished_are_not_asked_for() -> None:
    async with begun() as world:
        world.server.finish("p0")
        await asyncio.sleep(1)
    selectors = {call.params["fieldSelector"] for call in world.faults.calls if call.resource == "pods"}

    assert selectors == {"status.phase!=Succeeded,status.phase!=Failed"}
    assert world.names("pods") == ["p1", "p2"]


async def test_a_first_list_is_of_what_is_at_hand_and_a_later_one_not_older_than_what_is_known() -> None:
    async with begun(streams_lists=False, relist_period=100) as world:
        world.server.new_pod("x")
        await asyncio.sleep(150)
    first, second = lists_of_pods(world)

    assert first == {"limit": "500", "resourceVersion": "0"}
    version = world.reflector("pods").last_resource_version
    assert second == {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}


async def test_a_server_that_cuts_even_the_first_list_into_pages_is_always_asked_for_pages() -> None:
    """It has nothing at hand, so that a whole list would cost it as much as it costs us."""
    server = Scripted(
        answer(200, pod_list(10, pod("a", 1), **{"continue": "t"})),
        answer(200, pod_list(10, pod("b", 1))),
        stream(bookmark(20), 500.0),
        answer(200, pod_list(30, pod("a", 1), **{"continue": "t"})),
        answer(200, pod_list(30, pod("c", 1))),
        never,
    )
    async with reflected(server, relist_period=30) as reflector:
        await asyncio.sleep(50)
        assert sorted(name for _, name in reflector.objects) == ["a", "c"]

    assert [request.url.params.get("limit") for request in server.asked if "watch" not in request.url.params] == [
        "500"
    ] * 4


async def test_a_watch_asks_for_bookmarks_and_lasts_five_to_ten_minutes() -> None:
    async with a_world() as world:
        await begin(world)
    queries = [call.params for call in world.faults.calls if call.verb == "watch"]

    assert all(params["allowWatchBookmarks"] == "true" for params in queries)
    assert all(300 <= int(params["timeoutSeconds"]) <= 600 for params in queries)
    assert len({params["timeoutSeconds"] for params in queries}) > 1


async def test_after_a_bookmark_the_next_watch_begins_there() -> None:
    server = Scripted(answer(200, pod_list(10)), stream(bookmark(500), 2.0), never)
    async with reflected(server):
        await asyncio.sleep(5)

    assert server.asked[-1].url.params["resourceVersion"] == "500"


async def test_after_events_out_of_order_the_next_watch_begins_after_the_newest() -> None:
    """It never begins earlier than it must."""
    server = Scripted(
        answer(200, pod_list(10)), stream(event("ADDED", pod("a", 12)) + event("ADDED", pod("b", 11)), 2.0), never
    )
    async with reflected(server):
        await asyncio.sleep(5)

    assert server.asked[-1].url.params["resourceVersion"] == "12"


async def test_a_bookmark_from_before_shows_that_the_server_is_not_what_it_was() -> None:
    """It was restored from a copy, and the connection held."""
    server = Scripted(
        answer(200, pod_list(1000, pod("a", 900))),
        stream(2.0, bookmark(50), 500.0),
        answer(200, pod_list(50, pod("a", 40))),
        never,
    )
    async with reflected(server) as reflector:
        await asyncio.sleep(5)
        assert reflector.objects["default", "a"].metadata.resource_version == "40"

    assert "resourceVersion" not in server.asked[2].url.params
    assert reflector.counters.went_back == 1


async def test_watches_that_end_at_once_are_backed_off_from_and_replaced_by_a_list() -> None:
    """A proxy that closes every watch: what changes is seen all the same, in lists."""
    server = Scripted(
        answer(200, pod_list(10)), stream(), stream(), stream(), answer(200, pod_list(20, pod("a", 11))), never
    )
    async with reflected(server) as reflector:
        await asyncio.sleep(30)
        assert ("default", "a") in reflector.objects
    waits = [later - earlier for earlier, later in zip(server.times[1:4], server.times[2:5], strict=True)]

    assert 0.8 <= waits[0] <= 1.6
    assert 1.6 <= waits[1] <= 3.2
    assert 3.2 <= waits[2] <= 6.4


# Large lists.


@pytest.mark.parametrize(
    ("count", "is_beside"), [pytest.param(10, False, id="small"), pytest.param(10_000, True, id="large")]
)
async def test_a_large_page_is_read_beside_the_loop(count: int, is_beside: bool) -> None:
    """So that leases and health go on meanwhile."""
    threads: set[int] = set()

    def is_whole(read: object) -> bool:
        threads.add(threading.get_ident())
        return False

    server = Scripted(answer(200, pod_list(20_000, *(pod(f"p{number}", number + 1) for number in range(count)))))
    client = Client(Target("http://server"), transport=server)
    listing = await Lister(client, kinds.PODS, ObjectReader(kinds.PODS, is_whole)).list("0", page_size=500)
    await client.aclose()

    assert len(listing.objects) == count
    assert (threads != {threading.get_ident()}) == is_beside


# Kinds.


def test_the_kinds_are_those_that_a_cluster_consists_of() -> None:
    assert {kind.field for kind in KINDS} == {field.name for field in fields(ClusterState)}
    assert {kind.field for kind in KINDS} - {"nodes", "pods"} == {field.name for field in fields(ClusterObjects)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
def test_the_kinds_are_found_where_the_server_serves_them(kind: WatchedKind[Any]) -> None:
    served = {(resource.kind, resource.api_version, resource.qualified) for resource in RESOURCES}

    assert any((kind.name, version, kind.resource) in served for version in (kind.api_version, kind.other_api_version))


# All kinds together.


@both_ways
async def test_a_kind_that_the_server_does_not_know_counts_as_empty_and_is_asked_for_now_and_then(
    streams: bool,
) -> None:
    """An old server has no resource.k8s.io/v1; after its upgrade it has."""
    world = World(seed=1, target=Target("http://server"), streams_lists=streams)
    claims = world.informers.add(kinds.RESOURCE_CLAIMS, lambda changes: None)
    unknown = Fault(
        answers.answer("404 page not found", 404, content_type="text/plain"), resource="resourceclaims", times=None
    )
    world.faults.add(unknown)
    running = asyncio.ensure_future(world.informers.run())
    await world.informers.wait_for_sync()
    health = claims.health(now())
    synced_at, struck = now(), unknown.struck
    await asyncio.sleep(600)
    struck_later = unknown.struck
    world.faults.faults.clear()
    await asyncio.sleep(121)
    running.cancel()
    await asyncio.wait([running])
    await world.client.aclose()

    assert synced_at < 2
    assert (health.resource, health.synced, health.is_served) == ("resourceclaims.resource.k8s.io", True, False)
    assert struck_later - struck <= 20
    assert claims.health(now()).is_served


async def test_unknown_kind_is_believed_at_the_second_answer() -> None:
    """Perhaps a proxy said so."""
    world = World(seed=1, target=Target("http://server"))
    claims = world.informers.add(kinds.RESOURCE_CLAIMS, lambda changes: None)
    world.faults.add(
        Fault(answers.answer("404 page not found", 404), resource="resourceclaims", times=2)
    )  # a watch, then a list
    running = asyncio.ensure_future(world.informers.run())
    await world.informers.wait_for_sync()
    running.cancel()
    await asyncio.wait([running])
    await world.client.aclose()

    assert claims.health(now()).is_served


async def test_a_server_that_does_not_know_pods_is_no_kubernetes() -> None:
    server = Scripted(answer(404, b"404 page not found"))
    async with reflected(server) as reflector:
        await asyncio.sleep(600)
        assert not reflector.has_synced
        assert reflector.health(now()).last_error.startswith("NotServed: ")


async def test_errors_are_one_line_whatever_the_server_says() -> None:
    """What goes to logs begins no line of its own."""
    status = answers.status_object(403, "no\nFAKE log line")
    server = Scripted(answer(403, status))
    async with reflected(server) as reflector:
        await asyncio.sleep(1)
        assert reflector.health(now()).last_error == "Forbidden: no FAKE log line"


def test_a_watch_that_never_ends_its_line_is_ended() -> None:
    """A gzip bomb where a watch should be."""
    bomb = Fault(answers.gzip_bomb(1 << 28), verb="watch", resource="pods")
    world = tell(begin, bomb, streams_lists=False)

    assert world.reflector("pods").counters.errors["NotKubernetes"] == 1
