"""Where a pod goes after an attempt or an event, and when it is tried again."""

import asyncio

import pytest

from extender.engine.framework import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.engine.framework.events import EVENT_UNSCHEDULABLE_TIMEOUT, EVENT_UNSCHEDULED_POD_UPDATE
from extender.engine.queue import AlreadyQueuedError, SchedulingQueue
from extender.testing import make_node, make_pod
from tests.extender.engine.queue.clocked_queue import (
    NODE_ADD,
    POD_LABEL,
    PVC_ADD,
    ClockedQueue,
    always,
    broken,
    never,
    open_gate_named,
)
from tests.kit.tables import cases

NODE = make_node("n").obj()


# Which pod is next.


def test_a_pod_that_cannot_be_put_into_an_order_comes_last() -> None:
    """A stranger's QueueSort that raises for some, or answers nonsense, keeps nobody else from being tried."""
    nonsense: dict[str, object] = {"odd": None, "even": (1,)}
    queue = SchedulingQueue(
        lambda pod, _: nonsense[pod.name],  # type: ignore[arg-type, return-value]
        {},
        lambda pod, _: "",
        now=lambda: 1000.0,
        pod_lister=lambda key: None,
    )
    for name in ("odd", "raises", "even"):
        queue.add(make_pod(name).obj())

    assert [info.pod.name for _ in range(3) if (info := queue.pop_nowait()) is not None] == ["even", "odd", "raises"]


def test_a_pod_that_is_requeued_as_failed_backs_off_wherever_it_is() -> None:
    """What is to be done about a failure has gone wrong itself: before the pod was back in the queue, or after that."""
    clocked = ClockedQueue()
    before = clocked.in_flight(make_pod("before"))
    after = clocked.refused(make_pod("after"), "Fit")

    clocked.queue.requeue_failed(before)
    clocked.queue.requeue_failed(after)

    assert clocked.places() == {"before": "error backoff", "after": "error backoff"}


def test_each_unforeseen_error_lengthens_the_backoff() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a"))
    pauses = []
    for _ in range(3):
        info = clocked.pop()
        clocked.queue.requeue_failed(info)
        end = clocked.queue.backoff_time(info)
        assert end is not None
        pauses.append(round(end - clocked.now))
        clocked.now = end + 1
        clocked.queue.flush_backoff_q_completed()

    assert pauses == [1, 2, 4]


def test_the_most_important_pod_is_tried_first_and_of_equals_the_one_that_waits_longest() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("first").priority(1), make_pod("second").priority(1), make_pod("important").priority(9))

    assert [clocked.pop().pod.name for _ in range(3)] == ["important", "first", "second"]


def test_a_pod_whose_priority_changed_moves_up() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a").priority(5), make_pod("b").priority(1))

    old, new = (make_pod("b").priority(priority).obj() for priority in (1, 9))
    clocked.queue.update(old, new, [EVENT_UNSCHEDULED_POD_UPDATE])

    assert clocked.pop().pod.name == "b"


def test_a_pod_that_was_refused_goes_behind_its_equals() -> None:
    clocked = ClockedQueue(max_backoff=0)
    clocked.add(make_pod("a"), make_pod("b"))
    first = clocked.pop()
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    clocked.refuse(first, "Fit")

    assert [clocked.pop().pod.name for _ in range(2)] == ["b", "a"]


def test_with_an_empty_active_q_a_backoff_is_cut_short() -> None:
    """Pods whose pauses end in the same second come in trying order."""
    clocked = ClockedQueue()
    for name, priority in (("small", 1), ("great", 9)):
        clocked.refused(make_pod(name).priority(priority), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    assert clocked.places() == {"small": "backoff", "great": "backoff"}

    names = [clocked.pop().pod.name for _ in range(2)]

    assert names == ["great", "small"]
    assert clocked.queue.incoming["active", "PopFromBackoffQ"] == 2


def test_a_failed_pod_backs_off_to_the_end() -> None:
    """Whatever went wrong may still be wrong."""
    clocked = ClockedQueue()
    clocked.refused(make_pod("a"))

    assert clocked.places() == {"a": "error backoff"}
    assert clocked.queue.pop_nowait() is None


def test_attempts_that_go_on_come_before_others_and_in_their_order() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a"), make_pod("b"), make_pod("new").priority(1000))
    first, second = (clocked.queue.pop_specific(make_pod(name).obj()) for name in "ab")
    assert first is not None and second is not None

    clocked.queue.resume(second)
    clocked.queue.resume(first)

    assert [clocked.pop().pod.name for _ in range(3)] == ["b", "a", "new"]


async def test_pop_waits_for_a_pod() -> None:
    clocked = ClockedQueue()
    asyncio.get_running_loop().call_later(60, lambda: clocked.add(make_pod("late")))
    info = await clocked.queue.pop()
    assert info is not None

    assert info.pod.name == "late"


async def test_pop_takes_a_pod_as_soon_as_it_is_in_backoff_q() -> None:
    """A change moves a refused pod to backoffQ while the scheduler has nothing to do."""
    clocked, loop = ClockedQueue(), asyncio.get_running_loop()
    clocked.refused(make_pod("a"), "Fit")
    loop.call_later(60, lambda: clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE))
    await clocked.queue.pop()

    assert loop.time() == 60


async def test_pop_ends_when_the_queue_is_closed_and_empty() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a"))
    asyncio.get_running_loop().call_later(60, clocked.queue.close)
    popped = []
    while (info := await clocked.queue.pop()) is not None:
        popped.append(info.pod.name)

    assert popped == ["a"]


# After an attempt.


def test_a_refused_pod_waits_for_a_change() -> None:
    clocked = ClockedQueue()

    info = clocked.refused(make_pod("a"), "Fit")

    assert clocked.places() == {"a": "unschedulable"}
    assert (info.attempts, info.unschedulable_count, info.consecutive_errors_count) == (1, 1, 0)


def test_a_refusal_after_errors_ends_their_count() -> None:
    clocked = ClockedQueue(max_backoff=0)
    clocked.add(make_pod("a"))
    for _ in range(2):
        clocked.refuse(clocked.pop())
    assert clocked.queue.pods_in_active_q()[0].consecutive_errors_count == 2
    info = clocked.pop()

    clocked.refuse(info, "Fit")

    assert (info.attempts, info.unschedulable_count, info.consecutive_errors_count) == (3, 1, 0)


def test_backoff_grows_with_every_refusal() -> None:
    """Tried at once each time, as nothing else is to be done."""
    clocked = ClockedQueue()
    clocked.add(make_pod("a"))
    info, ends = clocked.pop(), []
    for _ in range(3):
        clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
        clocked.refuse(info, "Fit")
        ends.append(clocked.queue.backoff_time(info))
        clocked.pop()

    assert ends == [1001, 1002, 1004]


def test_time_of_the_first_attempt_is_remembered() -> None:
    clocked = ClockedQueue(max_backoff=0)
    clocked.add(make_pod("a"))
    clocked.now += 60

    info = clocked.pop()
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    clocked.refuse(info, "Fit")

    assert clocked.places() == {"a": "active"}
    assert (info.initial_attempt_timestamp, info.timestamp) == (1000.0, clocked.now)


@cases(
    "refused_by, pending, place",
    ("it may help: after a pause", ["Fit"], [], "backoff"),
    ("another plugin refused it: it waits", ["Taints"], [], "unschedulable"),
    ("the plugin waited for just that: at once", [], ["Fit"], "active"),
    ("the one that waited for it counts most", ["Other"], ["Fit"], "active"),
    ("it failed: events do not matter", [], [], "error backoff"),
)
def test_event_during_an_attempt_decides_where_the_pod_goes(
    refused_by: list[str], pending: list[str], place: str
) -> None:
    """A node comes while a pod is tried without it."""
    clocked = ClockedQueue({NODE_ADD: {"Other": always, "Fit": always}})
    info = clocked.in_flight(make_pod("a"))
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    clocked.refuse(info, *refused_by, pending=tuple(pending))

    assert clocked.places() == {"a": place}


def test_most_helpful_of_several_events_decides_where_the_pod_goes() -> None:
    """A node that may help comes first, then the claim that a plugin has waited for."""
    clocked = ClockedQueue({NODE_ADD: {"Fit": always}, PVC_ADD: {"Claims": always}})
    info = clocked.in_flight(make_pod("a"))
    for event in (NODE_ADD, PVC_ADD):
        clocked.queue.move_all_to_active_or_backoff_queue(event, None, None)

    clocked.refuse(info, "Fit", pending=("Claims",))

    assert clocked.places() == {"a": "active"}


def test_event_before_an_attempt_does_not_requeue_the_pod() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("other"), make_pod("a"))
    clocked.pop()
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    clocked.refuse(clocked.pop(), "Fit")

    assert clocked.places() == {"other": "in flight", "a": "unschedulable"}


def test_events_are_dropped_once_no_pod_is_in_flight() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a"), make_pod("b"))
    first, second = clocked.pop(), clocked.pop()
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    clocked.queue.done(first.pod.uid)
    assert clocked.queue.in_flight_log() == [second, NODE_ADD]

    clocked.queue.done(second.pod.uid)

    assert clocked.queue.in_flight_log() == []


def test_a_pod_that_comes_back_after_it_was_done_is_tried_again() -> None:
    """Nobody kept the changes since: better once too often than never."""
    clocked = ClockedQueue()
    info = clocked.in_flight(make_pod("a"))
    clocked.queue.done(info.pod.uid)

    clocked.refuse(info, "Fit")

    assert clocked.places() == {"a": "backoff"}


def test_a_queued_pod_is_not_queued_a_second_time() -> None:
    clocked = ClockedQueue()
    info = clocked.in_flight(make_pod("a").uid("old"))
    clocked.add(make_pod("a").uid("new"))

    with pytest.raises(AlreadyQueuedError, match="Pod default/a is already present in the active queue"):
        clocked.refuse(info, "Fit")

    assert [(waiting.pod.uid, waiting.attempts) for waiting in clocked.queue.pods_in_active_q()] == [("new", 0)]
    assert clocked.queue.in_flight_pods() == []


def test_a_pod_in_flight_is_not_tried_a_second_time() -> None:
    """A pod that is queued again while it is tried is dropped when it comes up."""
    clocked = ClockedQueue()
    clocked.in_flight(make_pod("a"))
    clocked.add(make_pod("a"))

    assert clocked.queue.pop_nowait() is None
    assert clocked.places() == {"a": "in flight"}
    assert clocked.queue.scheduling_cycle == 1


# The cluster changes.


@cases(
    "hint, later, place",
    ("yes, while it pauses", always, 0, "backoff"),
    ("yes, after its pause", always, 60, "active"),
    ("no", never, 60, "unschedulable"),
    ("an error is taken for a yes", broken, 60, "active"),
)
def test_the_hint_of_the_plugin_that_refused_a_pod_decides(hint: object, later: float, place: str) -> None:
    clocked = ClockedQueue({NODE_ADD: {"Fit": hint, "Other": always}})  # type: ignore[dict-item]
    clocked.refused(make_pod("a"), "Fit")
    clocked.now += later

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.places() == {"a": place}


def test_an_event_moves_the_pods_that_were_refused_by_plugins_that_registered_for_it() -> None:
    clocked = ClockedQueue({NODE_ADD: {"Fit": always, "Zone": always, "Ports": never}, PVC_ADD: {"Volumes": always}})
    refusals = {"a": ["Fit"], "b": ["Zone"], "c": ["Ports"], "d": ["Volumes"], "e": ["Volumes", "Zone"], "f": ["Fit"]}
    for name, plugins in refusals.items():
        clocked.refused(make_pod(name), *plugins)

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.places() == {
        "a": "backoff", "b": "backoff", "c": "unschedulable", "d": "unschedulable", "e": "backoff", "f": "backoff",
    }  # fmt: skip


def test_a_refused_pod_that_is_gated_later_waits_for_the_events_of_its_gate() -> None:
    closed = {"default/a"}
    registered = {POD_LABEL: {"Fit": always}, NODE_ADD: {"Gate": always}}
    clocked = ClockedQueue(registered, gate=lambda pod: "Gate" if pod.key in closed and pod.labels else "")
    info = clocked.refused(make_pod("a"), "Fit")
    clocked.now += 60
    clocked.queue.update(info.pod, make_pod("a").label(app="web").obj(), [POD_LABEL])
    assert clocked.places() == {"a": "gated"}
    closed.clear()

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.places() == {"a": "active"}


def test_a_hint_sees_the_pod_and_the_change() -> None:
    calls: list[tuple[object, ...]] = []

    def hint(*arguments: object) -> QueueingHint:
        calls.append(arguments)
        return QueueingHint.QUEUE_SKIP

    clocked = ClockedQueue({NODE_ADD: {"Fit": hint}})
    info = clocked.refused(make_pod("a"), "Fit")

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert calls == [(info.pod, None, NODE)]


def test_an_event_that_no_plugin_registered_for_moves_no_pod() -> None:
    """Not even pods of a profile that the queue does not know; nor is it kept for pods in flight."""
    clocked = ClockedQueue()
    clocked.refused(make_pod("a").scheduler_name("stranger"), "Fit")
    info = clocked.in_flight(make_pod("b"))

    clocked.queue.move_all_to_active_or_backoff_queue(PVC_ADD, None, None)

    assert clocked.places() == {"a": "unschedulable", "b": "in flight"}
    assert clocked.queue.in_flight_log() == [info]


def test_a_pod_of_an_unknown_profile_is_tried_again_at_any_event() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("a").scheduler_name("stranger"), "Fit")

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.places() == {"a": "backoff"}


def test_only_pods_that_pass_the_pre_check_are_considered() -> None:
    clocked = ClockedQueue()
    for name, priority in (("low", 1), ("high", 9)):
        clocked.refused(make_pod(name).priority(priority), "Fit")

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE, lambda info: info.pod.priority <= 5)

    assert clocked.places() == {"low": "backoff", "high": "unschedulable"}


def test_a_wildcard_event_concerns_all_pods() -> None:
    clocked = ClockedQueue({})
    for name in ("a", "b"):
        clocked.refused(make_pod(name), "Fit")

    clocked.queue.move_all_to_active_or_backoff_queue(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)

    assert clocked.places() == {"a": "backoff", "b": "backoff"}


def test_pods_are_counted_by_queue_and_event() -> None:
    """By upstream's names of queues and events."""
    clocked = ClockedQueue(gate=open_gate_named)
    clocked.refused(make_pod("a"), "Fit")
    clocked.refused(make_pod("b"))
    clocked.queue.move_all_to_active_or_backoff_queue(ClusterEvent(EventResource.NODE, ActionType.ADD), None, NODE)
    clocked.now += 10
    clocked.queue.flush_backoff_q_completed()

    clocked.add(make_pod("c").label(gate="closed"))

    assert clocked.queue.incoming == {
        ("active", "UnschedulablePodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 2,
        ("gated", "UnschedulablePodAdd"): 1,
    }
