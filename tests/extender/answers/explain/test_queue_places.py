"""Where pods wait, in the words of people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest

from extender.answers.explain import queue_places as waiting
from extender.answers.explain.queue_places import WallClock
from extender.answers.parts import PodName
from extender.answers.types import Queue, QueuePlace, WakesOn
from extender.engine.framework import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from extender.testing import PodBuilder, make_pod
from extender.values.golang.times import rfc3339
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from tests.extender.engine.queue.clocked_queue import ClockedQueue, open_gate_named
from tests.kit.tables import cases

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT_FIRST = "2026-01-01T11:00:00Z"
REGISTERED = {
    "default-scheduler": {
        "Fit": [
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)),
            ClusterEventWithHint(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
        ],
        "Taints": [
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT))
        ],
        "Gate": [ClusterEventWithHint(ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL))],
    }
}
A_MESSAGE = "0/3 nodes are available: 3 Insufficient cpu."


def at_noon(clocked: ClockedQueue) -> WallClock:
    """The queue was made an hour before noon, whatever has passed on its clock since."""
    clocked.now = 1000.0 + 3600
    return WallClock(NOON, clocked.now)


def view(clocked: ClockedQueue, registered: Mapping[str, waiting.Registered] = REGISTERED) -> Queue:
    return waiting.queue_view(clocked.queue, registered, at_noon(clocked))


def place(clocked: ClockedQueue, name: str, registered: Mapping[str, waiting.Registered] = REGISTERED) -> QueuePlace:
    queue_place = waiting.queue_place(clocked.queue, f"default/{name}", registered, at_noon(clocked))
    assert queue_place is not None
    return queue_place


def a_pod(name: str) -> PodBuilder:
    return make_pod(name).uid(f"uid-{name}")


def refused_with(pod: Pod, message: str) -> Pod:
    conditions = [
        Condition(type="Ready", status="True", message="no"),
        Condition(type="PodScheduled", status="False", message=message),
    ]
    return replaced(pod, status=replaced(pod.status, conditions=conditions))


def everywhere() -> ClockedQueue:
    """A pod in each part of the queue, and two that are to be tried."""
    clocked = ClockedQueue(gate=open_gate_named)
    clocked.add(a_pod("tried"))
    clocked.pop()
    clocked.refused(a_pod("refused"), "Fit")
    clocked.refused(a_pod("pausing"))
    clocked.add(a_pod("gated").label(gate="closed"), a_pod("later"), a_pod("first").priority(5))
    return clocked


def test_queue_lists_every_pod_once_in_the_order_of_tries() -> None:
    queue = view(everywhere())

    assert [(item.pod.name, item.queue) for item in queue.items] == [
        ("tried", "inFlight"),
        ("first", "active"),
        ("later", "active"),
        ("pausing", "backoff"),
        ("refused", "unschedulable"),
        ("gated", "gated"),
    ]
    assert queue.counts == {"active": 2, "backoff": 1, "unschedulable": 1, "gated": 1, "inFlight": 1}
    assert queue.deciding


@pytest.mark.parametrize("name", ["tried", "first", "later", "pausing", "refused", "gated"])
def test_place_of_one_pod_equals_its_place_in_the_list(name: str) -> None:
    clocked = everywhere()

    (among_all,) = (item for item in view(clocked).items if item.pod.name == name)
    assert place(clocked, name) == among_all


def test_a_pod_that_does_not_wait_has_no_place() -> None:
    clocked = everywhere()

    assert waiting.queue_place(clocked.queue, "default/nobody", REGISTERED, at_noon(clocked)) is None


def test_only_the_pods_that_are_tried_next_are_in_an_order() -> None:
    positions = {item.pod.name: item.position for item in view(everywhere()).items}

    assert positions == {"tried": None, "first": 1, "later": 2, "pausing": None, "refused": None, "gated": None}


def test_a_pause_has_an_end() -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("pausing"))

    entry = place(clocked, "pausing")

    assert (entry.attempts, entry.since, entry.backoff_ends) == (1, AT_FIRST, "2026-01-01T11:00:01Z")


def test_the_time_for_which_a_pod_waits_goes_on_over_its_attempts() -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("refused"), "Fit")
    for _ in range(3):
        clocked.now += 600
        clocked.queue.activate([*clocked.store.values()])
        info = clocked.pop()
        info.set_rejector_plugins(["Fit"])
        clocked.queue.add_unschedulable_if_not_present(info)

    entry = place(clocked, "refused")

    assert (entry.attempts, entry.since) == (4, AT_FIRST)


def test_place_of_a_refused_pod_names_refusing_plugins_and_waking_events() -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("refused"), "Taints", "Fit")

    entry = place(clocked, "refused")

    assert entry.refused_by == ("Fit", "Taints")
    assert entry.wakes_on == (
        WakesOn(event="Node/Add", plugins=("Fit", "Taints")),
        WakesOn(event="Node/UpdateNodeAllocatable", plugins=("Fit",)),
        WakesOn(event="AssignedPod/Delete", plugins=("Fit",)),
        WakesOn(event="Node/UpdateNodeTaint", plugins=("Taints",)),
    )


def test_place_of_a_pending_pod_includes_events_of_the_pending_plugin() -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("refused"), "Fit", pending=("Gate",))

    entry = place(clocked, "refused")

    assert entry.refused_by == ("Fit", "Gate")
    assert "UnschedulablePod/UpdatePodLabel" in {wake.event for wake in entry.wakes_on}


def test_place_of_a_gated_pod_names_the_gating_plugin() -> None:
    clocked = ClockedQueue(gate=open_gate_named)
    clocked.add(a_pod("gated").label(gate="closed"))

    entry = place(clocked, "gated")

    assert (entry.queue, entry.gated_by, entry.attempts) == ("gated", "Gate", 0)
    assert entry.wakes_on == (WakesOn(event="UnschedulablePod/UpdatePodLabel", plugins=("Gate",)),)


def test_activated_pod_waits_for_no_event() -> None:
    clocked = ClockedQueue()
    info = clocked.refused(a_pod("again"), "Fit")
    clocked.queue.activate([info.pod])

    entry = place(clocked, "again")

    assert (entry.queue, entry.refused_by, entry.wakes_on) == ("active", ("Fit",), ())


@cases(
    "resource, action, labels",
    ("anything", EventResource.WILDCARD, ActionType.ALL, ["*"]),
    ("one action", EventResource.NODE, ActionType.ADD, ["Node/Add"]),
    ("all updates", EventResource.CSI_NODE, ActionType.UPDATE, ["storage.k8s.io/CSINode/Update"]),
    ("whatever happens to nodes", EventResource.NODE, ActionType.ALL, ["Node/All"]),
    (
        "several actions",
        EventResource.NODE,
        ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
        ["Node/Add", "Node/UpdateNodeLabel"],
    ),
    ("all updates among others", EventResource.POD, ActionType.ADD | ActionType.UPDATE, ["Pod/Add", "Pod/Update"]),
)
def test_events_have_upstreams_names(resource: EventResource, action: ActionType, labels: Sequence[str]) -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("refused"), "Mine")
    registered = {"default-scheduler": {"Mine": [ClusterEventWithHint(ClusterEvent(resource, action))]}}

    entry = place(clocked, "refused", registered)

    assert [wake.event for wake in entry.wakes_on] == labels


def test_plugins_and_profiles_that_registered_nothing_are_no_mistake() -> None:
    clocked = ClockedQueue()
    clocked.refused(a_pod("refused"), "Unheard")

    for registered in (REGISTERED, {}):
        entry = place(clocked, "refused", registered)

        assert (entry.refused_by, entry.wakes_on) == (("Unheard",), ())


def test_the_scheduler_is_quoted() -> None:
    clocked = ClockedQueue()
    clocked.queue.add(refused_with(a_pod("again").obj(), A_MESSAGE))
    clocked.queue.add(a_pod("new").obj())

    assert {item.pod.name: item.message for item in view(clocked).items} == {"again": A_MESSAGE, "new": ""}


def test_a_long_queue_is_counted_whole_and_shown_in_part() -> None:
    clocked = ClockedQueue(gate=open_gate_named)
    clocked.refused(a_pod("refused"), "Fit")
    clocked.refused(a_pod("pausing"))
    for number in range(5010):
        clocked.queue.add(a_pod(f"pod-{number}").obj())

    queue = view(clocked)

    assert len(queue.items) == 5000
    assert {item.queue for item in queue.items} == {"active"}
    assert queue.counts["active"] == 5010
    assert (queue.counts["backoff"], queue.counts["unschedulable"]) == (1, 1)


# Where another scheduler decides.


def test_pods_without_a_node_are_listed_by_priority_when_there_is_no_queue() -> None:
    pods = [
        a_pod("b").obj(),
        refused_with(a_pod("a").obj(), A_MESSAGE),
        a_pod("urgent").priority(9).obj(),
        a_pod("gated").gate("wait").obj(),
    ]

    queue = waiting.without_a_queue(pods)

    assert [(item.pod.name, item.queue, item.message) for item in queue.items] == [
        ("urgent", "unschedulable", ""),
        ("a", "unschedulable", A_MESSAGE),
        ("b", "unschedulable", ""),
        ("gated", "gated", ""),
    ]
    assert (queue.counts, queue.deciding) == ({"pending": 4}, False)
    assert all(item.position is None and item.since is None for item in queue.items)


def test_long_list_of_pods_without_a_queue_is_cut_and_counted() -> None:
    queue = waiting.without_a_queue(a_pod(f"pod-{number:04}").obj() for number in range(5001))

    assert (len(queue.items), queue.counts) == (5000, {"pending": 5001})


def test_a_pod_has_its_names_and_its_priority() -> None:
    pod = a_pod("web").namespace("shop").priority(7).obj()

    assert PodName.of(pod) == PodName(namespace="shop", name="web", uid="uid-web", priority=7)
    assert PodName.of(replaced(pod, metadata=replaced(pod.metadata, namespace=""))).namespace == "default"


# Times of the event loop are told as times of the clock on the wall.


@cases(
    "loop_time, text",
    ("now", 1000.0, "2026-01-01T12:00:00Z"),
    ("before", 910.0, "2026-01-01T11:58:30Z"),
    ("to come", 1000.0 + 43_200, "2026-01-02T00:00:00Z"),
    ("whole seconds only", 1000.9, "2026-01-01T12:00:00Z"),
)
def test_both_clocks_go_at_one_pace(loop_time: float, text: str) -> None:
    assert WallClock(NOON, 1000.0).text(loop_time) == text


def test_other_time_zones_are_converted_to_utc() -> None:
    in_delhi = datetime(2026, 1, 1, 17, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    assert rfc3339(in_delhi) == "2026-01-01T12:00:00Z"
    assert WallClock(in_delhi, 0.0).text(60.0) == "2026-01-01T12:01:00Z"
