"""Reflector: keeps one resource like the server's.

Upstream: client-go/tools/cache/reflector.go (v1.36.2). Ours trusts the server a little less: it hangs up on silence, lists again from
time to time, asks twice before it believes that everything is gone, and never shows half a list.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from random import Random
from typing import Final, Generic, NoReturn, TypeVar, final

from extender.apiserver.backoff import Backoff
from extender.apiserver.client import Client
from extender.apiserver.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    NoAnswer,
    NotFound,
    NotKubernetes,
    NotServed,
    TooLargeResourceVersion,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from extender.apiserver.health import Counters, Health
from extender.apiserver.kinds import Kind
from extender.apiserver.listing import PAGE_SIZE, Lister, Listing
from extender.apiserver.paths import path
from extender.apiserver.reading import DoubtfulAnswerError, ObjectReader, UnreadableObjectError, key_of
from extender.apiserver.resource_versions import is_older
from extender.apiserver.store import Change, HasMetadata, Store
from extender.apiserver.watch_lines import WatchLines
from extender.apiserver.watching import Bookmark, Put, Removed, read_event
from extender.objects.cluster import Key
from extender.objects.meta import ObjectMeta

T = TypeVar("T", bound=HasMetadata)

SILENCE: Final = 80.0
"""Seconds without a byte, after which a watch counts as dead: a bookmark is due every minute."""
INITIAL_SILENCE: Final = 15.0
"""Seconds within which another of the initial objects of a streamed list must come, or their end."""
WATCH_SECONDS: Final = (300, 600)
"""How long a watch is asked to last; chance spreads the load."""
SHORT_WATCH: Final = 1.0
MAX_FRUITLESS: Final = 3
"""Watches in a row that brought nothing new, after which a list is the better question."""
RELIST_PERIOD: Final = 1800.0
UNKNOWN_RESOURCE_RETRY: Final = 60.0
ENOUGH_TO_DOUBT: Final = 10
"""If more objects than this are gone at once, all of them, the server is asked again."""

_log = logging.getLogger(__name__)


class _Next(Enum):
    LIST = auto()
    WATCH = auto()


@final
class Reflector(Generic[T]):
    """One resource: list, then watch, for ever.

    Its state, in full: the objects, the resource version up to which they are known, and what must be done next to know more.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        on_changes: Callable[[Sequence[Change[T]]], None],
        *,
        rng: Random,
        streams_lists: bool = True,
        relist_period: float = RELIST_PERIOD,
    ) -> None:
        """Nothing happens before `run`.

        Arguments:
            on_changes: told of all changes of a list at once, or of those that arrived together. What it raises is logged and counted; the
                changes are not told again.
            streams_lists: let the server send its lists as a watch, if it can: no list is ever in memory as a whole.
            relist_period: seconds after which a new list heals what the watch may have missed.
        """
        self.kind = kind
        self.counters = Counters()
        self.last_resource_version = ""
        self._client = client
        self._on_changes = on_changes
        self._rng = rng
        self._relist_period = relist_period
        self._backoff = Backoff(rng)
        self._reader = ObjectReader(kind)
        self._lister = Lister(client, kind, self._reader)
        self._store: Store[T] = Store()
        self._unreadable: dict[Key, str] = {}
        self._synced = asyncio.Event()
        self._last_byte: float | None = None
        self._last_error = ""
        # What to do next.
        self._next = _Next.LIST
        self._relist_at = 0.0
        self._from_newest = False
        self._can_stream = streams_lists
        self._must_page = False
        # What the server has said once and is asked again.
        self._seems_empty = False
        self._seems_unknown = False
        self._is_served = True
        self._fruitless = 0

    @property
    def has_synced(self) -> bool:
        """True once the first list was told."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Returns when `has_synced`."""
        await self._synced.wait()

    @property
    def objects(self) -> Mapping[Key, T]:
        """As of now; another mapping after each list."""
        return self._store.objects

    def health(self, now: float) -> Health:
        """How it is doing.

        Arguments:
            now: the event loop's time.
        """
        silent_for = None if self._last_byte is None else now - self._last_byte
        return Health(self.kind.resource, self.has_synced, self._is_served, silent_for, self._last_error, dict(self._unreadable))

    async def run(self) -> NoReturn:
        """Lists and watches until it is cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except (ApiError, DoubtfulAnswerError) as exc:
                await asyncio.sleep(self._failed(exc))

    async def _list_and_watch(self) -> None:
        if self._next is _Next.LIST:
            self.counters.lists += 1
            if await self._watch_list():
                return
            await self._list()
        began = _now()
        async with self._watch({"resourceVersion": self.last_resource_version}) as lines:
            await self._follow(lines, began)

    # Lists.

    async def _list(self) -> None:
        version = self._version_to_list()
        page_size = PAGE_SIZE if version in ("", "0") or self._must_page else None
        try:
            listing = await self._lister.list(version, page_size=page_size)
        except (NotFound, NotServed):
            self._not_served()
            raise
        self._must_page = self._must_page or (version == "0" and listing.num_pages > 1)
        self._replace(listing)

    def _version_to_list(self) -> str:
        """The newest that was seen, so as not to fall behind it; whatever is at hand at first; "" when neither will do."""
        return "" if self._from_newest else self.last_resource_version or "0"

    async def _watch_list(self) -> bool:
        """Let a watch begin with all objects, and go on with it until it ends; False if there must be an ordinary list instead.

        Upstream: reflector.go, watchList.
        """
        if not self._can_stream:
            return False
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        version = "" if self._from_newest else self.last_resource_version
        if version:
            initial["resourceVersion"] = version
        began = _now()
        try:
            async with self._watch(initial) as lines:
                self._replace(await self._initial_objects(lines))
                await self._follow(lines, began)
        except (ApiError, DoubtfulAnswerError) as exc:
            is_synced = self._next is _Next.WATCH
            if is_synced or isinstance(exc, TooManyRequests | Unreachable | Unauthorized | Forbidden | Gone | TooLargeResourceVersion):
                raise
            # As upstream: making progress is better than insisting.
            self._can_stream = not isinstance(exc, BadRequest | Invalid) and not (isinstance(exc, NoAnswer) and exc.timed_out)
            _log.info("%s: lists are not streamed, so an ordinary one is asked for: %s", self.kind.resource, _one_line(exc))
            return False
        return True

    async def _initial_objects(self, lines: WatchLines) -> Listing[T]:
        listing: Listing[T] = Listing()
        seen_at = _now()
        try:
            async with asyncio.timeout(INITIAL_SILENCE) as patience:
                async for line in lines:
                    now = self._heard()
                    try:
                        event = read_event(line, self._reader)
                    except UnreadableObjectError as exc:
                        listing.set_aside(exc)
                        continue
                    match event:
                        case Put(new):
                            listing.objects[key_of(new.metadata)] = new
                            if now - seen_at > 1:
                                seen_at = now
                                patience.reschedule(now + INITIAL_SILENCE)
                        case Removed(gone):
                            listing.objects.pop(key_of(gone), None)
                        case Bookmark(version, True):
                            listing.resource_version = version
                            return listing
                        case Bookmark():
                            pass
        except TimeoutError as exc:
            raise NoAnswer("the initial events do not end", timed_out=True) from exc
        raise DoubtfulAnswerError("the watch has ended before its initial events have")

    def _replace(self, listing: Listing[T]) -> None:
        """All that is in the list is there, and nothing else; unless there is reason to ask again.

        Raises:
            DoubtfulAnswerError: there is.
        """
        last = self.last_resource_version
        if is_older(listing.resource_version, last):
            if not self._from_newest:
                self._from_newest = True
                raise DoubtfulAnswerError(f"a list not older than {last} was asked for, and one of {listing.resource_version} came")
            self.counters.went_back += 1
            _log.warning("%s: the resource version went backwards, from %s to %s", self.kind.resource, last, listing.resource_version)
        is_empty = not (listing.objects or listing.unreadable or listing.num_unknown)
        if is_empty and len(self.objects) > ENOUGH_TO_DOUBT and not self._seems_empty:
            self._seems_empty = self._from_newest = True
            raise DoubtfulAnswerError(f"all {len(self.objects)} {self.kind.plural} are gone at once, so the server is asked again")
        self.counters.unreadable += len(listing.unreadable) + listing.num_unknown
        self._unreadable = listing.unreadable
        self.last_resource_version = listing.resource_version
        self._next, self._relist_at = _Next.WATCH, _now() + self._relist_period * self._rng.uniform(0.9, 1.1)
        self._from_newest = self._seems_empty = self._seems_unknown = False
        self._is_served = True
        self._last_error = ""
        self._tell(self._store.replace(listing.objects, listing.unreadable))
        self._synced.set()

    def _not_served(self) -> None:
        """The server says that it does not know the resource. Said twice, it is believed, and the resource is as good as empty."""
        if not self.kind.may_be_unknown:
            return
        if self._seems_unknown and self._is_served:
            self._is_served = False
            self.last_resource_version = ""
            self._tell(self._store.replace({}))
            self._synced.set()
        self._seems_unknown = True

    # Watches.

    def _watch(self, begins: Mapping[str, str]) -> AbstractAsyncContextManager[WatchLines]:
        params = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(self._rng.randint(*WATCH_SECONDS)), **begins}
        if self.kind.field_selector:
            params["fieldSelector"] = self.kind.field_selector
        self.counters.watches += 1
        return self._client.watch(path(self.kind.group, self.kind.version, self.kind.plural), params=params, silence=SILENCE)

    async def _follow(self, lines: WatchLines, began: float) -> None:
        """Apply what the watch says until it ends, or until it is time for a list."""
        first = self.last_resource_version
        try:
            async with asyncio.timeout_at(self._relist_at):
                async for line in lines:
                    self._heard()
                    self._take((line, *lines.arrived()))
        except TimeoutError:
            self._next = _Next.LIST
            return
        if _now() - began < SHORT_WATCH and self.last_resource_version == first:
            raise DoubtfulAnswerError("very short watch: Unexpected watch close - watch lasted less than a second and brought nothing new")

    def _take(self, lines: Sequence[bytes]) -> None:
        changes: list[Change[T]] = []
        try:
            for line in lines:
                self.counters.events += 1
                changes += self._apply(line)
        finally:
            self._tell(changes)

    def _apply(self, line: bytes) -> Sequence[Change[T]]:
        try:
            event = read_event(line, self._reader)
        except UnreadableObjectError as exc:
            self.counters.unreadable += 1
            if exc.meta is None:
                raise DoubtfulAnswerError(exc.reason) from exc
            _log.warning("%s: an object cannot be read: %s", self.kind.resource, _one_line(exc))
            self._unreadable[key_of(exc.meta)] = exc.reason
            self._known_up_to(exc.meta.resource_version)
            return ()
        match event:
            case Put(new):
                return self._news(new.metadata, self._store.put(new))
            case Removed(gone):
                return self._news(gone, self._store.remove(gone))
            case Bookmark(version, _) if is_older(version, self.last_resource_version):
                self._next, self._from_newest = _Next.LIST, True
                raise DoubtfulAnswerError(f"the server is at {version} and was at {self.last_resource_version} before")
            case Bookmark(version, _):
                self._known_up_to(version)
        return ()

    def _news(self, meta: ObjectMeta, changes: Sequence[Change[T]]) -> Sequence[Change[T]]:
        if changes:
            self._unreadable.pop(key_of(meta), None)
        self._known_up_to(meta.resource_version)
        return changes

    def _known_up_to(self, version: str) -> None:
        """Events may be out of order; where the next watch begins never moves back."""
        if version != self.last_resource_version and not is_older(version, self.last_resource_version):
            self.last_resource_version = version
            self._fruitless = 0

    def _heard(self) -> float:
        self._last_byte = now = _now()
        self._last_error = ""
        return now

    def _tell(self, changes: Sequence[Change[T]]) -> None:
        if not changes:
            return
        try:
            self._on_changes(changes)
        except Exception:
            self.counters.on_changes_failed += 1
            _log.exception("%s: whoever was told of %d changes has failed", self.kind.resource, len(changes))

    # Failures.

    def _failed(self, exc: ApiError | DoubtfulAnswerError) -> float:
        """What must be done next because of a failure, and in how many seconds."""
        self._last_error = _one_line(exc)
        self.counters.errors[type(exc).__name__] = self.counters.errors.get(type(exc).__name__, 0) + 1
        _log.warning("%s: %s", self.kind.resource, self._last_error)
        self._fruitless += 1
        match exc:
            case Gone() | TooLargeResourceVersion():
                self._next, self._from_newest = _Next.LIST, True
            case TooManyRequests() | Unreachable():
                pass  # the server cannot answer at the moment; a list would be the bigger question
            case BadRequest() | Invalid() | Forbidden() | NotFound() | NotServed():
                self._next = _Next.LIST
            case NotKubernetes():
                self._from_newest = True  # perhaps the list was too big to be had in one piece; from the newest it comes in pages
            case NoAnswer() if not exc.timed_out:
                self.counters.cuts += 1
        if self._fruitless >= MAX_FRUITLESS and not isinstance(exc, TooManyRequests | Unreachable):
            self._next = _Next.LIST
        delay = self._backoff.next(_now())
        if not self._is_served:
            return UNKNOWN_RESOURCE_RETRY * (1 + self._rng.random())
        return max(delay, exc.retry_after or 0.0) if isinstance(exc, ApiError) else delay


def _now() -> float:
    return asyncio.get_running_loop().time()


def _one_line(exc: Exception) -> str:
    return " ".join(f"{type(exc).__name__}: {exc}".split())
