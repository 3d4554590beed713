"""The Events of one pod, by any writer, asked for when somebody wants to see them."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

import msgspec

from extender.client.client import Client
from extender.client.errors import ApiError, Forbidden
from extender.client.paths import path
from extender.values import limits

SECONDS: Final = 3.0
"""The time for an answer."""
FRESH_SECONDS: Final = 5.0
"""The time for which an answer is given again: an API server reads all of a namespace to find it."""
AT_ONE_TIME: Final = 4


@final
class PodEvent(msgspec.Struct, frozen=True):
    """One Event about a pod, with the time of its last occurrence in RFC 3339."""

    time: str
    type: str
    reason: str
    message: str
    source: str
    """The component that wrote it."""
    count: int


@final
class PodEvents(msgspec.Struct, frozen=True):
    """The newest Events about a pod, newest first."""

    items: tuple[PodEvent, ...] = ()
    left_out: bool = False
    """Whether there are more."""
    why_none: str = ""
    """Why they are not known; empty if they are."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: str | None = None
    cont: str = msgspec.field(default="", name="continue")


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: str | None = None


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel"):
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

    def shown(self) -> PodEvent:
        series = self.series or _Series()
        times = (
            series.last_observed_time,
            self.last_timestamp,
            self.event_time,
            self.first_timestamp,
            self.metadata.creation_timestamp,
        )
        return PodEvent(
            time=next(filter(None, times), ""),
            type=self.type,
            reason=self.reason,
            message=self.message,
            source=self.reporting_component or (self.source or _Source()).component,
            count=max(series.count, self.count or 1),
        )


class _EventList(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    items: list[_Event] | None = None


@final
class EventReader:
    """Asks an API server for the Events of pods. State: the last answers, and how many questions are under way."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._now = now
        self._asking = asyncio.Semaphore(AT_ONE_TIME)
        self._kept: OrderedDict[tuple[str, str], tuple[float, PodEvents]] = OrderedDict()

    async def of(self, namespace: str, name: str) -> PodEvents:
        """Returns the Events about the pod, or why they are not known."""
        async with self._asking:
            kept = self._kept.get((namespace, name))
            if kept is not None and kept[0] > self._now():
                return kept[1]
            found = await self._asked(namespace, name)
            self._kept.pop((namespace, name), None)
            self._kept[namespace, name] = self._now() + FRESH_SECONDS, found
            if len(self._kept) > limits.EVENT_LISTS_KEPT:
                self._kept.popitem(last=False)
            return found

    async def _asked(self, namespace: str, name: str) -> PodEvents:
        about = {"involvedObject.kind": "Pod", "involvedObject.namespace": namespace, "involvedObject.name": name}
        params = {
            "fieldSelector": ",".join(f"{field}={value}" for field, value in about.items()),
            "limit": str(limits.EVENTS_LISTED),
        }
        try:
            where = path("", "v1", "events", namespace=namespace)
            async with asyncio.timeout(SECONDS):
                body = await self._client.request(
                    "GET", where, params=params, timeout=SECONDS, max_bytes=limits.EVENTS_BYTES
                )
            listed = msgspec.json.decode(body, type=_EventList)
        except TimeoutError:
            return PodEvents(why_none=f"the API server has not answered within {SECONDS:g} s")
        except Forbidden:
            return PodEvents(why_none="the service may not list events: its role lacks the right")
        except (ApiError, ValueError) as exc:
            return PodEvents(why_none=f"the API server does not list them: {exc}")
        events = sorted((each.shown() for each in listed.items or ()), key=lambda each: each.time, reverse=True)
        return PodEvents(
            tuple(events[: limits.EVENTS_SHOWN]),
            left_out=len(events) > limits.EVENTS_SHOWN or bool(listed.metadata.cont),
        )
