"""Events: one object for what happens again and again; losing one harms nobody."""

import asyncio
from typing import Any

import pytest

from extender.client.writes.dispatcher import ApiDispatcher
from extender.client.writes.event_recorder import ATTEMPTS
from extender.engine.framework import CallError, RecordEvent, reference_to
from extender.rules.api_resources import EVENTS
from extender.testing import make_pod
from extender.values import limits
from tests.extender.client.embedded_server import Server
from tests.kit.faults import Fault
from tests.kit.faults.answers import commit_then_drop, refused, status

POD = make_pod("p").uid("1").obj()


@pytest.fixture
def server() -> Server:
    return Server()


def event(note: str = "0/1 nodes are available", reason: str = "FailedScheduling") -> RecordEvent:
    return RecordEvent(reference_to(POD), "Warning", reason, "Scheduling", note, "default-scheduler")


def record(server: Server, *events: RecordEvent, seconds_between: float = 1) -> None:
    async def story(dispatcher: ApiDispatcher) -> None:
        for one in events:
            await dispatcher.perform(one)
            await asyncio.sleep(seconds_between)

    server.run(story)


def recorded(server: Server) -> list[dict[str, Any]]:
    return [stored for stored in server.api.list(EVENTS) if stored["reason"] in ("FailedScheduling", "Scheduled")]


def test_event_names_reporter_action_reason_and_object(server: Server) -> None:
    record(server, event())

    (obj,) = recorded(server)
    assert (obj["action"], obj["reason"], obj["type"]) == ("Scheduling", "FailedScheduling", "Warning")
    assert (obj["reportingComponent"], obj["reportingInstance"]) == ("default-scheduler", "default-scheduler-host")
    assert obj["message"] == "0/1 nodes are available"
    assert obj["involvedObject"] == {"kind": "Pod", "namespace": "default", "name": "p", "uid": "1", "apiVersion": "v1"}
    assert obj["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert obj["metadata"]["name"] == f"p.{1767225600 * 10**9:x}"


def test_repeated_event_becomes_a_series(server: Server) -> None:
    """The second is written at once, further ones are counted; the note stays that of the first."""
    record(server, event("first"), event("second"), event("third"))

    (obj,) = recorded(server)
    assert (obj["message"], obj["series"]["count"]) == ("first", 2)
    assert (server.count("create", "events"), server.count("patch", "events")) == (1, 1)


def test_of_too_many_events_the_one_without_another_for_longest_is_forgotten(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler that binds hundreds of pods a second would keep an event of each of them for minutes."""
    monkeypatch.setattr(limits, "EVENTS_KNOWN", 2)

    reasons = ("Scheduled", "FailedScheduling", "Scheduled", "Other", "Scheduled", "FailedScheduling")
    record(server, *(event(reason=reason) for reason in reasons))

    counts = [(obj["reason"], (obj.get("series") or {}).get("count", 1)) for obj in recorded(server)]
    assert sorted(counts) == [("FailedScheduling", 1), ("FailedScheduling", 1), ("Scheduled", 2)]


def test_events_of_different_reasons_are_separate(server: Server) -> None:
    record(server, event(), event(reason="Scheduled"))

    assert len(recorded(server)) == 2


async def test_a_series_that_has_ended_is_written_and_forgotten(server: Server) -> None:
    """The next event of the kind begins a new one."""
    async with server.dispatching() as dispatcher:
        for _ in range(3):
            await dispatcher.perform(event())
        await asyncio.sleep(1000)
        await dispatcher.perform(event("much later"))

    assert recorded(server)[0]["series"]["count"] == 3
    assert server.count("create", "events") == 2


async def test_a_series_whose_event_has_expired_goes_on_in_a_new_one(server: Server) -> None:
    async with server.dispatching() as dispatcher:
        await dispatcher.perform(event())
        for obj in recorded(server):
            server.delete(obj["metadata"]["name"], EVENTS)
        await dispatcher.perform(event())

    (obj,) = recorded(server)
    assert obj["series"]["count"] == 2


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        pytest.param(refused(), 3, id="connections are refused"),
        pytest.param(commit_then_drop(), 1, id="the answer is lost"),
    ],
)
def test_event_that_could_not_be_written_at_first_is_recorded_once(fault: Any, times: int) -> None:
    server = Server(Fault(fault, verb="create", resource="events", times=times))

    record(server, event())

    assert server.count("create", "events") == times + 1
    assert len(recorded(server)) == 1


async def test_event_is_given_up_after_the_last_attempt() -> None:
    server = Server(Fault(refused(), verb="create", resource="events", times=None))
    async with server.dispatching() as dispatcher:
        with pytest.raises(CallError):
            await dispatcher.perform(event())

    assert asyncio.get_running_loop().time() == (ATTEMPTS - 1) * 10
    assert server.count("create", "events") == ATTEMPTS


async def test_refused_event_is_not_tried_again() -> None:
    server = Server(Fault(status(403), verb="create", resource="events", times=None))
    async with server.dispatching() as dispatcher:
        with pytest.raises(CallError):
            await dispatcher.perform(event())

    assert server.count("create", "events") == 1


def test_a_long_note_is_cut(server: Server) -> None:
    record(server, event("x" * 1025))

    (obj,) = recorded(server)
    assert obj["message"] == "x" * 1020 + " ..."
