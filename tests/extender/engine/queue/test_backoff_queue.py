"""How long a pod backs off."""

import pytest

from extender.engine.queue.pod_queues import BackoffQueue
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.testing import make_pod
from tests.kit.tables import cases


def queue_at(now: float, *, pops_early: bool = True, **options: float) -> BackoffQueue:
    return BackoffQueue(lambda: now, lambda info: info.timestamp, pops_early=pops_early, **options)


def info_of(*, refused: int = 0, failed: int = 0, timestamp: float = 10.25, name: str = "a") -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod(name).obj(), timestamp)
    info.unschedulable_count = refused
    info.consecutive_errors_count = failed
    info.set_rejector_plugins([] if failed else ["Fit"])
    return info


@cases(
    "refused, failed, end",
    ("never tried: no pause", 0, 0, None),
    ("1 s, cut down to the second", 1, 0, 11),
    ("twice as long", 2, 0, 12),
    ("and again", 3, 0, 14),
    ("and again, 8 s", 4, 0, 18),
    ("10 s at most", 5, 0, 20),
    ("however often", 10_000, 0, 20),
    ("errors in a row count by themselves", 5, 1, 11),
    ("and double alike", 0, 3, 14),
)
def test_backoff_doubles_with_every_attempt(refused: int, failed: int, end: float | None) -> None:
    """Tried at 10.25."""
    assert queue_at(10.25).backoff_time(info_of(refused=refused, failed=failed)) == end


@pytest.mark.parametrize(("now", "is_pausing"), [(10.9, True), (11.0, True), (11.999, True), (12.0, False)])
def test_backoff_lasts_through_the_second_in_which_it_ends(now: float, is_pausing: bool) -> None:
    """Tried at 10.25, the pause ends at 11."""
    assert queue_at(now).is_pod_backing_off(info_of(refused=1)) is is_pausing


def test_without_a_maximum_there_is_no_backoff() -> None:
    queue = queue_at(10.25, max_backoff=0)

    assert not queue.is_pod_backing_off(info_of(refused=3))


def test_the_initial_backoff_is_cut_to_the_maximum() -> None:
    assert queue_at(0, initial_backoff=60, max_backoff=30).backoff_time(info_of(refused=1, timestamp=0)) == 30


def test_failed_pods_back_off_apart_but_for_as_long() -> None:
    """Both are found under their keys, only the refused one may be popped early."""
    queue = queue_at(12.0)
    refused, failed, longer = info_of(refused=1), info_of(failed=1, name="b"), info_of(refused=3, name="c")
    for info in (refused, failed, longer):
        queue.add(info)

    completed = [*queue.pop_all_backoff_completed()]

    assert completed == [refused, failed]
    assert [*queue.refused, *queue.failed] == [longer]
    assert queue.pop_early() is longer


def test_a_pod_is_in_one_of_both_queues(caplog: pytest.LogCaptureFixture) -> None:
    """A pod that is added as failed while it is there as refused was lost track of: that is told."""
    queue, info = queue_at(0), info_of(refused=1)
    queue.add(info)
    info.set_rejector_plugins([])

    queue.add(info)

    assert (len(queue.refused), len(queue.failed)) == (0, 1)
    assert 'already in the podBackoffQ" pod="default/a"' in caplog.text
