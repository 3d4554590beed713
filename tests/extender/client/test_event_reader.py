"""The Events about a pod are asked for when somebody looks: newest first, a bounded number, and not again within five
seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from extender.client.client import Client
from extender.client.event_reader import FRESH_SECONDS, SECONDS, EventReader
from extender.testing import virtual_time
from extender.values import limits
from extender.values.objects.listed_events import ListedEvents
from extender.values.targets.target import Target
from tests.extender.client.scripted import Scripted, answer, never, refusal


def listed_events(
    server: Scripted,
    story: Callable[[EventReader], Awaitable[ListedEvents]] = lambda reader: reader.of("Pod", "shop", "web"),
) -> ListedEvents:
    async def run() -> ListedEvents:
        return await story(
            EventReader(Client(Target("http://server"), transport=server), asyncio.get_running_loop().time)
        )

    return virtual_time.run(run())


def event(reason: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "reason": reason, **fields}


def listing(*events: dict[str, Any], **metadata: str) -> httpx.Response:
    return answer(200, {"kind": "EventList", "metadata": metadata, "items": list(events)})


def test_the_server_is_asked_about_this_pod_alone() -> None:
    server = Scripted(listing())

    listed_events(server)

    assert server.asked[0].url.path == "/api/v1/namespaces/shop/events"
    assert dict(server.asked[0].url.params) == {
        "fieldSelector": "involvedObject.kind=Pod,involvedObject.namespace=shop,involvedObject.name=web",
        "limit": "500",
    }


def test_the_last_time_is_that_of_any_form_of_event_and_the_newest_comes_first() -> None:
    events = listed_events(
        Scripted(
            listing(
                event("Created"),
                event("Pulled", lastTimestamp="2026-01-01T00:00:02Z", count=3, source={"component": "kubelet"}),
                event(
                    "Failed",
                    eventTime="2026-01-01T00:00:01.000000Z",
                    reportingComponent="default-scheduler",
                    count=None,
                ),
                event("Waits", series={"count": 9, "lastObservedTime": "2026-01-01T00:00:03.000000Z"}),
            )
        )
    )

    rows = [(item.reason, item.count, item.source) for item in events.items]
    assert rows == [("Waits", 9, ""), ("Pulled", 3, "kubelet"), ("Failed", 1, "default-scheduler"), ("Created", 1, "")]
    assert not events.left_out


@pytest.mark.parametrize("more", [{"number": limits.EVENTS_SHOWN + 1}, {"number": 1, "continue": "here"}])
def test_newest_events_are_shown_with_a_note_that_there_are_more(more: dict[str, Any]) -> None:
    number = more.pop("number")

    events = listed_events(Scripted(listing(*(event("Again", count=number) for _ in range(number)), **more)))

    assert len(events.items) == min(number, limits.EVENTS_SHOWN)
    assert events.left_out


def test_within_five_seconds_the_same_answer_is_given_again() -> None:
    server = Scripted(listing(event("First")), listing(event("Second")))

    async def story(reader: EventReader) -> ListedEvents:
        await reader.of("Pod", "shop", "web")
        await asyncio.sleep(FRESH_SECONDS - 1)
        assert (await reader.of("Pod", "shop", "web")).items[0].reason == "First"
        await asyncio.sleep(2)
        return await reader.of("Pod", "shop", "web")

    assert listed_events(server, story).items[0].reason == "Second"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(
            refusal(403, "Forbidden"),
            "events may not be listed: the role of who asks for them lacks the right",
            id="forbidden",
        ),
        pytest.param(never, f"the API server has not answered within {SECONDS:g} s", id="silent"),
        pytest.param(answer(200, {"items": [{"count": "many"}]}), "the API server does not list them", id="unreadable"),
        pytest.param(refusal(404, "NotFound"), "the API server does not list them", id="not served"),
    ],
)
def test_reason_for_missing_events_is_reported(reply: Any, why: str) -> None:
    events = listed_events(Scripted(reply))

    assert events.items == ()
    assert why in events.why_none
