"""The Events about one object, by any writer, asked for when somebody wants to see them."""

import asyncio
from collections.abc import Callable
from typing import Final, final

import msgspec

from extender.client.client import Client
from extender.client.errors import ApiError, Forbidden
from extender.client.paths import path
from extender.values import limits
from extender.values.caches import ExpiringCache
from extender.values.objects.listed_events import ListedEvents, WrittenEvent, newest

SECONDS: Final = 3.0
"""The time for an answer."""
FRESH_SECONDS: Final = 5.0
"""The time for which an answer is given again: an API server reads all of a namespace to find it."""
AT_ONE_TIME: Final = 4


class _ListMetadata(msgspec.Struct, frozen=True):
    cont: str = msgspec.field(default="", name="continue")


class _EventList(msgspec.Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: list[WrittenEvent] | None = None


@final
class EventReader:
    """Asks an API server for Events about objects. State: the last answers, and how many questions are under way."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self._client = client
        self._asking = asyncio.Semaphore(AT_ONE_TIME)
        self._kept = ExpiringCache[ListedEvents](FRESH_SECONDS, limits.EVENT_LISTS_KEPT, now)

    async def of(self, kind: str, namespace: str, name: str) -> ListedEvents:
        """Returns the Events about the object, or why they are not known."""
        about = kind, namespace, name
        async with self._asking:
            return self._kept.get(about) or self._kept.put(about, await self._asked(*about))

    async def _asked(self, kind: str, namespace: str, name: str) -> ListedEvents:
        about = {"involvedObject.kind": kind, "involvedObject.namespace": namespace, "involvedObject.name": name}
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
            return ListedEvents(why_none=f"the API server has not answered within {SECONDS:g} s")
        except Forbidden:
            return ListedEvents(why_none="events may not be listed: the role of who asks for them lacks the right")
        except (ApiError, ValueError) as exc:
            return ListedEvents(why_none=f"the API server does not list them: {exc}")
        return newest(listed.items or (), more=bool(listed.metadata.cont))
