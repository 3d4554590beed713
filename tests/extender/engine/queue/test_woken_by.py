"""Which event moved a pod to activeQ, by way of backoffQ or not; the end of backoff if there was no event."""

from extender.testing import make_node, make_pod
from tests.extender.engine.queue.clocked_queue import NODE_ADD, ClockedQueue

NODE = make_node("n").obj()


def test_a_new_pod_was_woken_by_its_addition() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("p"))

    assert clocked.pop().woken_by == "UnschedulablePodAdd"


def test_a_pod_that_backs_off_after_an_event_was_woken_by_the_event() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    clocked.now += 60
    clocked.queue.flush_backoff_q_completed()

    assert clocked.pop().woken_by == "NodeAdd"


def test_a_backoff_that_was_cut_short_has_not_woken_the_pod_either() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.pop().woken_by == "NodeAdd"


def test_a_failed_pod_was_woken_by_the_end_of_its_backoff() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"))
    clocked.now += 60
    clocked.queue.flush_backoff_q_completed()

    assert clocked.pop().woken_by == "BackoffComplete"


def test_an_activated_pod_was_woken_by_its_activation() -> None:
    clocked = ClockedQueue()
    info = clocked.refused(make_pod("p"), "Fit")
    clocked.queue.activate([info.pod])

    assert clocked.pop().woken_by == "ForceActivate"


def test_a_pod_that_is_taken_from_its_backoff_for_want_of_others_was_woken_by_that() -> None:
    """An event during the attempt has let it back off, so no event has woken it since."""
    clocked = ClockedQueue()
    info = clocked.in_flight(make_pod("p"))
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    clocked.refuse(info, "Fit")

    assert clocked.pop().woken_by == "PopFromBackoffQ"
