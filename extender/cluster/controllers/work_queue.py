"""A queue of keys: each stands in it once, some only later, and those that failed less and less often.

Upstream: client-go/util/workqueue, queue.go, delaying_queue.go, default_rate_limiters.go (v1.36.2).
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from random import Random
from typing import Final, Generic, TypeVar, final

K = TypeVar("K", bound=Hashable)

FIRST_RETRY: Final = 0.01
LAST_RETRY: Final = 60.0
"""The seconds between attempts at a key that keeps failing are doubled from the first to the last of these."""
SHORTEST_DELAY: Final = 0.001
"""The shortest delay in seconds: a shorter one may be a rounding error that comes again and again."""


@final
class WorkQueue(Generic[K]):
    """A queue in order of arrival, for one consumer."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._order: deque[K] = deque()
        self._ready: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._counter = 0
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Adds a key, unless it is in the queue already."""
        if key not in self._ready:
            self._ready.add(key)
            self._order.append(key)
            self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key after a delay; of several delays the earliest end counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = asyncio.get_running_loop().time() + max(seconds, SHORTEST_DELAY)
        if self._due.get(key, due) < due:
            return
        self._due[key] = due
        self._counter += 1
        heapq.heappush(self._later, (due, self._counter, key))
        self._wake.set()

    def retry(self, key: K) -> float:
        """Adds a key that failed, after a longer delay each time; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Up to a tenth more, so that keys that failed together are not retried together.
        delay: float = min(FIRST_RETRY * 2.0 ** min(failures, 32), LAST_RETRY) * (1 + self._rng.random() / 10)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Forgets the failures of a key that succeeded."""
        if self._failures:
            self._failures.pop(key, None)

    async def get(self) -> K:
        """Returns the next key once there is one; does not suspend if there is."""
        while True:
            self._promote()
            if self._order:
                key = self._order.popleft()
                self._ready.discard(key)
                return key
            self._wake.clear()
            due = self._later[0][0] if self._later else None
            try:
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _promote(self) -> None:
        if not self._later:
            return
        # The loop fires timers up to its clock's resolution early; that is no reason to wait once more.
        now = asyncio.get_running_loop().time() + SHORTEST_DELAY / 2
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
