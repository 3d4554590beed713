"""Of the calls about one pod only what still matters is performed."""

import asyncio
from typing import Any

import pytest

from extender.client.writes.call_queue import CallQueue, Lane
from extender.engine.framework import (
    ApiCall,
    BindPod,
    CallSkipped,
    DeletePod,
    PatchPodStatus,
    PodCondition,
    RecordEvent,
    reference_to,
)
from extender.engine.framework.storage_calls import UnreserveResourceClaim
from extender.testing import make_pod
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import PodExtendedResourceClaimStatus

POD = make_pod("p").uid("1").obj()
OTHER = make_pod("q").uid("2").obj()
BINDING = BindPod.of(POD, "n")


def condition(message: str, kind: str = "PodScheduled") -> PodCondition:
    return PodCondition(kind, "False", "Unschedulable", message)


def patch(message: str, kind: str = "PodScheduled", nominate: str | None = None) -> PatchPodStatus:
    return PatchPodStatus.of(POD, condition(message, kind), nominated_node_name=nominate)


class Queue:
    """A queue, and what became of what was added to it."""

    def __init__(self) -> None:
        self.queue = CallQueue()

    def add(self, call: ApiCall[Any]) -> "asyncio.Future[Any]":
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.queue.add(call, outcome)
        return outcome

    def pop_all(self) -> list[ApiCall[Any]]:
        popped = []
        for lane in Lane:
            while self.queue.lanes[lane]:
                popped.append(self.queue.pop(lane).call)
        return popped


@pytest.fixture
def queue() -> Queue:
    return Queue()


def skipped(outcome: "asyncio.Future[Any]") -> str:
    failure = outcome.exception()
    assert isinstance(failure, CallSkipped)
    return str(failure)


async def test_a_binding_displaces_a_status_patch(queue: Queue) -> None:
    patching = queue.add(patch("no room"))
    queue.add(BINDING)

    assert queue.pop_all() == [BINDING]
    assert skipped(patching) == "a more relevant call was enqueued for this object"


async def test_a_status_patch_is_skipped_while_a_binding_waits_or_is_performed(queue: Queue) -> None:
    queue.add(BINDING)
    first = queue.add(patch("no room"))
    popped = queue.pop_all()
    second = queue.add(patch("no room"))

    assert popped == [BINDING]
    assert skipped(first) == skipped(second) == "a more relevant call is already enqueued for this object"


async def test_a_newer_patch_takes_over_what_the_older_one_had_to_say(queue: Queue) -> None:
    older = queue.add(patch("victim", "DisruptionTarget", nominate="n1"))
    queue.add(patch("no room"))

    (merged,) = queue.pop_all()
    assert merged == PatchPodStatus.of(
        POD, condition("no room"), condition("victim", "DisruptionTarget"), nominated_node_name="n1"
    )
    assert skipped(older) == "a call of the same type was enqueued for this object"


async def test_newest_of_several_nominations_is_written(queue: Queue) -> None:
    queue.add(patch("old", nominate="n1"))
    queue.add(patch("new", nominate=""))
    queue.add(patch("newest", nominate="n2"))

    assert queue.pop_all() == [patch("newest", nominate="n2")]


async def test_calls_that_change_nothing_are_done_at_once(queue: Queue) -> None:
    done = queue.add(PatchPodStatus.of(POD, nominated_node_name=""))

    assert (done.result(), queue.pop_all()) == (None, [])


async def test_a_change_that_is_taken_back_need_not_be_written(queue: Queue) -> None:
    """The nomination is cleared before it was written."""
    queue.add(PatchPodStatus.of(POD, nominated_node_name="n1"))
    done = queue.add(PatchPodStatus.of(POD, nominated_node_name=""))

    assert (done.result(), queue.pop_all(), queue.queue.is_empty) == (None, [], True)


async def test_calls_about_a_pod_wait_for_the_one_under_way(queue: Queue) -> None:
    queue.add(patch("no room"))
    first = queue.queue.pop(Lane.ORDINARY)
    queue.add(BINDING)
    before = queue.pop_all()
    queue.queue.finish(first, succeeded=True)

    assert (before, queue.pop_all()) == ([], [BINDING])


@pytest.mark.parametrize(("succeeded", "writes"), [(True, True), (False, False)], ids=["written", "refused"])
async def test_finished_call_counts_only_when_it_succeeded(queue: Queue, succeeded: bool, writes: bool) -> None:
    """A nomination is written; clearing it is a change then, though the pod as it was last seen has none."""
    queue.add(PatchPodStatus.of(POD, nominated_node_name="n1"))
    first = queue.queue.pop(Lane.ORDINARY)
    queue.add(PatchPodStatus.of(POD, nominated_node_name=""))
    queue.queue.finish(first, succeeded=succeeded)

    assert [isinstance(call, PatchPodStatus) and call.changes_nomination for call in queue.pop_all()] == (
        [True] if writes else []
    )


async def test_calls_that_follow_are_merged_among_themselves(queue: Queue) -> None:
    queue.add(patch("first"))
    first = queue.queue.pop(Lane.ORDINARY)
    second = queue.add(patch("second", nominate="n1"))
    queue.add(patch("third"))
    queue.queue.finish(first, succeeded=False)

    assert queue.pop_all() == [patch("third", nominate="n1")]
    assert skipped(second) == "a call of the same type was enqueued for this object"


async def test_calls_about_others_are_not_touched(queue: Queue) -> None:
    """Nor are calls without a relevance, even about the same object: each is performed."""
    unreserve = UnreserveResourceClaim("default", "c", "c", "1")
    calls: list[ApiCall[Any]] = [
        patch("no room"),
        PatchPodStatus.of(OTHER, condition("no")),
        DeletePod.of(POD),
        unreserve,
        unreserve,
    ]
    for call in calls:
        queue.add(call)

    assert queue.pop_all() == calls


async def test_bindings_wait_in_a_lane_of_their_own(queue: Queue) -> None:
    event = RecordEvent(reference_to(POD), "Normal", "Scheduled", "Binding", "well", "default-scheduler")
    queue.add(event)
    queue.add(patch("no room"))
    queue.add(BindPod.of(OTHER, "n"))

    assert queue.pop_all() == [BindPod.of(OTHER, "n"), patch("no room"), event]


async def test_number_of_queued_events_is_limited(queue: Queue) -> None:
    event = RecordEvent(reference_to(POD), "Normal", "Scheduled", "Binding", "well", "default-scheduler")
    outcomes = [queue.add(event) for _ in range(limits.EVENTS_QUEUED + 1)]

    assert sum(outcome.done() for outcome in outcomes) == 1
    assert skipped(outcomes[-1]) == "too many events wait to be recorded"


async def test_withdrawn_call_is_not_started(queue: Queue) -> None:
    queue.queue.withdraw(queue.add(BINDING))
    after = queue.add(patch("no room"))

    assert queue.pop_all() == [patch("no room")]
    assert not after.done()


# What changes, the contract says.


SEEN = replaced(
    POD,
    status=replaced(
        POD.status,
        conditions=[Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")],
        nominated_node_name="n1",
    ),
)


@pytest.mark.parametrize(
    ("new_condition", "changes"),
    [
        pytest.param(condition("no room"), [], id="as it is"),
        pytest.param(
            PodCondition("PodScheduled", "False", "Unschedulable", "no room", 7), [], id="a new generation alone"
        ),
        pytest.param(condition("still no room"), [False], id="new words, no transition"),
        pytest.param(PodCondition("PodScheduled", "True"), [True], id="a transition"),
        pytest.param(condition("x", "DisruptionTarget"), [True], id="a new condition"),
    ],
)
def test_only_changed_conditions_are_written(new_condition: PodCondition, changes: list[bool]) -> None:
    call = PatchPodStatus.of(SEEN, new_condition)

    assert [is_transition for _, is_transition in call.changed_conditions] == changes
    assert call.is_no_op == (not changes)


@pytest.mark.parametrize(("nominate", "changes"), [(None, False), ("n1", False), ("", True), ("n2", True)])
def test_a_nomination_is_left_kept_cleared_or_set(nominate: str | None, changes: bool) -> None:
    assert PatchPodStatus.of(SEEN, nominated_node_name=nominate).changes_nomination == changes


def special(name: str) -> PodExtendedResourceClaimStatus:
    return PodExtendedResourceClaimStatus(resource_claim_name=name)


def test_a_later_patch_takes_the_claim_for_extended_resources_along() -> None:
    merged = PatchPodStatus.of(POD, condition("no room")).merged_with(
        PatchPodStatus.of(POD, extended_resource_claim=special("one"))
    )

    assert merged == PatchPodStatus.of(POD, condition("no room"), extended_resource_claim=special("one"))


def test_later_of_two_special_claims_is_written() -> None:
    older, newer = (PatchPodStatus.of(POD, extended_resource_claim=special(name)) for name in ("one", "two"))

    assert newer.merged_with(older) == newer
    assert newer.after(newer).is_no_op
    assert not newer.after(older).is_no_op


def test_the_claim_for_extended_resources_is_not_written_to_a_pod_that_others_have_bound() -> None:
    bound = replaced(POD, spec=replaced(POD.spec, node_name="n1"))

    assert PatchPodStatus.of(POD, extended_resource_claim=special("one")).rebased_on(bound) is None
