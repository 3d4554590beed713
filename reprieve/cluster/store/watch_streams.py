"""Watches: a stream of the existing objects, then of their changes, for as long as the caller listens.

A watch holds a place in the store's history, and no events. A caller that reads too slowly is overtaken by the history
and cut off; it begins again.

Upstream: apiserver/pkg/storage/cacher, cacher.go, cache_watcher.go; pkg/endpoints/handlers/watch.go.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Final, final

import orjson

from extender.rules import statuses
from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types
from reprieve.cluster import refusals
from reprieve.cluster.requests.request_options import ListOptions
from reprieve.cluster.store import list_pages, stored_objects
from reprieve.cluster.store.object_store import ChangeType, CompactedError, ObjectStore, StoredChange
from reprieve.cluster.store.selections import ObjectSelection
from reprieve.cluster.store.stored_objects import Stored, at_version

BOOKMARK_SECONDS: Final = 60.0
BEFORE_DEADLINE_SECONDS: Final = 2.0
"""The time between the last bookmark and the end of a watch."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
EVENTS_IN_CHUNK: Final = 500
"""The largest number of events that are sent together."""


@final
class Watch:
    """A watch, which begins when it is made; `encode` returns an object as the JSON that the caller wants.

    Raises ApiStatus 400 if the request cannot be read. Two others are sent within the stream: 410 if its
    resourceVersion is forgotten, 504 if it does not exist yet.
    """

    def __init__(
        self,
        store: ObjectStore,
        resource: Resource,
        namespace: str,
        selected: ObjectSelection,
        options: ListOptions,
        *,
        seconds: float,
        encode: Callable[[Stored], bytes],
        encode_bookmark: Callable[[Object], bytes],
    ) -> None:
        self._store = store
        self._resource = resource
        self._namespace = namespace
        self._selected = selected
        self._seconds = seconds
        self._encode = encode
        self._encode_bookmark = encode_bookmark
        version = list_pages.parse_resource_version(options.resource_version)
        current = store.resource_version
        wants_initial = options.send_initial_events
        if wants_initial is None and not options.resource_version_match and not version:
            # A watch without a resourceVersion begins with the objects that exist, since before sendInitialEvents.
            wants_initial = True
        if wants_initial and version > current:
            raise refusals.too_large_resource_version(version, current)
        # Includes objects that are not selected.
        self._initial = store.read(resource, namespace) if wants_initial else []
        # Events are sent for changes after this resourceVersion.
        self._begin = current if wants_initial or not version else version
        self._bookmarks = options.allow_watch_bookmarks
        self._ends_initial = self._bookmarks and bool(wants_initial)
        try:
            self._cursor = store.follow([resource], self._begin)
        except CompactedError as error:
            raise refusals.expired(f"too old resource version: {version} ({store.compacted(resource)})") from error

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yields the events; each is a line of JSON."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._seconds
        for begin in range(0, len(self._initial), EVENTS_IN_CHUNK):
            batch = self._selected.of(self._initial[begin : begin + EVENTS_IN_CHUNK])
            if lines := b"".join(_line(b"ADDED", self._encode(stored)) for stored in batch):
                yield lines
        self._initial.clear()
        if self._ends_initial:
            yield self._bookmark(self._begin, is_end=True)
        bookmark_at = _next_bookmark(clock(), deadline)
        while True:
            try:
                changes = self._cursor.take(EVENTS_IN_CHUNK)
            except CompactedError:
                return
            if lines := b"".join(self._events(changes)):
                yield lines
            if changes:
                continue
            now = clock()
            if now >= deadline:
                return
            if self._bookmarks and now >= bookmark_at:
                # A watch that begins in the future gets no bookmark before, as upstream.
                if self._store.resource_version >= self._begin:
                    yield self._bookmark(self._store.resource_version, is_end=False)
                bookmark_at = _next_bookmark(clock(), deadline)
            try:
                async with asyncio.timeout_at(min(deadline, bookmark_at) if self._bookmarks else deadline):
                    await self._cursor.wait()
            except TimeoutError:
                continue

    def _events(self, changes: Sequence[StoredChange]) -> Iterator[bytes]:
        for change in changes:
            if change.resource_version > self._begin and (event := self._event(change)) is not None:
                yield _line(event[0].encode(), self._encode(event[1]))

    def _event(self, change: StoredChange) -> tuple[ChangeType, Stored] | None:
        """Returns a change as a caller sees it who sees only the selected objects; None if the caller sees nothing."""
        if self._namespace and not change.new.key.startswith(f"{self._namespace}/"):
            return None
        if self._selected.is_everything:
            return change.type, change.new
        is_selected = change.type != "DELETED" and self._selected.matches(change.new)
        was_selected = change.old is not None and self._selected.matches(change.old)
        if is_selected:
            return ("MODIFIED" if was_selected else "ADDED"), change.new
        if not was_selected or change.old is None:
            return None
        # An object that leaves the selection is shown as it was, with the resourceVersion of the change.
        return "DELETED", change.new if change.type == "DELETED" else at_version(change.old, change.resource_version)

    def _bookmark(self, resource_version: int, *, is_end: bool) -> bytes:
        metadata: Object = {"resourceVersion": str(resource_version)}
        if is_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        empty, _ = api_types.read(self._resource, {"metadata": metadata})
        return _line(b"BOOKMARK", self._encode_bookmark(stored_objects.typed(self._resource, empty)))


def _next_bookmark(now: float, deadline: float) -> float:
    last = deadline - BEFORE_DEADLINE_SECONDS
    return min(now + BOOKMARK_SECONDS, last) if last > now else deadline + 1


def _line(event: bytes, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (event, body)


def error_event(refusal: statuses.ApiStatus) -> bytes:
    return _line(b"ERROR", orjson.dumps(refusal.as_object()))
