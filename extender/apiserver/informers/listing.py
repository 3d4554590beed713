"""The initial list of a resource: page by page with LIST requests, or as the initial events of a watch.

A caller sees nothing of a list before all of it has arrived.

Upstream: client-go/tools/cache/reflector.go, list, watchList; client-go/tools/pager/pager.go, List (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

import msgspec

from extender.apiserver.client import Client
from extender.apiserver.errors import Gone
from extender.apiserver.informers.reading import (
    Bookmark,
    DoubtfulAnswerError,
    ObjectReader,
    Put,
    Removed,
    UnreadableObjectError,
    key_of,
    read_event,
)
from extender.apiserver.paths import path
from extender.apiserver.transport.bodies import WatchLines
from extender.objects import decoding
from extender.objects.cluster import Key
from extender.objects.kinds import WatchedKind
from extender.objects.meta import HasMetadata

T = TypeVar("T", bound=HasMetadata)

PAGE_SIZE: Final = 500
OFF_THE_LOOP: Final = 1_000_000
"""Bytes above which a page is read in a thread."""
LIST_TIMEOUT: Final = 60.0


@final
@dataclass(slots=True)
class Listing(Generic[T]):
    """The objects of a resource at one resource version."""

    objects: dict[Key, T] = field(default_factory=dict)
    unreadable: dict[Key, str] = field(default_factory=dict)
    """Why an object is missing among the others."""
    unreadable_uids: dict[Key, str] = field(default_factory=dict)
    """Which objects these are."""
    resource_version: str = ""
    num_unknown: int = 0
    """Objects of which not even the name could be read."""
    num_pages: int = 0

    def set_aside(self, exc: UnreadableObjectError) -> None:
        """An object is there, but cannot be read."""
        if exc.meta is None:
            self.num_unknown += 1
        else:
            self.unreadable[key_of(exc.meta)] = exc.reason
            self.unreadable_uids[key_of(exc.meta)] = exc.meta.uid


@final
class Lister(Generic[T]):
    """Lists one resource."""

    def __init__(self, client: Client, kind: WatchedKind[T], reader: ObjectReader[T]) -> None:
        self._client = client
        self._kind = kind
        self._reader = reader
        self._path = path(kind.group, kind.version, kind.plural)

    async def list(self, resource_version: str, *, page_size: int | None) -> Listing[T]:
        """All objects, at least as new as asked for.

        When the first pages are too old to be continued, the list is asked for again in one piece.

        Arguments:
            resource_version: "" for the newest there is, "0" for whatever the server has at hand.
            page_size: None to ask for everything at once.

        Raises:
            ApiError: as Client.request.
            DoubtfulAnswerError: the answer is no list of this kind.
        """
        listing: Listing[T] = Listing()
        token = ""
        while True:
            try:
                token = await self._page(listing, self._params(resource_version, page_size, token))
            except Gone:
                if not token:
                    raise
                listing, token, page_size = Listing(), "", None
                continue
            if not token:
                return listing

    async def newest_version(self) -> str:
        """The resource version of the newest state there is, at the price of one object.

        Raises:
            ApiError, DoubtfulAnswerError: as `list`.
        """
        listing: Listing[T] = Listing()
        await self._page(listing, self._params("", 1, ""))
        return listing.resource_version

    async def is_as_new_as(self, resource_version: str) -> None:
        """Returns when the server says so, at the price of one object.

        Raises:
            TooLargeResourceVersion: it has not seen that version: it lags behind, or was restored from a copy.
            ApiError, DoubtfulAnswerError: as `list`.
        """
        await self._page(Listing(), self._params(resource_version, 1, ""))

    async def _page(self, into: Listing[T], params: Mapping[str, str]) -> str:
        body = await self._client.request("GET", self._path, params=params, timeout=LIST_TIMEOUT)
        if len(body) > OFF_THE_LOOP:
            return await asyncio.to_thread(self._read_page, body, into)
        return self._read_page(body, into)

    def _params(self, resource_version: str, page_size: int | None, token: str) -> Mapping[str, str]:
        params: dict[str, str] = {}
        if self._kind.field_selector:
            params["fieldSelector"] = self._kind.field_selector
        if page_size is not None:
            params["limit"] = str(page_size)
        if token:
            params["continue"] = token
        elif resource_version:
            params["resourceVersion"] = resource_version
            if resource_version != "0":
                params["resourceVersionMatch"] = "NotOlderThan"
        return params

    def _read_page(self, body: bytes, into: Listing[T]) -> str:
        """Add the objects of a page; the token for the next one, "" after the last."""
        try:
            page = decoding.decode(_Page, body)
        except decoding.DecodeError as exc:
            raise DoubtfulAnswerError(f"expected a {self._kind.name}List: {exc}") from exc
        if (page.kind, page.api_version) != (f"{self._kind.name}List", self._kind.api_version):
            found = f"{page.api_version!r:.64} {page.kind!r:.64}"
            raise DoubtfulAnswerError(f"expected a {self._kind.name}List of {self._kind.api_version}, not {found}")
        if not page.metadata.resource_version:
            raise DoubtfulAnswerError(f"the {page.kind} does not say of which resource version it is")
        for item in page.items:
            try:
                read = self._reader.read(item, kind_required=False)
            except UnreadableObjectError as exc:
                into.set_aside(exc)
            else:
                into.objects[key_of(read.metadata)] = read
        into.num_pages += 1
        into.resource_version = into.resource_version or page.metadata.resource_version
        return page.metadata.continue_


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    items: list[msgspec.Raw]
    metadata: _ListMeta
    kind: str = ""
    api_version: str = ""


STREAM_PATIENCE: Final = 15.0
"""Seconds within which another of the objects must come, or their end."""


class EndlessListError(DoubtfulAnswerError):
    """The end of the initial objects does not come: the server does not know how to say it."""


def streaming_params(resource_version: str) -> Mapping[str, str]:
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
        async with asyncio.timeout(STREAM_PATIENCE) as patience:
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
                            patience.reschedule(now + STREAM_PATIENCE)
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
