"""The initial list of a resource: page by page with LIST requests, or as the initial events of a watch.

A caller gets a list only once it is complete.

Upstream: client-go/tools/cache/reflector.go, list, watchList; client-go/tools/pager/pager.go, List.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

import msgspec

from extender.client.client import Client
from extender.client.errors import Gone
from extender.client.informers import reading
from extender.client.paths import path
from extender.client.transport.carrier import WatchLines
from extender.values.objects import decoding
from extender.values.objects.cluster import Key
from extender.values.objects.kinds import WatchedKind
from extender.values.objects.meta import HasMetadata

T = TypeVar("T", bound=HasMetadata)

PAGE_SIZE: Final = 500
OFF_THE_LOOP: Final = 1_000_000
"""Pages of more bytes are read in a thread: a list of 50,000 pods takes seconds."""
LIST_TIMEOUT: Final = 60.0


@final
@dataclass(slots=True)
class Listing(Generic[T]):
    """The objects of a resource at one resource version."""

    objects: dict[Key, T] = field(default_factory=dict)
    unreadable: dict[Key, str] = field(default_factory=dict)
    """The objects that exist but cannot be read, with the reason."""
    unreadable_uids: dict[Key, str] = field(default_factory=dict)
    """The UIDs of these objects."""
    resource_version: str = ""
    num_unknown: int = 0
    """The number of objects of which not even the name could be read."""
    num_pages: int = 0

    def set_aside(self, exc: reading.UnreadableObjectError) -> None:
        """Adds an object that exists but cannot be read."""
        if exc.meta is None:
            self.num_unknown += 1
        else:
            self.unreadable[reading.key_of(exc.meta)] = exc.reason
            self.unreadable_uids[reading.key_of(exc.meta)] = exc.meta.uid


@final
class Lister(Generic[T]):
    """Lists one resource, in all namespaces or in one."""

    def __init__(
        self, client: Client, kind: WatchedKind[T], reader: reading.ObjectReader[T], namespace: str | None = None
    ) -> None:
        self._client = client
        self._kind = kind
        self._reader = reader
        self._path = path(kind.group, kind.version, kind.plural, namespace=namespace)

    async def list(self, resource_version: str, *, page_size: int | None) -> Listing[T]:
        """Returns all objects, at least as new as requested: "" is the newest state, "0" what the server has cached.

        Without a page size, and when the first pages are too old to be continued, it is requested in one piece. Raises
        ApiError; DoubtfulAnswerError if the answer is no list of this kind.
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
        """Returns the newest resource version, by listing a single object. Raises as `list`."""
        listing: Listing[T] = Listing()
        await self._page(listing, self._params("", 1, ""))
        return listing.resource_version

    async def check_version(self, resource_version: str) -> None:
        """Returns if the server knows that resource version, by listing a single object.

        Raises TooLargeResourceVersion if it lags behind or was restored from a backup; else as `list`.
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
        """Adds the objects of a page, and returns the token of the next one; "" after the last."""
        try:
            page = decoding.decode(_Page, body)
        except decoding.DecodeError as exc:
            raise reading.DoubtfulAnswerError(f"expected a {self._kind.name}List: {exc}") from exc
        if (page.kind, page.api_version) != (f"{self._kind.name}List", self._kind.api_version):
            page_type = f"{page.api_version!r:.64} {page.kind!r:.64}"
            raise reading.DoubtfulAnswerError(
                f"expected a {self._kind.name}List of {self._kind.api_version}, not {page_type}"
            )
        if not page.metadata.resource_version:
            raise reading.DoubtfulAnswerError(f"the {page.kind} does not say of which resource version it is")
        for item in page.items:
            try:
                read = self._reader.read(item, kind_required=False)
            except reading.UnreadableObjectError as exc:
                into.set_aside(exc)
            else:
                into.objects[reading.key_of(read.metadata)] = read
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
"""Seconds within which the next object must come, or the end of the initial events."""


class EndlessListError(reading.DoubtfulAnswerError):
    """The initial events do not end, because the server does not support streamed lists."""


def streaming_params(resource_version: str) -> Mapping[str, str]:
    """Returns the parameters of a watch that begins with all objects, at least as new as the version."""
    asks = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return asks | {"resourceVersion": resource_version} if resource_version else asks


async def initial_objects(
    lines: WatchLines, reader: reading.ObjectReader[T], on_line: Callable[[], float]
) -> Listing[T]:
    """Returns all objects at one moment, from where the watch continues; `on_line` returns the loop's time.

    Raises ApiError if the watch failed, EndlessListError if the initial events did not end in time, DoubtfulAnswerError
    if it ended too soon, or a line made no sense.
    """
    listing: Listing[T] = Listing()
    progress_at = on_line()
    try:
        async with asyncio.timeout(STREAM_PATIENCE) as patience:
            async for line in lines:
                now = on_line()
                try:
                    event = reading.read_event(line, reader)
                except reading.UnreadableObjectError as exc:
                    listing.set_aside(exc)
                    continue
                if isinstance(event, reading.Removed):
                    listing.objects.pop(reading.key_of(event.metadata), None)
                elif not isinstance(event, reading.Bookmark):
                    listing.objects[reading.key_of(event.metadata)] = event
                    # Rescheduling a timeout costs more than reading an object, so it is done once a second.
                    if now - progress_at > 1:
                        progress_at = now
                        patience.reschedule(now + STREAM_PATIENCE)
                elif event.ends_initial_events:
                    listing.resource_version = event.resource_version
                    return listing
    except TimeoutError as exc:
        raise EndlessListError("the initial events do not end") from exc
    raise reading.DoubtfulAnswerError("the watch has ended before its initial events have")
