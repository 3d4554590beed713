"""What plugins reach through their Handle besides the cycle."""

import asyncio
from typing import Any

from extender.engine.framework import Handle, PreFilterPlugin, PreFilterResult, RecordEvent, StateKey
from extender.engine.framework.status import SKIP
from extender.testing import make_cache, make_framework, make_node, make_pod
from tests.kit.writes import RecordedWrites

COUNTS: StateKey[dict[str, int]] = StateKey("counts")


class Counting(PreFilterPlugin):
    """Counts how often it was made, over all profiles."""

    def __init__(self, arguments: Any = None, handle: Handle | None = None) -> None:
        super().__init__(arguments, handle)
        counts = self.handle.shared(COUNTS, dict)
        counts["made"] = counts.get("made", 0) + 1

    def pre_filter(self, *_: object) -> PreFilterResult:
        return PreFilterResult(SKIP)


def test_plugins_of_all_profiles_share_what_they_ask_for() -> None:
    shared: dict[StateKey[Any], Any] = {}

    frameworks = [make_framework(Counting, shared=shared) for _ in range(2)]

    counts = [framework.shared(COUNTS, dict) for framework in frameworks]
    assert counts == [{"made": 2}, {"made": 2}]


async def test_an_event_is_recorded_in_the_name_of_the_profile() -> None:
    writes = RecordedWrites(make_cache(make_node("n")))
    framework = make_framework(dispatcher=writes)

    framework.record_event(make_pod("p").uid("1").obj(), "Normal", "Waiting", "Scheduling", "for something")
    await asyncio.sleep(0)

    (event,) = writes.calls
    assert isinstance(event, RecordEvent)
    assert (event.reporting_controller, event.reason, event.regarding.name) == ("default-scheduler", "Waiting", "p")


def test_events_are_dropped_without_an_api_server() -> None:
    framework = make_framework()

    framework.record_event(make_pod("p").obj(), "Normal", "Waiting", "Scheduling", "for something")

    assert (framework.dispatcher, framework.live) == (None, None)
