"""ReflectorPlan: what a reflector does next, and how soon.

Upstream: client-go/tools/cache/reflector.go, watch, isWatchErrorRetriable (v1.36.2).
"""

from random import Random
from typing import Final, final

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
    Unreachable,
)
from extender.apiserver.informers.reading import DoubtfulAnswerError

FIRST: Final = 0.8
LONGEST: Final = 30.0
RESET_AFTER: Final = 120.0


@final
class Backoff:
    """0.8 s, twice as long each time, up to 30 s; chance adds up to as much again; from the start after two quiet minutes."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._delay = FIRST
        self._last = float("-inf")

    def next(self, now: float) -> float:
        """Seconds to wait from now on.

        Arguments:
            now: the event loop's time.
        """
        if now - self._last > RESET_AFTER:
            self._delay = FIRST
        self._last = now
        delay, self._delay = self._delay, min(self._delay * 2, LONGEST)
        return delay * (1 + self._rng.random())


MAX_FRUITLESS: Final = 3
"""Watches in a row that brought nothing new, after which a list is the better question."""


@final
class ReflectorPlan:
    """A list first; then watches, until one of them says or shows that there must be a list again."""

    def __init__(self, relist_period: float, rng: Random) -> None:
        self.lists_next = True
        self.from_newest = False
        """The next list must be of the newest state there is: what we know of is no longer there, or not to be trusted."""
        self.asks_first = False
        """Before the next watch the server must be asked whether it knows the resource version from which we would watch: one that does
        not, for it was restored from a copy, says nothing until it has caught up."""
        self.relist_at = 0.0
        """The event loop's time at which a list is due, whatever the watch says."""
        self._relist_period = relist_period
        self._rng = rng
        self._backoff = Backoff(rng)
        self._fruitless = 0

    def listed(self, now: float) -> None:
        """A list was believed: watch from there."""
        self.lists_next = self.from_newest = self.asks_first = False
        self.relist_at = now + self._relist_period * self._rng.uniform(0.9, 1.1)
        self._fruitless = 0

    def learned(self) -> None:
        """A watch has brought something new."""
        self._fruitless = 0

    def list_newest(self) -> None:
        """Nothing but the newest state will do."""
        self.lists_next = self.from_newest = True

    def failed(self, exc: ApiError | DoubtfulAnswerError, now: float) -> float:
        """A request has come to nothing; in how many seconds to try again."""
        is_busy = isinstance(exc, TooManyRequests | Unreachable)  # a list would be the bigger question
        was_list = self.lists_next
        self._fruitless += 1
        if isinstance(exc, Gone | TooLargeResourceVersion):
            self.list_newest()
        elif isinstance(exc, BadRequest | Invalid | Forbidden | NotFound | NotServed) or (self._fruitless >= MAX_FRUITLESS and not is_busy):
            self.lists_next = True
        is_silent = isinstance(exc, NoAnswer) and exc.timed_out
        if is_silent:
            self.asks_first = True
        if isinstance(exc, NotKubernetes) or (is_silent and was_list):
            self.from_newest = True  # the answer may have been too long to be had in one piece; the newest state comes in pages
        delay = self._backoff.next(now)
        return max(delay, exc.retry_after or 0.0) if isinstance(exc, ApiError) else delay
