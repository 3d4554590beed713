"""LeaderElector: acquires and renews the lease that decides which replica leads.

Only times that were measured here count, whatever times are written in the lease.

Upstream: client-go/tools/leaderelection, leaderelection.go. Upstream does not stop a leader from writing after its
machine was suspended. Here a leader measures the time since its last renewal by a clock that goes on during a
suspension, and writes nothing once that is longer than renewDeadline: see `fence`. Other replicas wait for
leaseDuration, and the time between the two is long enough for a write in flight to end: see `write_seconds`.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, final

from msgspec.structs import replace

from extender.client.client import Client
from extender.client.errors import ApiError, Conflict, NotFound
from extender.client.lease_lock import LeaderElectionRecord, LeaseError, LeaseLock
from extender.values import limits
from extender.values.config.configuration import LeaderElection
from extender.values.golang.times import rfc3339
from extender.values.objects.cluster import Key

JITTER_FACTOR: Final = 1.2
"""The longest pause between two attempts to acquire the lease exceeds the shortest by this factor. Upstream's shortest
pause is retryPeriod; here the longest is, so that another replica leads no later than leaseDuration and retryPeriod
after the last renewal.
"""

SHORTEST_PAUSE: Final = 0.001
"""Seconds. The rest of a lease may be shorter than clocks can measure."""

TOLERATED_AFTER_EXPIRY: Final = 20.0
"""Seconds after the end of the lease from which on a leader that still runs is reported as unhealthy. Upstream:
cmd/kube-scheduler/app/options."""

HIGHEST_TRANSITIONS: Final = 2**31 - 1

NOT_LEADING: Final = "this replica does not lead"

_log = logging.getLogger(__name__)


def boot_time() -> float:
    """Returns the seconds of a clock that cannot be set, and that goes on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@final
class LeaderElector:
    """One candidate. State: the last lease that was seen and since when, and when we last renewed it."""

    def __init__(
        self,
        client: Client,
        election: LeaderElection,
        identity: str,
        *,
        rng: random.Random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        boot_time: Callable[[], float] = boot_time,
    ) -> None:
        """Requests nothing yet.

        The client is used for nothing else, so that no other request delays a renewal. No other replica has the
        identity. `now` is the wall clock, for the times in the lease, which only people read.
        """
        self.identity = identity
        self.name = election.resource_name
        self._lease_duration = election.lease_duration.seconds
        self._renew_deadline = election.renew_deadline.seconds
        self._retry_period = election.retry_period.seconds
        # Half the deadline, so that one request that hangs does not lose the lease. Upstream:
        # resourcelock.NewFromKubeconfig.
        timeout = max(self._renew_deadline / 2, 1.0)
        self._lock = LeaseLock(client, (election.resource_namespace, election.resource_name), timeout=timeout)
        self._random = rng
        self._now = now
        self._boot_time = boot_time
        self._observed = LeaderElectionRecord()
        self._observed_at = float("-inf")
        self._reported_leader = ""
        self._renewed_at: float | None = None
        """When the last successful renewal was sent; None while this replica does not lead."""
        self._failure = "the process was not running"
        """Why the last attempt failed."""

    @property
    def lease(self) -> Key:
        return self._lock.key

    @property
    def leader(self) -> str:
        """Empty if there is none, as far as is known."""
        return self._observed.holder_identity

    @property
    def write_seconds(self) -> float:
        """The longest write that ends, once past the fence, before another replica may lead."""
        return self._lease_duration - self._renew_deadline

    def fence(self) -> str | None:
        """Returns why nothing may be written now; None if no other replica can be leading."""
        if self._renewed_at is None or self.leader != self.identity:
            return NOT_LEADING
        if self._left(self._renewed_at) <= 0:
            return f"{NOT_LEADING} any more: its lease was last renewed more than {self._renew_deadline:g} s ago"
        return None

    def check(self) -> str:
        """Returns a message if this leader's lease is long over, so that it should have ended (HealthzAdaptor)."""
        if self._renewed_at is None:
            return ""
        if self._boot_time() - self._renewed_at > self._lease_duration + TOLERATED_AFTER_EXPIRY:
            return f"failed election to renew leadership on lease {self.name}"
        return ""

    async def acquire(self) -> None:
        """Returns once this replica leads."""
        _log.info("attempting to acquire leader lease %s...", self._lock)
        while not await self._attempt(self._renew_deadline):
            pause = self._retry_period * (1 + JITTER_FACTOR * self._random.random()) / (1 + JITTER_FACTOR)
            expires_in = self._expires_in()
            await asyncio.sleep(min(pause, max(expires_in, SHORTEST_PAUSE)) if expires_in > 0 else pause)
        _log.info("successfully acquired lease %s", self._lock)

    async def keep(self) -> str:
        """Renews the lease while possible. Returns why this replica no longer leads, behind a closed fence."""
        while True:
            if (seconds := self._left(self._renewed_at)) > 0:
                await asyncio.sleep(min(self._retry_period, max(seconds, SHORTEST_PAUSE)))
            # A replica that slept past its deadline does not renew, because that would be a write.
            if self.leader == self.identity and (seconds := self._left(self._renewed_at)) > 0:
                await self._attempt(seconds)
            if self.fence() is not None:
                break
        self._renewed_at = None
        if self.leader != self.identity:
            return f"lease {self._lock} is held by {self.leader or 'nobody'}"
        return f"failed to renew lease {self._lock} within {self._renew_deadline:g} s: {self._failure}"

    async def release(self) -> bool:
        """Releases the lease, for others not to wait; returns whether it did. No write may be in flight."""
        if self.fence() is not None:
            return False
        seconds, self._renewed_at = self._left(self._renewed_at), None
        now = rfc3339(self._now(), "microseconds")
        released = LeaderElectionRecord("", 1, now, now, self._observed.leader_transitions)
        try:
            async with asyncio.timeout(seconds):
                try:
                    await self._lock.update(released)
                except Conflict:
                    # A renewal was performed whose answer was not waited for.
                    if (await self._lock.get()).holder_identity != self.identity:
                        return False
                    await self._lock.update(released)
        except (ApiError, LeaseError, TimeoutError) as exc:
            _log.error("Failed to release lock %s: %s", self._lock, exc)
            return False
        self._observe(released)
        return True

    async def _attempt(self, seconds: float) -> bool:
        """Returns whether this replica holds the lease now, within so many seconds."""
        succeeded = False
        try:
            async with asyncio.timeout(seconds):
                succeeded = await self._try_acquire_or_renew()
        except (ApiError, LeaseError) as exc:
            self._fail(str(exc))
        except TimeoutError:
            self._fail(f"no answer within {seconds:.3g} s")
        if self.leader != self._reported_leader:
            self._reported_leader = self.leader
            _log.info("new leader of lease %s: %s", self._lock, self.leader or "nobody")
        return succeeded

    async def _try_acquire_or_renew(self) -> bool:
        # 1 a leader assumes that the lease has not changed, and renews it without reading it
        if self.fence() is None:
            try:
                return await self._write(self._renewal(self._observed), self._lock.update)
            except (ApiError, LeaseError) as exc:
                self._fail(f"{exc}, falling back to slow path")

        # 2 read the lease
        try:
            record = await self._lock.get()
        except NotFound:
            if self.leader not in ("", self.identity) and self._expires_in() > 0:
                return False  # it was deleted, and its holder may not know yet
            return await self._write(self._renewal(LeaderElectionRecord()), self._lock.create)
        if record != self._observed:
            self._observe(record)

        # 3 it is held by another replica
        if record.holder_identity and record.holder_identity != self.identity and self._expires_in() > 0:
            return False

        # 4 it is free, or ours
        return await self._write(self._renewal(record), self._lock.update)

    async def _write(
        self, record: LeaderElectionRecord, send: Callable[[LeaderElectionRecord], Awaitable[None]]
    ) -> bool:
        """Writes the lease, and returns whether it was written.

        It counts as ours from when it was sent, and not from the answer on, because others count from a moment between
        the two.
        """
        sent_at = self._boot_time()
        if self._renewed_at is not None and self._left(self._renewed_at) <= 0:
            return False
        await send(record)
        self._observe(record)
        self._renewed_at = sent_at
        return True

    def _renewal(self, record: LeaderElectionRecord) -> LeaderElectionRecord:
        now = rfc3339(self._now(), "microseconds")
        renewed = LeaderElectionRecord(self.identity, int(self._lease_duration), now, now, record.leader_transitions)
        if record == LeaderElectionRecord():
            return renewed
        if record.holder_identity == self.identity:
            return replace(renewed, acquire_time=record.acquire_time or now)
        return replace(renewed, leader_transitions=min(record.leader_transitions + 1, HIGHEST_TRANSITIONS))

    def _expires_in(self) -> float:
        """Returns the seconds until the lease expires, counted from the first sight of its present state."""
        lasts: float = self._observed.lease_duration_seconds
        if not 1 <= lasts <= limits.LEASE_SECONDS:
            lasts = self._lease_duration
        return lasts - (self._boot_time() - self._observed_at)

    def _left(self, renewed_at: float | None) -> float:
        """Returns the seconds until the next renewal must have succeeded."""
        return 0.0 if renewed_at is None else self._renew_deadline - (self._boot_time() - renewed_at)

    def _observe(self, record: LeaderElectionRecord) -> None:
        self._observed, self._observed_at = record, self._boot_time()

    def _fail(self, why: str) -> None:
        self._failure = why
        _log.warning("lease %s: %s", self._lock, why)
