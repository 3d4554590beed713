"""The rate limit of requests: `qps` and `burst` of a KubeSchedulerConfiguration's clientConnection."""

import asyncio
from typing import final


@final
class RateLimit:
    """A token bucket: `burst` requests at once, `qps` a second in the long run, in order of arrival.

    Upstream: client-go/util/flowcontrol/throttle.go, NewTokenBucketRateLimiter (v1.36.2).
    """

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs a positive qps and burst, not {qps:g} and {burst}")
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    async def wait(self) -> None:
        """Returns when a request may be sent. A caller that is cancelled gives its token back."""
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1  # below zero by the number of callers that wait
        if self._tokens >= 0:
            return
        try:
            await asyncio.sleep(-self._tokens / self._qps)
        except asyncio.CancelledError:
            self._tokens += 1
            raise
