"""A whole list by way of a watch that begins with all objects: none of it is seen before all of it is there.

Upstream: client-go/tools/cache/reflector.go, watchList (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from extender.apiserver.informers.listing import Listing
from extender.apiserver.informers.reading import DoubtfulAnswerError, ObjectReader, UnreadableObjectError, key_of
from extender.apiserver.informers.watching import Bookmark, Put, Removed, read_event
from extender.apiserver.transport.watch_lines import WatchLines
from extender.objects.meta import HasMetadata

T = TypeVar("T", bound=HasMetadata)

PATIENCE: Final = 15.0
"""Seconds within which another of the objects must come, or their end."""


class EndlessListError(DoubtfulAnswerError):
    """The end of the initial objects does not come: the server does not know how to say it."""


def params(resource_version: str) -> Mapping[str, str]:
    """What asks for such a watch, with objects not older than that; "" for the newest there are."""
    asks = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return asks | {"resourceVersion": resource_version} if resource_version else asks


async def initial_objects(lines: WatchLines, reader: ObjectReader[T], heard: Callable[[], float]) -> Listing[T]:
    """All objects at one moment; the watch goes on from there.

    Arguments:
        heard: called with each line; the event loop's time.

    Raises:
        ApiError: the watch failed.
        EndlessListError: the server was given enough time.
        DoubtfulAnswerError: the watch ended too soon, or made no sense.
    """
    listing: Listing[T] = Listing()
    progress_at = heard()
    try:
        async with asyncio.timeout(PATIENCE) as patience:
            async for line in lines:
                now = heard()
                try:
                    event = read_event(line, reader)
                except UnreadableObjectError as exc:
                    listing.set_aside(exc)
                    continue
                match event:
                    case Put(new):
                        listing.objects[key_of(new.metadata)] = new
                        if now - progress_at > 1:
                            progress_at = now
                            patience.reschedule(now + PATIENCE)
                    case Removed(gone):
                        listing.objects.pop(key_of(gone), None)
                    case Bookmark(version, True):
                        listing.resource_version = version
                        return listing
                    case Bookmark():
                        pass
    except TimeoutError as exc:
        raise EndlessListError("the initial events do not end") from exc
    raise DoubtfulAnswerError("the watch has ended before its initial events have")
