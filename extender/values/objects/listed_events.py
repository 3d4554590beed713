"""Events about one object as people are shown them, from any of the forms in which they are written."""

from collections.abc import Iterable
from typing import final

import msgspec

from extender.values import limits


@final
class ListedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An Event, with the times of its first and its last occurrence in RFC 3339."""

    time: str
    type: str
    reason: str
    message: str
    source: str
    """The component that wrote it."""
    count: int
    first: str = ""


@final
class ListedEvents(msgspec.Struct, frozen=True, rename="camel"):
    """The newest Events about an object, newest first."""

    items: tuple[ListedEvent, ...] = ()
    left_out: bool = False
    """Whether there are more."""
    why_none: str = ""
    """Why they are not known; empty if they are."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: str | None = None


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: str | None = None


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


@final
class WrittenEvent(msgspec.Struct, frozen=True, rename="camel"):
    """The shown fields of v1.Event."""

    metadata: _Metadata = _Metadata()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None
    source: _Source | None = None
    reporting_component: str = ""

    def listed(self) -> ListedEvent:
        series = self.series or _Series()
        first = self.first_timestamp, self.event_time, self.metadata.creation_timestamp
        last = series.last_observed_time, self.last_timestamp, self.event_time, *first
        return ListedEvent(
            time=next(filter(None, last), ""),
            type=self.type,
            reason=self.reason,
            message=self.message,
            source=self.reporting_component or (self.source or _Source()).component,
            count=max(series.count, self.count or 1),
            first=next(filter(None, first), ""),
        )


def newest(events: Iterable[WrittenEvent], *, more: bool = False) -> ListedEvents:
    """Returns the newest events; `more` if there are others that are not among these."""
    newest_first = sorted((event.listed() for event in events), key=lambda event: event.time, reverse=True)
    return ListedEvents(
        tuple(newest_first[: limits.EVENTS_SHOWN]), left_out=more or len(newest_first) > limits.EVENTS_SHOWN
    )
