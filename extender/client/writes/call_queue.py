"""The calls that wait to be performed: which one is next, and which need not be performed at all.

Upstream: pkg/scheduler/backend/api_dispatcher/call_queue.go. It has one queue for all calls; here bindings overtake
calls for which no pod waits.
"""

import asyncio
import enum
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from extender.engine.framework import ApiCall, CallError, CallMerged, CallSkipped, RecordEvent
from extender.values import limits

MORE_RELEVANT: Final = "a more relevant call is already enqueued for this object"
OVERWRITTEN: Final = "a more relevant call was enqueued for this object"
CLOSED: Final = "api dispatcher is closed"
MERGED: Final = "a call of the same type was enqueued for this object"


class Lane(enum.IntEnum):
    """The lanes of the queue; urgent calls go first."""

    URGENT = 0
    ORDINARY = 1
    EVENTS = 2


URGENT, ORDINARY, EVENTS = Lane
"""Read as a member of the class, each would be searched by a function."""


def lane_of(call: ApiCall[Any]) -> Lane:
    return URGENT if call.is_urgent else EVENTS if isinstance(call, RecordEvent) else ORDINARY


@final
@dataclass(slots=True, eq=False)
class Ticket:
    """A call that waits or is being performed."""

    call: ApiCall[Any]
    outcome: "asyncio.Future[Any]"
    """The result of the call, or why it failed."""
    following: "Ticket | None" = None
    """The next call about the object, held back while this one is being performed."""


@final
class CallQueue:
    """The calls in order of arrival, by lane; about one pod at most one waits, and one is performed."""

    def __init__(self) -> None:
        self.lanes: dict[Lane, OrderedDict[asyncio.Future[Any], Ticket]] = {lane: OrderedDict() for lane in Lane}
        """Those that wait and are not held back, by outcome, so that a cancelled one is found among thousands."""
        self._by_object: dict[str, Ticket] = {}
        """For calls with a relevance: the one that waits or is being performed."""
        self._in_flight: set[Ticket] = set()
        self._is_closed = False

    def add(self, call: ApiCall[Any], outcome: "asyncio.Future[Any]") -> None:
        """Enqueues the call, or sets its outcome at once if it need not be performed."""
        if self._is_closed:
            outcome.set_exception(CallError(CLOSED))
        elif call.relevance:
            self._add_relevant(call, outcome)
        elif isinstance(call, RecordEvent) and len(self.lanes[EVENTS]) >= limits.EVENTS_QUEUED:
            outcome.set_exception(CallSkipped("too many events wait to be recorded"))
        else:
            self._enqueue(Ticket(call, outcome))

    def pop(self, lane: Lane) -> Ticket:
        """Returns the next call of a lane in which one waits, to be performed and then passed to `finish`."""
        _, ticket = self.lanes[lane].popitem(last=False)
        self._in_flight.add(ticket)
        return ticket

    def finish(self, ticket: Ticket, *, succeeded: bool) -> None:
        """Ends a call that was performed, so that the next one about its object is no longer held back."""
        self._in_flight.discard(ticket)
        if not ticket.call.relevance:
            return
        del self._by_object[ticket.call.object_key]
        following = ticket.following
        if following is not None and not self._is_closed:
            call = following.call.after(ticket.call) if succeeded else following.call
            self._add_relevant(call, following.outcome)

    def withdraw(self, outcome: "asyncio.Future[Any]") -> None:
        """Removes the call with this outcome unless it is being performed, because its caller was cancelled."""
        for waiting in self.lanes.values():
            withdrawn = waiting.pop(outcome, None)
            if withdrawn is not None:
                if withdrawn.call.relevance:
                    del self._by_object[withdrawn.call.object_key]
                return
        for ticket in self._in_flight:
            if ticket.following is not None and ticket.following.outcome is outcome:
                ticket.following = None

    def close(self) -> None:
        """Fails all waiting calls; events with CallSkipped, because the caller logs their number in one line."""
        self._is_closed = True
        held_back = [ticket.following for ticket in self._in_flight]
        for ticket in [*(ticket for waiting in self.lanes.values() for ticket in waiting.values()), *held_back]:
            if ticket is not None and not ticket.outcome.done():
                kind = CallSkipped if isinstance(ticket.call, RecordEvent) else CallError
                ticket.outcome.set_exception(kind(CLOSED))
        for waiting in self.lanes.values():
            waiting.clear()
        self._by_object = {key: ticket for key, ticket in self._by_object.items() if ticket in self._in_flight}

    def waiting(self) -> Iterator[ApiCall[Any]]:
        """Yields the calls that wait, including those that are held back."""
        for waiting in self.lanes.values():
            yield from (ticket.call for ticket in waiting.values())
        yield from (ticket.following.call for ticket in self._in_flight if ticket.following is not None)

    @property
    def is_empty(self) -> bool:
        """True when no call waits or is being performed."""
        return not self._in_flight and not any(self.lanes.values())

    def _add_relevant(self, call: ApiCall[Any], outcome: "asyncio.Future[Any]") -> None:
        if outcome.done():
            return  # its caller was cancelled
        first = self._by_object.get(call.object_key)
        if first is None:
            if call.is_no_op:
                outcome.set_result(None)
                return
            ticket = self._by_object[call.object_key] = Ticket(call, outcome)
            self._enqueue(ticket)
            return
        latest = first.following or first
        if call.relevance < latest.call.relevance:
            outcome.set_exception(CallSkipped(MORE_RELEVANT))
            return
        if latest in self._in_flight:
            first.following = Ticket(call, outcome)
            return
        if call.relevance == latest.call.relevance:
            call = call.merged_with(latest.call)
            _overwrite(latest, CallMerged(MERGED))
        else:
            _overwrite(latest, CallSkipped(OVERWRITTEN))
        if latest is first:
            del self.lanes[lane_of(latest.call)][latest.outcome]
            del self._by_object[call.object_key]
            self._add_relevant(call, outcome)
        else:
            first.following = Ticket(call, outcome)

    def _enqueue(self, ticket: Ticket) -> None:
        self.lanes[lane_of(ticket.call)][ticket.outcome] = ticket


def _overwrite(ticket: Ticket, why: CallSkipped) -> None:
    if not ticket.outcome.done():
        ticket.outcome.set_exception(why)
