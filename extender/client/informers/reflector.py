"""Reflector: keeps the objects of one resource like the server's.

Upstream: client-go/tools/cache/reflector.go. Ours trusts the server less: it ends a watch that is silent, lists again
periodically, asks twice before it believes that everything is gone, and never delivers half a list.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from random import Random
from typing import Final, Generic, NoReturn, TypeVar, final

from extender.client import errors
from extender.client.client import Client
from extender.client.informers import reading
from extender.client.informers.listing import (
    PAGE_SIZE,
    EndlessListError,
    Lister,
    Listing,
    initial_objects,
    streaming_params,
)
from extender.client.informers.reflector_state import REFUSED, Health, ReflectorCounters, ReflectorPlan
from extender.client.informers.store import Change, Store, is_older
from extender.client.paths import path
from extender.client.transport.carrier import WatchLines
from extender.values.objects.cluster import Key
from extender.values.objects.kinds import WatchedKind
from extender.values.objects.meta import HasMetadata, ObjectMeta

T = TypeVar("T", bound=HasMetadata)

SILENCE: Final = 80.0
"""Seconds without a byte after which a watch is renewed; a bookmark is due every minute."""
WATCH_SECONDS: Final = (300, 600)
"""The range of the duration that is requested for a watch; a random one spreads the load."""
SHORT_WATCH: Final = 1.0
RELIST_PERIOD: Final = 1800.0
UNKNOWN_RESOURCE_RETRY: Final = 60.0
CATCH_UP_PATIENCE: Final = 1.0
"""Seconds within which a watch usually delivers changes."""
CATCH_UP_POLL: Final = 0.05
ENOUGH_TO_DOUBT: Final = 10
"""If all objects are gone at once, and they were more than this, the server is asked again."""

_AWAY: Final = (
    errors.Unreachable, errors.NoAnswer, errors.NotKubernetes, errors.ServerError, errors.ServerTimeout,
    errors.TooManyRequests,
)  # fmt: skip
"""Errors that say nothing about the resource. All resources are asked for again once one of them is answered."""

_log = logging.getLogger(__name__)


@final
class Reached(asyncio.Event):
    """Wakes all reflectors that wait for a server that was away, or that refused them."""

    is_away = False
    """Whether it has been told that the server cannot be reached."""


@final
class Reflector(Generic[T]):
    """Lists one resource, then watches it, forever.

    State: the objects, the resource version up to which they are known, and what must be done next to know more.
    """

    def __init__(
        self,
        client: Client,
        kind: WatchedKind[T],
        on_changes: Callable[[Sequence[Change[T]]], None],
        *,
        rng: Random,
        streams_lists: bool = True,
        relist_period: float = RELIST_PERIOD,
        page_size: int = PAGE_SIZE,
        reached: Reached | None = None,
        is_whole: Callable[[HasMetadata], bool] = reading.never,
    ) -> None:
        """Requests nothing before `run`.

        Arguments:
            on_changes: called with the changes of a list, or with those that arrived together. Its exceptions are
                logged and counted; the changes are not delivered again.
            streams_lists: whether lists are requested as watches if possible, so that none is in memory as a whole.
            relist_period: seconds after which a new list corrects what the watch may have missed.
            page_size: of lists that do not come from the server's cache.
        """
        self.counters = ReflectorCounters()
        self.last_resource_version = ""
        self._client = client
        self._on_changes = on_changes
        self._rng = rng
        self._page_size = page_size
        self._plan = ReflectorPlan(relist_period, rng)
        self._is_whole = is_whole
        self._ask_for(kind)
        self._store: Store[T] = Store()
        self._unreadable: dict[Key, str] = {}
        self._synced = asyncio.Event()
        self._last_byte: float | None = None
        self._last_error = ""
        self._failing_since: float | None = None
        self._reached = Reached() if reached is None else reached
        self._was_away = self._was_refused = False
        # The abilities of the server, as far as they are known.
        self._can_stream = streams_lists
        self._must_page = False
        self._is_served = True
        # Answers that are only believed when they are given twice.
        self._seems_empty = False
        self._seems_unknown = False
        self._watch_ends: asyncio.Timeout | None = None

    @property
    def has_synced(self) -> bool:
        """True once the first list was delivered."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        await self._synced.wait()

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects as they are known now. Each list makes another mapping."""
        return self._store.objects

    def failing_for(self, now: float) -> float | None:
        """Returns the seconds for which nothing could be learnt about the resource; None if requests succeed."""
        return None if self._failing_since is None or not self._is_served else now - self._failing_since

    def health(self, now: float) -> Health:
        """Returns the health of the resource at the event loop's time."""
        silent_for = None if self._last_byte is None else now - self._last_byte
        return Health(
            self.kind.resource,
            self.has_synced,
            self._is_served,
            silent_for,
            self._last_error,
            self.failing_for(now),
            dict(self._unreadable),
        )

    async def catch_up(self) -> None:
        """Returns once all that the server knows now is known here, by a list if the watch is slow.

        Raises ApiError, DoubtfulAnswerError if the server did not answer which version is the newest.
        """
        if not self._is_served:
            return
        newest = await self._lister.newest_version()
        patience = _now() + CATCH_UP_PATIENCE
        while is_older(self.last_resource_version, newest):
            if _now() >= patience and not self._plan.lists_next:
                self._plan.list_newest()
                if self._watch_ends is not None:
                    self._watch_ends.reschedule(_now())
            await asyncio.sleep(CATCH_UP_POLL)

    async def run(self) -> NoReturn:
        """Lists and watches until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except (errors.ApiError, reading.DoubtfulAnswerError) as exc:
                if isinstance(exc, errors.Forbidden) and self.kind.is_optional:
                    self._not_served()
                await self._pause(self._failed(exc), exc)
            except Exception as exc:
                # A fault of ours, by which neither this resource nor the others may end.
                _log.exception("%s: a list or watch failed unexpectedly", self.kind.resource)
                self._plan.list_newest()
                doubt = reading.DoubtfulAnswerError(_one_line(exc))
                await self._pause(self._failed(doubt), doubt)

    async def _pause(self, seconds: float, exc: errors.ApiError | reading.DoubtfulAnswerError) -> None:
        """Waits for the next try, at most until another reflector has reached a server that was away or busy."""
        if isinstance(exc, _AWAY):
            self._was_away = True
        else:
            self._tell_of_return()
        self._was_refused = isinstance(exc, REFUSED)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reached.wait()

    def _tell_of_return(self) -> None:
        if self._was_away:
            self._was_away = self._reached.is_away = False
            self._reached.set()  # wakes those that wait now
            self._reached.clear()

    async def _list_and_watch(self) -> None:
        if self._plan.lists_next:
            self.counters.lists += 1
            if await self._watch_list():
                return
            await self._list()
        elif self._plan.checks_version_first:
            await self._lister.check_version(self.last_resource_version)
            self._plan.checks_version_first = False
        began = _now()
        async with self._watch({"resourceVersion": self.last_resource_version}) as lines:
            await self._follow(lines, began)

    # Lists.

    async def _list(self) -> None:
        # "0" is whatever the server has cached, "" the newest state.
        version = "" if self._plan.from_newest else self.last_resource_version or "0"
        page_size = self._page_size if version in ("", "0") or self._must_page else None
        try:
            listing = await self._lister.list(version, page_size=page_size)
        except (errors.NotFound, errors.NotServed):
            ours, other = self.kind.api_version, self.kind.other_api_version
            if other:
                self._ask_for(replace(self.kind, api_version=other, other_api_version=ours))
            self._not_served()
            raise
        self._must_page = self._must_page or (version == "0" and listing.num_pages > 1)
        self._replace(listing)

    async def _watch_list(self) -> bool:
        """Follows a watch that begins with all objects; False if an ordinary list is needed instead."""
        if not self._can_stream:
            return False
        began = _now()
        try:
            version = "" if self._plan.from_newest else self.last_resource_version
            async with self._watch(streaming_params(version)) as lines:
                self._replace(await initial_objects(lines, self._reader, self._byte_received))
                await self._follow(lines, began, brought_something=True)
        except (errors.ApiError, reading.DoubtfulAnswerError) as exc:
            is_of_use = not isinstance(
                exc,
                errors.TooManyRequests
                | errors.Unreachable
                | errors.Unauthorized
                | errors.Forbidden
                | errors.Gone
                | errors.TooLargeResourceVersion,
            )
            if not (self._plan.lists_next and is_of_use):
                raise
            # As upstream, an ordinary list follows, because progress matters more than the form of the list.
            self._can_stream = not isinstance(exc, errors.BadRequest | errors.Invalid | EndlessListError)
            text = "%s: an ordinary list is asked for instead of a streamed one: %s"
            _log.info(text, self.kind.resource, _one_line(exc))
            return False
        return True

    def _replace(self, listing: Listing[T]) -> None:
        """Replaces all objects by the list's, or raises DoubtfulAnswerError if there is a reason to ask again."""
        last = self.last_resource_version
        if is_older(listing.resource_version, last):
            if not self._plan.from_newest:
                self._plan.list_newest()
                raise reading.DoubtfulAnswerError(
                    f"a list not older than {last} was asked for, and one of {listing.resource_version} came"
                )
            self.counters.went_back += 1
            text = "%s: the resource version went backwards, from %s to %s"
            _log.warning(text, self.kind.resource, last, listing.resource_version)
        is_empty = not (listing.objects or listing.unreadable or listing.num_unknown)
        if is_empty and len(self.objects) > ENOUGH_TO_DOUBT and not self._seems_empty:
            self._seems_empty = True
            self._plan.list_newest()
            raise reading.DoubtfulAnswerError(
                f"all {len(self.objects)} {self.kind.plural} are gone at once, so the server is asked again"
            )
        self.counters.unreadable += len(listing.unreadable) + listing.num_unknown
        self._unreadable = listing.unreadable
        self._deliver(self._store.replace(listing.objects, listing.unreadable_uids))
        self.last_resource_version = listing.resource_version
        self._plan.listed(_now())
        self._seems_empty = self._seems_unknown = False
        self._is_served = True
        self._byte_received()
        self._mark_healthy()
        self._synced.set()

    def _ask_for(self, kind: WatchedKind[T]) -> None:
        self.kind = kind
        self._reader = reading.ObjectReader(kind, is_whole=self._is_whole)
        self._lister = Lister(self._client, kind, self._reader)

    def _not_served(self) -> None:
        """Believes, when answered twice, that the resource is not there or not for us, which counts as empty."""
        if not self.kind.may_be_unknown:
            return
        if self._seems_unknown and self._is_served:
            self._is_served = False
            self.last_resource_version = ""
            self._deliver(self._store.replace({}, {}))
            self._synced.set()
        self._seems_unknown = True

    # Watches.

    def _watch(self, begins: Mapping[str, str]) -> AbstractAsyncContextManager[WatchLines]:
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._rng.randint(*WATCH_SECONDS)),
            **begins,
        }
        if self.kind.field_selector:
            params["fieldSelector"] = self.kind.field_selector
        self.counters.watches += 1
        where = path(self.kind.group, self.kind.version, self.kind.plural)
        return self._client.watch(where, params=params, silence=SILENCE)

    async def _follow(self, lines: WatchLines, began: float, *, brought_something: bool = False) -> None:
        """Applies the events of the watch until it ends, or until a list is due.

        Raises ApiError if it failed, DoubtfulAnswerError if it made no sense or ended before it was of any use.
        """
        first = self.last_resource_version

        def was_of_use() -> bool:
            return brought_something or self.last_resource_version != first or _now() - began >= SHORT_WATCH

        # A server that cannot continue from this version reports it in the first lines. After a while without one, all
        # is well.
        calm = asyncio.get_running_loop().call_later(SHORT_WATCH, self._mark_healthy)
        try:
            async with asyncio.timeout_at(self._plan.relist_at) as self._watch_ends:
                async for line in lines:
                    self._byte_received()
                    self._take((line, *lines.arrived()))
                    self._mark_healthy()
        except TimeoutError:
            self._plan.lists_next = True
            return
        except errors.NoAnswer as exc:
            if exc.timed_out:
                # The peer may have vanished, or the kind is quiet: kube-apiserver sends no bookmark of a kind before it
                # has processed a change of it.
                self._plan.checks_version_first = True
                _log.debug("%s: %s", self.kind.resource, _one_line(exc))
            elif not was_of_use():
                raise
            else:
                self.counters.cuts += 1  # a cut after some events is like an ordinary end
        finally:
            self._watch_ends = None
            calm.cancel()
        if not was_of_use():
            raise reading.DoubtfulAnswerError(
                "very short watch: Unexpected watch close - watch lasted less than a second and no items received"
            )

    def _take(self, lines: Sequence[bytes]) -> None:
        changes: list[Change[T]] = []
        try:
            for line in lines:
                self.counters.events += 1
                changes += self._apply(line)
        finally:
            self._deliver(changes)

    def _apply(self, line: bytes) -> Sequence[Change[T]]:
        try:
            event = reading.read_event(line, self._reader)
        except reading.UnreadableObjectError as exc:
            self.counters.unreadable += 1
            if exc.meta is None:
                raise reading.DoubtfulAnswerError(exc.reason) from exc
            _log.warning("%s: an object cannot be read: %s", self.kind.resource, _one_line(exc))
            self._unreadable[reading.key_of(exc.meta)] = exc.reason
            self._known_up_to(exc.meta.resource_version)
            return self._store.keep_unreadable(exc.meta)
        if isinstance(event, reading.Removed):
            self._unreadable.pop(reading.key_of(event.metadata), None)
            return self._after_change(event.metadata, self._store.remove(event.metadata))
        if not isinstance(event, reading.Bookmark):
            return self._after_change(event.metadata, self._store.put(event))
        version, last = event.resource_version, self.last_resource_version
        if is_older(version, last):
            self._plan.list_newest()
            raise reading.DoubtfulAnswerError(f"the server is at {version} and was at {last} before")
        self._known_up_to(version)
        return ()

    def _after_change(self, meta: ObjectMeta, changes: Sequence[Change[T]]) -> Sequence[Change[T]]:
        if changes and self._unreadable:
            self._unreadable.pop(reading.key_of(meta), None)
        self._known_up_to(meta.resource_version)
        return changes

    def _known_up_to(self, version: str) -> None:
        """Advances, never back, since events may be out of order, where the next watch begins."""
        if version != self.last_resource_version and not is_older(version, self.last_resource_version):
            self.last_resource_version = version
            self._plan.learned()

    def _mark_healthy(self) -> None:
        self._last_error = ""
        self._failing_since = None
        # Once only, since others may be refused for good. Roles that come late mostly come for all.
        self._was_away = self._was_away or (self._was_refused and not self.has_synced)
        self._tell_of_return()

    def _byte_received(self) -> float:
        self._last_byte = now = _now()
        return now

    def _deliver(self, changes: Sequence[Change[T]]) -> None:
        if not changes:
            return
        try:
            self._on_changes(changes)
        except Exception:
            self.counters.on_changes_failed += 1
            _log.exception("%s: the handler of %d changes failed", self.kind.resource, len(changes))

    def _failed(self, exc: errors.ApiError | reading.DoubtfulAnswerError) -> float:
        """Records a failure; returns the seconds until the next try."""
        message, before = _one_line(exc), self._last_error
        self._last_error = message
        if self._failing_since is None:
            self._failing_since = _now()
        self.counters.errors[type(exc).__name__] += 1
        if isinstance(exc, errors.NoAnswer) and not exc.timed_out:
            self.counters.cuts += 1
        is_known = message == before or (isinstance(exc, errors.Unreachable) and self._reached.is_away)
        self._reached.is_away = self._reached.is_away or isinstance(exc, errors.Unreachable)
        _log.log(logging.DEBUG if is_known else logging.WARNING, "%s: %s", self.kind.resource, message)
        delay = self._plan.failed(exc, _now())
        return delay if self._is_served else UNKNOWN_RESOURCE_RETRY * (1 + self._rng.random())


def _now() -> float:
    return asyncio.get_running_loop().time()


def _one_line(exc: Exception) -> str:
    return " ".join(f"{type(exc).__name__}: {exc}".split())
