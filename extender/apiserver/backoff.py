"""Backoff: how long to wait before the next try.

Upstream: client-go/tools/cache/reflector.go, NewReflectorWithOptions; apimachinery/pkg/util/wait/backoff.go (v1.36.2).
"""

from random import Random
from typing import Final, final

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
