"""LeaderElector: of several replicas one leads, as a lease says.

Only times that were measured here count: a lease that has not changed for as long as it lasts has expired, whatever times stand in it.

Upstream: client-go/tools/leaderelection, leaderelection.go (v1.36.2). It does not keep a leader that has slept from writing. Here a leader
knows by a clock that goes on while the machine sleeps when its lease was last renewed, and writes nothing once that was renewDeadline ago:
see `fence`. Others wait for leaseDuration, and between the two lies time enough for a write that was begun to end: see `write_seconds`.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, final

from extender.apiserver.client import Client
from extender.apiserver.errors import ApiError, Conflict, NotFound
from extender.apiserver.lease.lease_lock import LeaderElectionRecord, LeaseError, LeaseLock
from extender.config import LeaderElection
from extender.golang.durations import Duration
from extender.golang.times import rfc3339
from extender.objects.cluster import Key

JITTER_FACTOR: Final = 1.2
"""Between two attempts to get the lease the longest pause is so much longer than the shortest. Upstream the shortest is retryPeriod; here
the longest is, so that another leads no later than leaseDuration and retryPeriod after the last renewal."""

SHORTEST_PAUSE: Final = 0.001
"""Seconds: what is left of a lease may be less than clocks can tell."""

LONGEST_BELIEVED: Final = 3600
"""Seconds that a lease may say it lasts. What is not between one second and this is taken for our own leaseDuration."""

TOLERATED_AFTER_EXPIRY: Final = 20.0
"""Seconds after the end of the lease from which on a leader that still runs is reported ill. Upstream: cmd/kube-scheduler/app/options."""

NOT_LEADING: Final = "this replica does not lead"

_log = logging.getLogger(__name__)


def boot_time() -> float:
    """Seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@final
class LeaderElector:
    """One candidate. State: what the lease said last and since when; and when we last renewed it."""

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
        """Nothing is asked yet.

        Arguments:
            client: nobody else's, so that no other request stands before a renewal.
            election: how long is what, and which lease it is.
            identity: who we are; no other replica is called so.
            now: the clock on the wall, for what is written into the lease for people to read.
            boot_time: see `boot_time`.
        """
        self.identity = identity
        self.name = election.resource_name
        self._lease_duration = _seconds(election.lease_duration)
        self._renew_deadline = _seconds(election.renew_deadline)
        self._retry_period = _seconds(election.retry_period)
        # Half of what there is, so that one request that hangs does not cost us the lease. Upstream: resourcelock.NewFromKubeconfig.
        timeout = max(self._renew_deadline / 2, 1.0)
        self._lock = LeaseLock(client, (election.resource_namespace, election.resource_name), timeout=timeout)
        self._random = rng
        self._now = now
        self._boot_time = boot_time
        self._observed = LeaderElectionRecord()
        self._observed_at = float("-inf")
        self._reported_leader = ""
        self._renewed_at: float | None = None
        """When the last renewal that succeeded was sent; None while we do not lead."""
        self._failure = "the process was not running"
        """Why the last attempt came to nothing."""

    @property
    def lease(self) -> Key:
        """(namespace, name)."""
        return self._lock.key

    @property
    def leader(self) -> str:
        """Who leads, as far as we know; empty if nobody does."""
        return self._observed.holder_identity

    @property
    def write_seconds(self) -> float:
        """How long one attempt at a write may take that the fence has let pass, so that it has ended before others may lead."""
        return self._lease_duration - self._renew_deadline

    def fence(self) -> str | None:
        """Why nothing may be written now; None if it may, because nobody else can be leading."""
        if self._renewed_at is None or self.leader != self.identity:
            return NOT_LEADING
        if self._left(self._renewed_at) <= 0:
            return f"{NOT_LEADING} any more: its lease was last renewed more than {self._renew_deadline:g} s ago"
        return None

    def check(self) -> str:
        """What is wrong; empty if nothing is. A leader whose lease is long over should have ended.

        Upstream: LeaderElector.Check, HealthzAdaptor.
        """
        if self._renewed_at is None:
            return ""
        if self._boot_time() - self._renewed_at > self._lease_duration + TOLERATED_AFTER_EXPIRY:
            return f"failed election to renew leadership on lease {self.name}"
        return ""

    async def acquire(self) -> None:
        """Returns once we lead."""
        _log.info("attempting to acquire leader lease %s...", self._lock)
        while True:
            if await self._attempt(self._renew_deadline):
                break
            pause = self._retry_period * (1 + JITTER_FACTOR * self._random.random()) / (1 + JITTER_FACTOR)
            expires_in = self._expires_in()
            await asyncio.sleep(min(pause, max(expires_in, SHORTEST_PAUSE)) if expires_in > 0 else pause)
        _log.info("successfully acquired lease %s", self._lock)

    async def keep(self) -> str:
        """Lead for as long as that can be. Returns why it is over; from then on the fence is closed."""
        while True:
            if (left := self._left(self._renewed_at)) > 0:
                await asyncio.sleep(min(self._retry_period, max(left, SHORTEST_PAUSE)))
            # Whoever slept too long, of his own will or not, does not ask: that would be a write.
            if self.leader == self.identity and (left := self._left(self._renewed_at)) > 0:
                await self._attempt(left)
            if self.fence() is not None:
                break
        self._renewed_at = None
        if self.leader != self.identity:
            return f"lease {self._lock} is held by {self.leader or 'nobody'}"
        return f"failed to renew lease {self._lock} within {self._renew_deadline:g} s: {self._failure}"

    async def release(self) -> bool:
        """Give the lease back, so that others need not wait for its end; whether that was done. Nothing may be under way any more."""
        if self.fence() is not None:
            return False
        left, self._renewed_at = self._left(self._renewed_at), None
        now = rfc3339(self._now(), "microseconds")
        released = LeaderElectionRecord("", 1, now, now, self._observed.leader_transitions)
        try:
            async with asyncio.timeout(left):
                try:
                    await self._lock.update(released)
                except Conflict:
                    # A renewal whose answer we did not wait for has been written.
                    if (await self._lock.get()).holder_identity != self.identity:
                        return False
                    await self._lock.update(released)
        except (ApiError, LeaseError, TimeoutError) as exc:
            _log.error("Failed to release lock %s: %s", self._lock, exc)
            return False
        self._observe(released)
        return True

    async def _attempt(self, seconds: float) -> bool:
        """Whether we hold the lease now.

        Arguments:
            seconds: that it may take.
        """
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
        """Upstream: tryAcquireOrRenew."""
        # 1 a leader takes it that nothing has changed
        if self.fence() is None:
            try:
                return await self._write(self._renewal(self._observed), self._lock.update)
            except (ApiError, LeaseError) as exc:
                self._fail(f"{exc}, falling back to slow path")

        # 2 what stands there
        try:
            found = await self._lock.get()
        except NotFound:
            if self.leader not in ("", self.identity) and self._expires_in() > 0:
                return False  # somebody has deleted it, and its holder may not know yet
            return await self._write(self._renewal(LeaderElectionRecord()), self._lock.create)
        if found != self._observed:
            self._observe(found)

        # 3 it is held by somebody else
        if found.holder_identity and found.holder_identity != self.identity and self._expires_in() > 0:
            return False

        # 4 it is free, or ours
        return await self._write(self._renewal(found), self._lock.update)

    async def _write(self, record: LeaderElectionRecord, send: Callable[[LeaderElectionRecord], Awaitable[None]]) -> bool:
        """The lease is ours from the moment on at which this was sent, not from that of the answer: others count from what lies between."""
        sent_at = self._boot_time()
        if self._renewed_at is not None and self._left(self._renewed_at) <= 0:
            return False
        await send(record)
        self._observe(record)
        self._renewed_at = sent_at
        return True

    def _renewal(self, of: LeaderElectionRecord) -> LeaderElectionRecord:
        now = rfc3339(self._now(), "microseconds")
        ours = LeaderElectionRecord(self.identity, int(self._lease_duration), now, now, of.leader_transitions)
        if of.holder_identity == self.identity:
            return replace(ours, acquire_time=of.acquire_time or now)
        return replace(ours, leader_transitions=of.leader_transitions + 1) if of != LeaderElectionRecord() else ours

    def _expires_in(self) -> float:
        """Seconds after which the lease has expired, counted from when we first saw it as it is."""
        lasts: float = self._observed.lease_duration_seconds
        if not 1 <= lasts <= LONGEST_BELIEVED:
            lasts = self._lease_duration
        return lasts - (self._boot_time() - self._observed_at)

    def _left(self, renewed_at: float | None) -> float:
        """Seconds for which we may go on without another renewal."""
        return 0.0 if renewed_at is None else self._renew_deadline - (self._boot_time() - renewed_at)

    def _observe(self, record: LeaderElectionRecord) -> None:
        self._observed, self._observed_at = record, self._boot_time()

    def _fail(self, why: str) -> None:
        self._failure = why
        _log.warning("lease %s: %s", self._lock, why)


def _seconds(duration: Duration) -> float:
    return duration.nanoseconds / 1e9
