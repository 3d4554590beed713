"""EventRecorder: creates the first event of its kind, makes it a series with the second, and counts further ones.

Upstream: client-go/tools/events, event_broadcaster.go, event_recorder.go.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from extender.client.client import STRATEGIC_MERGE_PATCH, Client
from extender.client.errors import AlreadyExists, ApiError, Fenced, NotFound
from extender.client.paths import path
from extender.engine.framework import CallError, RecordEvent
from extender.values import limits
from extender.values.golang.times import rfc3339

FINISH_INTERVAL: Final = 360.0
"""Seconds without an event after which a series ends; the next event begins a new one."""
REFRESH_INTERVAL: Final = 1800.0
"""Seconds between two writes of the counts of series."""
ATTEMPTS: Final = 12
PAUSE: Final = 10.0

_log = logging.getLogger(__name__)


@final
@dataclass(slots=True)
class _Recorded:
    """An event on the API server."""

    event: RecordEvent
    name: str
    first_observed: str
    last: float
    """The event loop's time of the last event."""
    last_observed: str
    count: int = 1


@final
class EventRecorder:
    """Records events. State: those of the last minutes, by all but the note."""

    def __init__(self, client: Client, *, now: Callable[[], datetime], instance: str) -> None:
        self._client = client
        self._now = now
        self._instance = instance
        self._recorded: dict[tuple[object, ...], _Recorded] = {}
        self._last_name = 0

    async def record(self, event: RecordEvent) -> None:
        """Writes the event, or counts it. Raises CallError."""
        now = self._now()
        now_text, loop_time = rfc3339(now, "microseconds"), asyncio.get_running_loop().time()
        key = event.regarding, event.type, event.reason, event.action, event.reporting_controller, event.related
        recorded = self._recorded.get(key)
        if recorded is None:
            if len(self._recorded) >= limits.EVENTS_KNOWN:
                del self._recorded[next(iter(self._recorded))]
            recorded = self._recorded[key] = _Recorded(event, self._name(event, now), now_text, loop_time, now_text)
            await self._try(recorded)
            return
        # From now on the last one to be forgotten.
        self._recorded[key] = self._recorded.pop(key)
        recorded.count += 1
        recorded.last, recorded.last_observed = loop_time, now_text
        if recorded.count == 2:
            await self._try(recorded)

    async def keep(self) -> None:
        """Ends series, and writes the counts of those that go on, until cancelled."""
        loop = asyncio.get_running_loop()
        refreshed = loop.time()
        while True:
            await asyncio.sleep(FINISH_INTERVAL)
            is_refresh = loop.time() - refreshed >= REFRESH_INTERVAL
            if is_refresh:
                refreshed = loop.time()
            for key, recorded in list(self._recorded.items()):
                is_over = loop.time() - recorded.last >= FINISH_INTERVAL
                if is_over:
                    del self._recorded[key]
                if recorded.count > 1 and (is_over or is_refresh):
                    try:
                        await self._try(recorded)
                    except CallError as exc:
                        _log.info("an event series was not written: %s", exc)

    async def _try(self, recorded: _Recorded) -> None:
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(PAUSE)
            try:
                await self._write(recorded)
                return
            except ApiError as exc:
                refusal = exc
                if attempt and isinstance(exc, AlreadyExists):
                    return  # the answer to an earlier attempt was lost
                # What the API server has refused it would refuse again. Only a lost request is worth another try.
                if exc.status or isinstance(exc, Fenced):
                    break
        raise CallError(refusal.message) from refusal

    async def _write(self, recorded: _Recorded) -> None:
        events = path("events.k8s.io", "v1", "events", namespace=recorded.event.namespace)
        if recorded.count > 1:
            with suppress(NotFound):  # the event has expired, so that the series goes on in a new one
                await self._client.patch(
                    f"{events}/{recorded.name}", {"series": _series(recorded)}, STRATEGIC_MERGE_PATCH
                )
                return
        await self._client.create(events, self._body(recorded))

    def _name(self, event: RecordEvent, now: datetime) -> str:
        # Upstream names an event by the nanosecond; our clock may not tell two of them apart.
        self._last_name = max(self._last_name + 1, int(now.timestamp() * 1e6) * 1000)
        return f"{event.regarding.name}.{self._last_name:x}"

    def _body(self, recorded: _Recorded) -> dict[str, Any]:
        event = recorded.event
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": recorded.name, "namespace": event.namespace},
            "eventTime": recorded.first_observed,
            "reportingController": event.reporting_controller,
            "reportingInstance": f"{event.reporting_controller}-{self._instance}",
            "action": event.action,
            "reason": event.reason,
            "type": event.type,
            "note": _cut(event.note),
            "regarding": event.regarding,
        }
        if event.related is not None:
            body["related"] = event.related
        if recorded.count > 1:
            body["series"] = _series(recorded)
        return body


def _series(recorded: _Recorded) -> dict[str, Any]:
    return {"count": recorded.count, "lastObservedTime": recorded.last_observed}


def _cut(note: str) -> str:
    """Returns the note, cut between two characters if it is too long (schedule_one.go, truncateMessage)."""
    text, max_bytes = note.encode(), limits.EVENT_NOTE_BYTES
    return note if len(text) <= max_bytes else text[: max_bytes - 4].decode("utf-8", "ignore") + " ..."
