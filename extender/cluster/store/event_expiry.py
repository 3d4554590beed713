"""Expiry of Events: one is removed an hour after it was last written, as kube-apiserver's --event-ttl does. Of more
than `STORED_EVENTS` the oldest are removed sooner, because they are in the memory of this process.
"""

import asyncio
from collections import OrderedDict
from typing import Final, NoReturn

from extender.cluster.api_resources import EVENTS
from extender.cluster.store.object_store import CompactedError, Cursor, ObjectStore
from extender.cluster.store.stored_objects import Stored
from extender.values import limits

SECONDS_KEPT: Final = 3600.0
SECONDS_BETWEEN_LOOKS: Final = 10.0
Written = OrderedDict[tuple[str, str], tuple[float, int]]
"""(namespace, name) of each Event -> the loop's time and the version of its latest write; in the order of these."""


async def expire_events(store: ObjectStore) -> NoReturn:
    """Removes Events that have expired until it is cancelled. Those that exist already count as written now."""
    loop = asyncio.get_running_loop()
    written: Written = OrderedDict()
    changes = _list(store, written, loop.time())
    while True:
        try:
            async with asyncio.timeout_at(_oldest(written) + SECONDS_KEPT if written else None):
                await changes.wait()
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        now = loop.time()
        try:
            for change in changes.take():
                _note(written, change.new, now, exists=change.type != "DELETED")
        except CompactedError:
            changes = _list(store, written, now)
        _remove(store, written, now)


def _oldest(written: Written) -> float:
    return written[next(iter(written))][0]


def _note(written: Written, stored: Stored, now: float, *, exists: bool) -> None:
    key = stored.namespace, stored.name
    written.pop(key, None)
    if exists:
        written[key] = now, stored.resource_version


def _list(store: ObjectStore, written: Written, now: float) -> Cursor:
    """Takes note of all Events, and returns what follows their changes from here on."""
    known = written.copy()
    written.clear()
    for each in store.read(EVENTS):
        _note(written, each, now, exists=True)
    for key, (time, version) in reversed(known.items()):
        if key in written and written[key][1] == version:
            written[key] = time, version
            written.move_to_end(key, last=False)
    return store.follow([EVENTS], store.resource_version)


def _remove(store: ObjectStore, written: Written, now: float) -> None:
    removed, excess = 0, len(store.read(EVENTS)) - limits.STORED_EVENTS
    while written and (_oldest(written) + SECONDS_KEPT <= now or removed < excess):
        (namespace, name), (_, version) = written.popitem(last=False)
        found = store.get(EVENTS, namespace, name)
        if found is None or found.resource_version != version:
            continue  # it is gone, or was written again and has a later entry soon
        store.remove(EVENTS, namespace, name)
        removed += 1
