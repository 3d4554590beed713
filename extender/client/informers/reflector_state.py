"""The state of a reflector beside its objects: what it does next, after which backoff; its health and its counters.

Upstream: client-go/tools/cache/reflector.go, watch, isWatchErrorRetriable, NewReflectorWithOptions;
apimachinery/pkg/util/wait/backoff.go.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, final

import msgspec

from extender.client import errors
from extender.client.informers.reading import DoubtfulAnswerError
from extender.values import limits
from extender.values.objects.cluster import Key

INIT_BACKOFF: Final = 0.8
MAX_BACKOFF: Final = 30.0
AWAY_BACKOFF: Final = 5.0
"""The most while there is no connection: a try costs nothing then, and the server may be back at any moment."""
FIRST_BACKOFF: Final = 4.0
"""The most while we may not read what we have never read: the roles of a new installation may come any moment."""
RESET_DURATION: Final = 120.0

REFUSED: Final = errors.Unauthorized | errors.Forbidden


@final
class Backoff:
    """0.8 s, doubled up to 30 s, plus a random part of as much; reset after two minutes without a failure."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._delay = INIT_BACKOFF
        self._last = float("-inf")

    def next(self, now: float, max_seconds: float = MAX_BACKOFF) -> float:
        """Returns the seconds to wait from now on, at most so many without the random part."""
        if now - self._last > RESET_DURATION:
            self._delay = INIT_BACKOFF
        self._last = now
        delay, self._delay = self._delay, min(self._delay * 2, max_seconds)
        return delay * (1 + self._rng.random())


LISTS_AFTER: Final = 3
"""Requests in a row that brought nothing new, after which a list follows."""


@final
class ReflectorPlan:
    """Lists first and then watches, until a failure requires another list."""

    def __init__(self, relist_period: float, rng: Random) -> None:
        self.lists_next = True
        self.from_newest = False
        """True if the next list must be of the newest state, because the known version is gone or not to be trusted."""
        self.checks_version_first = False
        """True if the server must be asked before the next watch whether it knows our resource version. One that does
        not, because it was restored from a backup, sends nothing until it has caught up.
        """
        self.relist_at = 0.0
        """The event loop's time at which a list is due, whatever the watch brings."""
        self._relist_period = relist_period
        self._rng = rng
        self._backoff = Backoff(rng)
        self._fruitless = 0
        self._is_away = False
        self._was_listed = False

    def listed(self, now: float) -> None:
        """Records that a list was accepted: watch from there."""
        self.lists_next = self.from_newest = self.checks_version_first = False
        self._was_listed = True
        self.relist_at = now + self._relist_period * self._rng.uniform(0.9, 1.1)
        self._fruitless = 0

    def learned(self) -> None:
        """Records that a watch brought something new."""
        self._fruitless = 0

    def list_newest(self) -> None:
        """Requires a list of the newest state."""
        self.lists_next = self.from_newest = True

    def failed(self, exc: errors.ApiError | DoubtfulAnswerError, now: float) -> float:
        """Records that a request failed; returns the seconds until the next try."""
        is_busy = isinstance(
            exc, errors.TooManyRequests | errors.Unreachable
        )  # a list would cost the server more than a watch
        was_list = self.lists_next
        self._fruitless += 1
        if isinstance(exc, errors.Gone | errors.TooLargeResourceVersion):
            self.list_newest()
        elif isinstance(
            exc, errors.BadRequest | errors.Invalid | errors.Forbidden | errors.NotFound | errors.NotServed
        ) or (self._fruitless >= LISTS_AFTER and not is_busy):
            self.lists_next = True
        is_silent = isinstance(exc, errors.NoAnswer) and exc.timed_out
        if is_silent:
            self.checks_version_first = True
        if isinstance(exc, errors.NotKubernetes) or (is_silent and was_list):
            self.from_newest = True  # the answer may have been too long for one piece; the newest state comes in pages
        if self._is_away and not isinstance(exc, errors.Unreachable):
            self._backoff = Backoff(self._rng)  # the server is back: the pauses of its absence do not count
        self._is_away = isinstance(exc, errors.Unreachable)
        max_seconds = AWAY_BACKOFF if self._is_away else MAX_BACKOFF
        if isinstance(exc, REFUSED) and not self._was_listed:
            max_seconds = FIRST_BACKOFF
        delay = self._backoff.next(now, max_seconds)
        requested = (exc.retry_after or 0.0) if isinstance(exc, errors.ApiError) else 0.0
        return max(delay, min(requested, limits.RETRY_AFTER_SECONDS))


@final
class Health(msgspec.Struct, frozen=True):
    """The state of one resource, for a readiness page."""

    resource: str
    """The name of the resource in RBAC."""
    synced: bool
    """Whether all objects have been listed once."""
    is_served: bool
    """False if the server does not know the resource, or does not let an optional one be read. It counts as empty then.
    """
    silent_for: float | None
    """Seconds since the last byte about the resource; None before the first."""
    last_error: str
    """The error after which it is being retried; empty if the last request succeeded."""
    failing_for: float | None
    """Seconds for which nothing could be learnt about the resource; None if requests succeed."""
    unreadable: Mapping[Key, str]
    """Objects that could not be read, with the reason. Their last readable version is kept."""


@final
@dataclass(slots=True)
class ReflectorCounters:
    """Counters since the start."""

    lists: int = 0
    """Lists begun, including streamed ones."""
    watches: int = 0
    events: int = 0
    cuts: int = 0
    """Watches that were cut, perhaps in the middle of a line."""
    unreadable: int = 0
    """Objects that could not be read, counted each time."""
    went_back: int = 0
    """Lists older than the one before."""
    on_changes_failed: int = 0
    """How often `on_changes` raised."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by the class of the error."""
