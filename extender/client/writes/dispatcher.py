"""ApiDispatcher: performs all writes to the API server, in the order of their lanes.

Upstream: pkg/scheduler/backend/api_dispatcher/api_dispatcher.go.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, final

from extender.client.client import Client
from extender.client.writes.attempts import Attempts
from extender.client.writes.call_queue import CLOSED, EVENTS, URGENT, CallQueue, Lane, Ticket
from extender.client.writes.event_recorder import EventRecorder
from extender.engine.framework import ApiCall, CallError, CallSkipped, CallUnknown, RecordEvent
from extender.values.metrics import Histogram, exponential

T = TypeVar("T")

CALL_TYPES: Final[Mapping[str, str]] = {"BindPod": "pod_binding", "PatchPodStatus": "pod_status_patch"}
"""Upstream's names for the writes that its dispatcher has. The others, which upstream performs directly, are named
after their class.
"""

AT_A_TIME: Final[Mapping[Lane, int]] = {Lane.URGENT: 64, Lane.ORDINARY: 32, Lane.EVENTS: 4}
"""The most calls that are performed at the same time. Each lane has its own limit: while the API server is away,
bindings in limbo fill theirs, and must not keep other calls from failing.
"""

_log = logging.getLogger(__name__)


@final
class ApiDispatcher:
    """Performs calls while `run` runs; implements the contract `Dispatcher`.

    State: the calls that wait or are being performed, and the events that were recorded lately.
    """

    def __init__(
        self,
        client: Client,
        *,
        rng: random.Random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        instance: str = "",
    ) -> None:
        """Sends nothing before `run`; the client has a fence against writing when it must not.

        `instance` tells this process from others that record events under the same name, such as the host's name.
        """
        self._attempts = Attempts(client, rng=rng, now=now)
        self._recorder = EventRecorder(client, now=now, instance=instance)
        self._queue = CallQueue()
        self._num_in_flight = dict.fromkeys(Lane, 0)
        self.durations: Final = Histogram(
            "scheduler_async_api_call_execution_duration_seconds",
            "Seconds that a write to the API server took, its repetitions included.",
            ("call_type", "result"),
            exponential(0.001, 2, 15),
        )
        """The durations of all calls but events, by call type and result."""
        self._workers: asyncio.TaskGroup | None = None
        """Begins what performs calls, while `run` runs."""
        self._idle_workers: list[asyncio.Future[None]] = []
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def run(self) -> None:
        """Performs calls until cancelled, which cuts off calls in flight; see `drain`."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._recorder.keep())
                self._workers = group
                try:
                    self._begin()
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._workers = None
        finally:
            lost = len(self._queue.lanes[EVENTS])
            if lost:
                _log.warning("%d events were not recorded: %s", lost, CLOSED)
            self._queue.close()
            self._note_idleness()

    async def perform(self, call: ApiCall[T]) -> T:
        """Performs the call, unless a cancelled caller withdraws it before it was begun. Raises CallError."""
        outcome = self._add(call)
        try:
            result: T = await outcome
        except asyncio.CancelledError:
            self._queue.withdraw(outcome)
            self._note_idleness()
            raise
        finally:
            # A failure's traceback has this frame, and those of the callers: with a name here it would hold itself.
            del outcome
        return result

    def submit(self, call: ApiCall[T]) -> "asyncio.Future[T | None]":
        """Performs the call in the background, and logs a failure."""
        done: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def finish(outcome: "asyncio.Future[T]") -> None:
            failure = outcome.exception()
            if failure is not None and not isinstance(failure, CallSkipped):
                _log.warning("%s: %s", type(call).__name__, failure)
            if not done.done():
                done.set_result(None if failure is not None else outcome.result())

        self._add(call).add_done_callback(finish)
        return done

    async def drain(self, max_wait: float) -> bool:
        """Waits until all calls are done, but at most this many seconds; returns whether they are."""
        try:
            async with asyncio.timeout(max_wait):
                await self._is_idle.wait()
        except TimeoutError:
            return False
        return True

    @property
    def in_limbo(self) -> Mapping[str, float]:
        """Pod UID -> the event loop's time since when it is unknown whether the pod is bound."""
        return self._attempts.in_limbo

    def pending(self) -> Counter[str]:
        """Returns the number of waiting calls by call type, events not counted."""
        return Counter(call_type_of(call) for call in self._queue.waiting() if not isinstance(call, RecordEvent))

    def _add(self, call: ApiCall[T]) -> "asyncio.Future[T]":
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.add(call, outcome)
        self._note_idleness()
        self._begin()
        return outcome

    def _begin(self) -> None:
        """Begins a call that may begin, once this turn of the event loop is over: others may replace it until then."""
        if self._workers is None or self._next_lane() is None:
            return
        if self._idle_workers:
            self._idle_workers.pop().set_result(None)
        else:
            self._workers.create_task(self._work())

    def _note_idleness(self) -> None:
        if self._queue.is_empty:
            self._is_idle.set()
        else:
            self._is_idle.clear()

    def _next_lane(self) -> Lane | None:
        """Returns the first lane with a call that may begin."""
        for lane, waiting in self._queue.lanes.items():
            if waiting and self._num_in_flight[lane] < AT_A_TIME[lane]:
                return None if lane is EVENTS and self._queue.lanes[URGENT] else lane
        return None

    async def _work(self) -> None:
        """Performs one call after the other, and is idle while none may begin."""
        while True:
            while (lane := self._next_lane()) is not None:
                # No name for the ticket here: it would outlive the call, with a failure and the frames of its caller.
                await self._perform(lane, self._queue.pop(lane))
            work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_workers.append(work)
            await work

    async def _perform(self, lane: Lane, ticket: Ticket) -> None:
        self._num_in_flight[lane] += 1
        self._begin()
        call, succeeded, now = ticket.call, False, asyncio.get_running_loop().time
        began = now()
        try:
            result: Any = None
            if lane is EVENTS and isinstance(call, RecordEvent):
                await self._recorder.record(call)
            else:
                result = await self._attempts.perform(call)
            succeeded = True
            if not ticket.outcome.done():
                ticket.outcome.set_result(result)
        except asyncio.CancelledError:
            if not ticket.outcome.done():
                ticket.outcome.set_exception(CallUnknown(CLOSED))
            raise
        except Exception as exc:
            if not isinstance(exc, CallError):
                _log.exception("performing %s", type(call).__name__)
            if not ticket.outcome.done():
                ticket.outcome.set_exception(exc)
            else:
                _log.info("a call whose caller had gone: %s", exc)
        finally:
            if lane is not EVENTS:
                self.durations.observe(now() - began, call_type_of(call), "success" if succeeded else "error")
            self._num_in_flight[lane] -= 1
            self._queue.finish(ticket, succeeded=succeeded)
            self._note_idleness()
            del ticket  # as in `perform`


def call_type_of(call: ApiCall[Any]) -> str:
    """Returns the name of the call in metrics."""
    name = type(call).__name__
    return CALL_TYPES.get(name) or "".join(
        f"_{letter.lower()}" if letter.isupper() else letter for letter in name
    ).lstrip("_")
