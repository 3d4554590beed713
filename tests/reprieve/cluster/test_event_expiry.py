"""Events go by themselves: an hour after they were last written, and the oldest of very many sooner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.rules.api_resources import EVENTS, NAMESPACES
from reprieve.cluster import limits
from reprieve.cluster.in_memory import SECONDS_BETWEEN_LOOKS, SECONDS_KEPT, expire_events
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.counting import num_held


def write(store: ObjectStore, name: str, note: str = "") -> None:
    store.put(EVENTS, "default", name, {"metadata": {"namespace": "default", "name": name}, "message": note})


def names(store: ObjectStore) -> list[str]:
    return [event.name for event in store.read(EVENTS)]


@asynccontextmanager
async def expiring(store: ObjectStore | None = None) -> AsyncIterator[ObjectStore]:
    """A store whose events expire."""
    expiring_store = store or ObjectStore()
    expiry = asyncio.ensure_future(expire_events(expiring_store))
    await asyncio.sleep(0)
    yield expiring_store
    expiry.cancel()
    await asyncio.wait([expiry])


async def test_an_event_goes_an_hour_after_it_was_last_written() -> None:
    async with expiring() as store:
        write(store, "once")
        write(store, "again")
        await asyncio.sleep(SECONDS_KEPT / 2)
        write(store, "again", "seen twice")
        await asyncio.sleep(SECONDS_KEPT / 2 + 2 * SECONDS_BETWEEN_LOOKS)
        assert names(store) == ["again"]
        await asyncio.sleep(SECONDS_KEPT / 2)
        assert names(store) == []


async def test_expired_event_is_deleted_for_watchers() -> None:
    async with expiring() as store:
        write(store, "once")
        changes = store.follow([EVENTS], store.resource_version)
        await asyncio.sleep(SECONDS_KEPT + 2 * SECONDS_BETWEEN_LOOKS)
        assert [(change.type, change.new.name) for change in changes.take()] == [("DELETED", "once")]


async def test_an_event_that_was_there_before_goes_an_hour_later() -> None:
    store = ObjectStore()
    write(store, "old")

    async with expiring(store) as store:
        await asyncio.sleep(SECONDS_KEPT - 1)
        assert names(store) == ["old"]
        await asyncio.sleep(2)
        assert names(store) == []


async def test_an_event_that_was_deleted_and_made_again_is_another_one() -> None:
    async with expiring() as store:
        write(store, "e")
        await asyncio.sleep(SECONDS_KEPT / 2)
        store.remove(EVENTS, "default", "e")
        write(store, "e")
        await asyncio.sleep(SECONDS_KEPT / 2 + 2 * SECONDS_BETWEEN_LOOKS)
        assert names(store) == ["e"]


async def test_the_oldest_of_very_many_go_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORED_EVENTS", 100)

    async with expiring() as store:
        for number in range(300):
            write(store, f"e{number:03}")
        await asyncio.sleep(2 * SECONDS_BETWEEN_LOOKS)
        assert names(store) == [f"e{number:03}" for number in range(200, 300)]


async def test_all_events_expire_when_changes_outrun_the_history() -> None:
    async with expiring(ObjectStore(history=8)) as store:
        for number in range(50):
            write(store, f"e{number}")
        await asyncio.sleep(SECONDS_KEPT + 2 * SECONDS_BETWEEN_LOOKS)
        assert names(store) == []


async def test_an_event_that_is_written_again_and_again_is_noted_once() -> None:
    async with expiring(ObjectStore(history=100)) as store:
        object_counts = []
        for _ in range(2):
            for number in range(1000):
                write(store, "e", str(number))
                if number % 50 == 0:
                    await asyncio.sleep(2 * SECONDS_BETWEEN_LOOKS)
            object_counts.append(num_held(store, *asyncio.all_tasks()))
        assert object_counts[1] - object_counts[0] < 20


async def test_other_objects_do_not_expire() -> None:
    async with expiring() as store:
        store.put(NAMESPACES, "", "default", {"metadata": {"name": "default"}})
        await asyncio.sleep(2 * SECONDS_KEPT)
        assert len(store.read(NAMESPACES)) == 1
