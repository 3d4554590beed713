"""The store: objects, one counter, a history of bounded length."""

import asyncio

import pytest

from extender.rules.api_resources import EVENTS, NEW_EVENTS, NODES, PODS
from reprieve.cluster.store.object_store import CompactedError, ObjectStore
from tests.kit.counting import num_held


def node(name: str, **metadata: object) -> dict[str, object]:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, **metadata}}


def fill(store: ObjectStore, count: int) -> None:
    for number in range(count):
        store.put(NODES, "", f"n{number:03}", node(f"n{number:03}"))


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore()


def test_every_write_increments_the_resource_version() -> None:
    store = ObjectStore(resource_version=7)

    first = store.put(NODES, "", "n", node("n"))
    second = store.put(PODS, "default", "p", {"metadata": {"name": "p"}})
    last = store.remove(NODES, "", "n")

    assert [item.resource_version for item in (first, second, last, store)] == [8, 9, 10, 10]
    assert last.decoded()["metadata"] == {"name": "n", "resourceVersion": "10"}


def test_the_last_state_of_an_object_is_as_it_was_but_for_its_version(store: ObjectStore) -> None:
    confusing = {
        "resourceVersion": "2",
        "labels": {"resourceVersion": "2"},
        "annotations": {"metadata": '{"resourceVersion":"2"}'},
    }
    stored = store.put(PODS, "default", "p", {"spec": {"resourceVersion": "2"}, "metadata": {"name": "p", **confusing}})

    last = store.remove(PODS, "default", "p")

    before, after = (b'"metadata":{"name":"p","resourceVersion":"%d"' % version for version in (2, 3))
    assert before in stored.body
    assert last.body == stored.body.replace(before, after)


def test_objects_are_kept_without_their_kind_and_in_no_more_bytes_than_they_need() -> None:
    stored = ObjectStore().put(NODES, "", "n", node("n"))

    assert stored.body == b'{"metadata":{"name":"n","resourceVersion":"2"}}'
    assert stored.body.__sizeof__() < len(stored.body) + 64


def test_events_of_both_groups_are_one_kind(store: ObjectStore) -> None:
    store.put(EVENTS, "default", "e", {"metadata": {"name": "e"}})

    assert store.get(NEW_EVENTS, "default", "e") is not None


def test_the_history_is_bounded() -> None:
    store = ObjectStore(history=100)
    fill(store, 1000)

    with pytest.raises(CompactedError):
        store.follow([NODES], 10)
    with pytest.raises(CompactedError):
        store.scan(NODES, version=10)
    assert store.compacted(NODES) >= 1000 - 125
    assert store.follow([PODS], 10).take() == [], "other kinds remember as long"


def test_objects_that_come_and_go_unlisted_leave_nothing_behind() -> None:
    store = ObjectStore(history=8)

    def come_and_go(times: int) -> int:
        for number in range(times):
            store.put(NODES, "", name := f"node-{number}", node(name))
            store.remove(NODES, "", name)
        return num_held(store)

    assert abs(come_and_go(1000) - come_and_go(1000)) < 100  # of which the history is remembered varies a little


def test_the_history_of_large_objects_is_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is lowered here to 10 kB, which is ten changes; fifteen were too many."""
    monkeypatch.setattr("reprieve.cluster.store.object_store.HISTORY_BYTES", 10_000)
    store = ObjectStore(history=100)
    for _ in range(50):
        store.put(NODES, "", "n", node("n", annotations={"large": "x" * 900}))

    newest = store.resource_version
    store.follow([NODES], newest - 9)
    with pytest.raises(CompactedError):
        store.follow([NODES], newest - 15)


def test_a_cursor_over_several_kinds_is_in_order(store: ObjectStore) -> None:
    cursor = store.follow([NODES, PODS], store.resource_version)
    store.put(PODS, "default", "p", {"metadata": {"name": "p"}})
    store.put(NODES, "", "n", node("n"))
    store.put(PODS, "default", "q", {"metadata": {"name": "q"}})

    assert [change.new.name for change in cursor.take()] == ["p", "n", "q"]
    assert cursor.take() == []


async def test_a_cursor_wakes_with_the_first_change_and_not_before(store: ObjectStore) -> None:
    cursor = store.follow([NODES], store.resource_version)
    loop = asyncio.get_running_loop()
    loop.call_later(1, lambda: store.put(PODS, "default", "p", {"metadata": {"name": "p"}}))
    loop.call_later(2, fill, store, 3)
    await cursor.wait()

    assert (loop.time(), len(cursor.take())) == (2, 3)


def test_overtaken_cursor_raises_compacted_error() -> None:
    store = ObjectStore(history=10)
    cursor = store.follow([NODES], store.resource_version)
    fill(store, 100)

    with pytest.raises(CompactedError):
        cursor.take()


def test_earlier_version_can_be_read(store: ObjectStore) -> None:
    fill(store, 3)
    then = store.resource_version
    store.remove(NODES, "", "n001")
    store.put(NODES, "", "n000", node("n000", labels={"a": "b"}))
    store.put(NODES, "", "n003", node("n003"))
    store.remove(NODES, "", "n003")
    store.put(NODES, "", "n0005", node("n0005"))

    count, before = store.scan(NODES, version=then)

    assert [(obj.name, obj.labels) for obj in before] == [("n000", {}), ("n001", {}), ("n002", {})]
    assert count == 3
    assert [obj.name for obj in store.read(NODES)] == ["n000", "n0005", "n002"]
    assert [obj.name for obj in store.scan(NODES, version=then, start="n001")[1]] == ["n001", "n002"]
