"""Where an event or the clock moves many pods, others have their turn in between, and no pod is popped before all are
where they belong.
"""

from collections import Counter

from extender.engine.queue.moves import MOVED_AT_ONCE
from extender.testing import make_pod
from extender.values.concurrency import virtual_time
from tests.extender.engine.queue.clocked import NODE_ADD, PVC_ADD, ClockedQueue, always

MANY = 3 * MOVED_AT_ONCE

HINTS = {NODE_ADD: {"Fit": always}, PVC_ADD: {"Fit": always}}


def waiting() -> ClockedQueue:
    """
    Many refused pods, of which the last ones are the most important.
    """
    clocked = ClockedQueue(HINTS)
    for number in range(MANY):
        clocked.add(make_pod(f"pod-{number}").uid(f"uid-{number}").priority(number))
    for info in [clocked.pop() for _ in range(MANY)][::-1]:
        clocked.refuse(info, "Fit")
    clocked.now += 100  # no backoff is left
    return clocked


def counted(clocked: ClockedQueue) -> Counter[str]:
    return Counter(clocked.places().values())


def move(clocked: ClockedQueue) -> None:
    clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, None)


def test_a_portion_is_moved_at_once_and_the_others_in_later_turns() -> None:
    clocked = waiting()

    async def story() -> tuple[Counter[str], str]:
        move(clocked)
        so_far = counted(clocked)
        popped = await clocked.queue.pop()
        return so_far, popped.pod.name if popped else ""

    so_far, popped = virtual_time.run(story())

    assert so_far == {"active": MOVED_AT_ONCE, "unschedulable": MANY - MOVED_AT_ONCE}
    assert popped == f"pod-{MANY - 1}"
    assert counted(clocked) == {"active": MANY - 1, "in flight": 1}


def test_a_pod_that_goes_meanwhile_does_not_come_back() -> None:
    clocked = waiting()
    last = clocked.store[f"default/pod-{MANY - 1}"]

    async def story() -> str:
        move(clocked)
        clocked.queue.delete(last)
        popped = await clocked.queue.pop()
        return popped.pod.name if popped else ""

    assert virtual_time.run(story()) == f"pod-{MANY - 2}"
    assert counted(clocked) == {"active": MANY - 2, "in flight": 1}


def test_events_are_taken_in_turn() -> None:
    """
    The second finds nothing left to move; each pod is told to have moved once.
    """
    clocked = waiting()

    async def story() -> None:
        move(clocked)
        clocked.queue.move_all_to_active_or_backoff_queue(PVC_ADD, None, None)
        await clocked.queue.pop()

    virtual_time.run(story())

    assert clocked.queue.incoming["active", NODE_ADD.label] == MANY
    assert clocked.queue.incoming["active", PVC_ADD.label] == 0


def test_without_an_event_loop_all_are_moved_at_once() -> None:
    clocked = waiting()
    move(clocked)

    assert counted(clocked) == {"active": MANY}


def test_backoffs_that_end_together_are_a_matter_of_portions_too() -> None:
    clocked = waiting()
    clocked.now -= 100
    move(clocked)
    in_backoff = counted(clocked)
    clocked.now += 100

    async def story() -> tuple[Counter[str], str]:
        clocked.queue.flush_backoff_q_completed()
        so_far = counted(clocked)
        popped = await clocked.queue.pop()
        return so_far, popped.pod.name if popped else ""

    so_far, popped = virtual_time.run(story())

    assert in_backoff == {"backoff": MANY}
    assert so_far == {"active": MOVED_AT_ONCE, "backoff": MANY - MOVED_AT_ONCE}
    assert popped == f"pod-{MANY - 1}"
