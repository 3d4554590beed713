"""What brought a pod to activeQ: the event, even if the pod had to pause after it; the end of the pause, if there was no event."""

from extender.testing import make_node, make_pod
from tests.extender.queue.clocked import NODE_ADD, ClockedQueue

NODE = make_node("n").obj()


def test_a_pod_that_is_new_was_woken_by_its_coming() -> None:
    clocked = ClockedQueue()
    clocked.add(make_pod("p"))

    assert clocked.pop().woken_by == "UnschedulablePodAdd"


def test_a_pod_that_pauses_after_an_event_was_woken_by_the_event() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)
    clocked.now += 60
    clocked.queue.flush_backoff_q_completed()

    assert clocked.pop().woken_by == "NodeAdd"


def test_a_pause_that_was_cut_short_has_not_woken_the_pod_either() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"), "Fit")
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, NODE)

    assert clocked.pop().woken_by == "NodeAdd"


def test_a_pod_that_failed_was_woken_by_the_end_of_its_pause() -> None:
    clocked = ClockedQueue()
    clocked.refused(make_pod("p"))
    clocked.now += 60
    clocked.queue.flush_backoff_q_completed()

    assert clocked.pop().woken_by == "BackoffComplete"


def test_a_pod_that_was_called_for_was_woken_by_that() -> None:
    clocked = ClockedQueue()
    info = clocked.refused(make_pod("p"), "Fit")
    clocked.queue.activate([info.pod])

    assert clocked.pop().woken_by == "ForceActivate"
