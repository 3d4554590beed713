"""Where waiting pods go when they are updated, gated, activated, nominated, or wait too long."""

import asyncio

import pytest

from extender.engine.framework import ClusterEvent, QueueingHint
from extender.engine.framework.events import EVENT_UNSCHEDULABLE_TIMEOUT, EVENT_UNSCHEDULED_POD_UPDATE
from extender.engine.plugins.queueing import PrioritySort
from extender.engine.queue import SchedulingQueue
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.objects.pod import Pod
from tests.extender.engine.queue.clocked_queue import (
    NODE_ADD,
    POD_LABEL,
    PVC_ADD,
    ClockedQueue,
    always,
    never,
    open_gate_named,
)
from tests.kit.tables import cases

NODE = make_node("n").obj()


# Pods change.


@cases("hint, place", ("it may help", always, "backoff"), ("it does not help", never, "unschedulable"))
def test_a_refused_pod_is_changed(hint: object, place: str) -> None:
    clocked = ClockedQueue({POD_LABEL: {"Fit": hint}})  # type: ignore[dict-item]
    info = clocked.refused(make_pod("a"), "Fit")
    changed = make_pod("a").label(app="web").obj()

    clocked.queue.update(make_pod("a").obj(), changed, [POD_LABEL])

    assert clocked.places() == {"a": place}
    assert info.pod is changed


def test_first_helpful_change_of_several_requeues_the_pod() -> None:
    pod_names: list[str] = []

    def hint(pod: Pod, old: object, new: object) -> QueueingHint:
        pod_names.append(pod.name)
        return QueueingHint.QUEUE

    clocked = ClockedQueue({POD_LABEL: {"Fit": hint}})
    clocked.refused(make_pod("a"), "Fit")

    clocked.queue.update(make_pod("a").obj(), make_pod("a").label(app="web").obj(), [POD_LABEL, POD_LABEL])

    assert clocked.places() == {"a": "backoff"}
    assert pod_names == ["a"]


def test_an_update_does_not_end_the_backoff_of_a_pod() -> None:
    clocked = ClockedQueue({NODE_ADD: {"Fit": always}, POD_LABEL: {"Fit": always}})
    info = clocked.refused(make_pod("a"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    changed = make_pod("a").label(app="web").obj()

    clocked.queue.update(make_pod("a").obj(), changed, [POD_LABEL])

    assert clocked.places() == {"a": "backoff"}
    assert info.pod is changed


def test_a_change_of_a_pod_in_flight_is_kept_for_when_it_comes_back() -> None:
    clocked = ClockedQueue({POD_LABEL: {"Fit": always}})
    info = clocked.in_flight(make_pod("a"))

    clocked.queue.update(make_pod("a").obj(), make_pod("a").label(app="web").obj(), [POD_LABEL])
    clocked.refuse(info, "Fit")

    assert clocked.places() == {"a": "backoff"}


def test_an_unknown_pod_that_changes_is_new() -> None:
    clocked = ClockedQueue()

    clocked.queue.update(make_pod("a").obj(), make_pod("a").label(app="web").obj(), [POD_LABEL])

    assert clocked.places() == {"a": "active"}


def test_a_pod_that_is_added_twice_is_queued_once() -> None:
    """The second time it need not pause any more."""
    clocked = ClockedQueue()
    clocked.refused(make_pod("a"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    clocked.add(make_pod("a"))

    assert clocked.places() == {"a": "active"}


@pytest.mark.parametrize("place", ["active", "unschedulable", "not yet known"])
def test_nominations_in_the_status_are_followed(place: str) -> None:
    clocked = ClockedQueue()
    if place == "active":
        clocked.add(make_pod("a"))
    elif place == "unschedulable":
        clocked.refused(make_pod("a"), "Fit")
    else:
        clocked.store["default/a"] = make_pod("a").obj()
    promised = make_pod("a").nominated_node("n1").obj()

    clocked.queue.update(make_pod("a").obj(), promised, [EVENT_UNSCHEDULED_POD_UPDATE])
    assert clocked.queue.nominated_pods() == {"n1": [promised]}
    clocked.queue.update(promised, make_pod("a").obj(), [EVENT_UNSCHEDULED_POD_UPDATE])

    assert clocked.queue.nominated_pods() == {}


@pytest.mark.parametrize("place", ["active", "backoff", "error backoff", "unschedulable", "gated"])
def test_a_deleted_pod_is_in_no_queue(place: str) -> None:
    clocked = ClockedQueue(gate=open_gate_named)
    if place in ("active", "gated"):
        clocked.add(make_pod("a").label(gate="closed") if place == "gated" else make_pod("a"))
    else:
        clocked.refused(make_pod("a"), *(() if place == "error backoff" else ("Fit",)))
    if place == "backoff":
        clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    assert clocked.places() == {"a": place}

    clocked.queue.delete(make_pod("a").obj())

    assert clocked.places() == {}
    assert sum(clocked.queue.pending_counts().values()) == 0


# Gates.


def test_a_gated_pod_is_not_tried() -> None:
    clocked = ClockedQueue(gate=open_gate_named)

    clocked.add(make_pod("a").label(gate="closed"), make_pod("b"))

    assert clocked.places() == {"a": "gated", "b": "active"}
    assert clocked.queue.pending_counts() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert clocked.queue.unschedulable_pods()[0].unschedulable_plugins == {"Gate"}


def test_a_gate_opens_when_its_plugin_admits_the_pod() -> None:
    clocked = ClockedQueue({POD_LABEL: {"Gate": always}}, gate=open_gate_named)
    gated = make_pod("a").label(gate="closed")
    clocked.add(gated)

    clocked.queue.update(gated.obj(), make_pod("a").obj(), [POD_LABEL])

    assert clocked.places() == {"a": "active"}
    assert not clocked.queue.pods_in_active_q()[0].is_gated


def test_a_change_that_does_not_open_the_gate_leaves_the_pod_gated() -> None:
    clocked = ClockedQueue({POD_LABEL: {"Gate": always}}, gate=open_gate_named)
    gated = make_pod("a").label(gate="closed")
    clocked.add(gated)

    clocked.queue.update(gated.obj(), gated.label(app="web").obj(), [POD_LABEL])

    assert clocked.places() == {"a": "gated"}


@pytest.mark.parametrize(
    "event", [NODE_ADD, EVENT_UNSCHEDULABLE_TIMEOUT], ids=["an event of others", "the end of patience"]
)
def test_a_gated_pod_is_moved_only_by_events_of_its_gating_plugin(event: ClusterEvent) -> None:
    """Another plugin that refused it earlier is not asked, nor is its gate."""
    pod_names: list[str] = []

    def gate(pod: Pod) -> str:
        pod_names.append(pod.name)
        return open_gate_named(pod)

    clocked = ClockedQueue({NODE_ADD: {"Fit": always}, POD_LABEL: {"Gate": always}}, gate=gate)
    clocked.add(make_pod("a").label(gate="closed"))
    clocked.queue.unschedulable_pods()[0].unschedulable_plugins |= {"Fit"}
    pod_names.clear()

    clocked.queue.move_all_to_active_or_backoff_queue(event, None, None)

    assert clocked.places() == {"a": "gated"}
    assert pod_names == []


def test_a_gate_may_open_when_the_cluster_changes() -> None:
    """It waited for a claim; the pod does not pause, as it was never tried."""
    closed = {"a"}
    clocked = ClockedQueue({PVC_ADD: {"Gate": always}}, gate=lambda pod: "Gate" if pod.name in closed else "")
    clocked.add(make_pod("a"))
    closed.clear()

    clocked.queue.move_all_to_active_or_backoff_queue(PVC_ADD, None, None)

    assert clocked.places() == {"a": "active"}


def test_a_pod_in_backoff_q_is_not_gated_again() -> None:
    closed: set[str] = set()
    clocked = ClockedQueue(gate=lambda pod: "Gate" if pod.name in closed else "")
    clocked.refused(make_pod("a"))
    closed.add("a")
    clocked.now += 10

    clocked.queue.flush_backoff_q_completed()

    assert clocked.places() == {"a": "active"}


def test_a_pod_may_be_gated_on_its_way_back() -> None:
    clocked = ClockedQueue(gate=open_gate_named)
    info = clocked.refused(make_pod("a"), "Fit")
    info.pod = make_pod("a").label(gate="closed").obj()

    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.places() == {"a": "gated"}


# Activation.


@pytest.mark.parametrize("place", ["unschedulable", "error backoff"])
def test_an_activated_pod_is_tried_next_whatever_it_waits_for(place: str) -> None:
    clocked = ClockedQueue()
    info = clocked.refused(make_pod("a"), *(["Fit"] if place == "unschedulable" else []))
    assert clocked.places() == {"a": place}

    clocked.queue.activate([info.pod])

    assert clocked.places() == {"a": "active"}


def test_a_pod_that_is_activated_in_flight_is_requeued_when_it_comes_back() -> None:
    """That is for this pod alone."""
    clocked = ClockedQueue()
    clocked.add(make_pod("a"), make_pod("b"))
    first, second = clocked.pop(), clocked.pop()

    clocked.queue.activate([first.pod])
    for info in (first, second):
        clocked.refuse(info, "Fit")

    assert clocked.places() == {"a": "backoff", "b": "unschedulable"}


@pytest.mark.parametrize("place", ["error backoff", "unschedulable"])
def test_a_requeued_pod_with_a_later_error_backs_off_as_a_failed_one(place: str) -> None:
    """Nobody pops it early, so that what keeps going wrong is not tried again and again at once."""
    clocked = ClockedQueue()
    info = clocked.refused(make_pod("a"), *(["Fit"] if place == "unschedulable" else []))
    assert clocked.places() == {"a": place}

    clocked.queue.retry_after_failure(info.pod)

    assert clocked.places() == {"a": "error backoff"}
    assert clocked.queue.pop_nowait() is None


def test_activation_opens_no_gate_and_adds_no_pod() -> None:
    clocked = ClockedQueue(gate=open_gate_named)
    clocked.add(make_pod("a").label(gate="closed"))

    clocked.queue.activate([make_pod("a").label(gate="closed").obj(), make_pod("unknown").obj()])

    assert clocked.places() == {"a": "gated"}


# Time passes.


def test_a_pod_that_has_waited_too_long_is_tried_again() -> None:
    clocked = ClockedQueue({}, max_in_unschedulable_pods=300)
    early = clocked.refused(make_pod("early"), "Fit")
    clocked.now += 10
    late = clocked.refused(make_pod("late"), "Fit")
    clocked.now += 295

    clocked.queue.flush_unschedulable_pods_leftover()

    assert clocked.places() == {"early": "active", "late": "unschedulable"}
    assert (early.was_flushed_from_unschedulable, late.was_flushed_from_unschedulable) == (True, False)


def test_a_pod_that_is_refused_again_has_not_been_flushed_since() -> None:
    clocked = ClockedQueue({}, max_in_unschedulable_pods=300)
    clocked.refused(make_pod("a"), "Fit")
    clocked.now += 301
    clocked.queue.flush_unschedulable_pods_leftover()
    info = clocked.pop()
    assert info.was_flushed_from_unschedulable

    clocked.refuse(info, "Fit")

    assert not info.was_flushed_from_unschedulable


async def test_run_flushes_both_queues_periodically() -> None:
    """A pause ends on a whole second, and in that second it still lasts; patience ends after five minutes, and is
    looked at every half.
    """
    loop = asyncio.get_running_loop()
    queue = SchedulingQueue(
        PrioritySort().sort_key,
        {"default-scheduler": {}},
        lambda pod, _: "",
        now=loop.time,
        pod_lister=lambda uid: None,
    )
    pop_times: dict[str, float] = {}
    await asyncio.sleep(0.25)
    for name, plugins in (("failed", []), ("refused", ["Fit"])):
        queue.add(make_pod(name).obj())
        info = queue.pop_nowait()
        assert info is not None
        info.set_rejector_plugins(plugins)
        queue.add_unschedulable_if_not_present(info)
    flushing = asyncio.create_task(queue.run())
    while len(pop_times) < 2:
        info = await queue.pop()
        assert info is not None
        pop_times[info.pod.name] = loop.time()
    flushing.cancel()
    await asyncio.wait([flushing])

    assert pop_times == {"failed": 2.0, "refused": 330.25}


def test_a_pod_that_asks_to_be_tried_again_earlier_does_not_wait_as_long_as_others() -> None:
    """A delayed preemption says when."""
    clocked = ClockedQueue({}, max_in_unschedulable_pods=300)
    info = clocked.in_flight(make_pod("delayed"))
    info.retry_after = 20.0
    clocked.refuse(info, "Fit")
    clocked.refused(make_pod("other"), "Fit")
    clocked.now += 21

    clocked.queue.flush_unschedulable_pods_leftover()

    assert clocked.places() == {"delayed": "active", "other": "unschedulable"}


# Nominations.


def test_a_nomination_shows_the_pod_as_it_is_now() -> None:
    clocked = ClockedQueue()
    info = clocked.refused(make_pod("a"), "Fit")
    clocked.queue.add_nominated_pod(info.pod, "n1")
    changed = make_pod("a").label(app="web").obj()

    clocked.queue.update(info.pod, changed, [POD_LABEL])

    assert clocked.queue.nominated_pods() == {"n1": [changed]}


def test_a_nomination_is_of_a_pod_not_of_its_name() -> None:
    """The pod was made again while its predecessor was being tried."""
    clocked = ClockedQueue()
    info = clocked.in_flight(make_pod("a").uid("old"))
    clocked.queue.add_nominated_pod(info.pod, "n1")

    clocked.add(make_pod("a").uid("new"))

    assert clocked.queue.nominated_pods() == {"n1": [info.pod]}


@cases(
    "builder, promised",
    ("named in its status", make_pod("a").nominated_node("n1"), {"n1"}),
    ("none", make_pod("a"), set()),
)
def test_a_new_pod_has_the_nomination_of_its_status(builder: PodBuilder, promised: set[str]) -> None:
    clocked = ClockedQueue()

    clocked.add(builder)

    assert clocked.queue.nominated_pods().keys() == promised


def test_a_deleted_pod_has_no_nomination() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("a").nominated_node("n1"))

    clocked.queue.delete(make_pod("a").obj())

    assert clocked.queue.nominated_pods() == {}
