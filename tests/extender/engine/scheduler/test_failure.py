"""After an attempt that came to nothing: back to the queue first, then the promise, then the event, then the condition.

Upstream: pkg/scheduler/schedule_one.go, handleSchedulingFailure; scheduler_test.go, TestFailureHandler,
TestUpdatePodStatus.
"""

import asyncio

import pytest

from extender.engine import framework as fwk
from extender.engine.scheduler.failure import handle_scheduling_failure
from extender.engine.scheduler.world import Failure, refused_on_one_node
from extender.testing import PodBuilder, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from tests.extender.engine.scheduler.stage import Stage, a_stage
from tests.kit.tables import cases

P = make_pod("p")
REFUSED = Failure(fwk.unschedulable("no room"), frozenset({"NodeResourcesFit"}))


async def attempt(
    failure: Failure, pod: PodBuilder = P, *, meanwhile: object = None
) -> tuple[Stage, fwk.PatchPodStatus | None]:
    """The pod is popped; something happens; the attempt comes to nothing."""
    stage = a_stage()
    stage.tell(None, pod)
    info = stage.popped()
    if callable(meanwhile):
        meanwhile(stage)
    call = handle_scheduling_failure(stage.world, stage.framework, info, failure)
    await asyncio.sleep(0)
    return stage, call


def condition(call: fwk.PatchPodStatus | None) -> tuple[str, str, str, str]:
    assert call is not None
    (only,) = call.conditions
    return only.type, only.status, only.reason, only.message


def notes(stage: Stage) -> list[str]:
    return [call.note for call in stage.calls_of(fwk.RecordEvent)]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (fwk.unschedulable("why"), "Unschedulable"),
        (fwk.unresolvable("why"), "Unschedulable"),
        (fwk.Status(fwk.Code.PENDING, ("why",)), "Unschedulable"),
        (fwk.error("why"), "SchedulerError"),
    ],
    ids=str,
)
async def test_failure_writes_a_condition_and_an_event_with_the_reason(status: fwk.Status, reason: str) -> None:
    stage, call = await attempt(Failure(status))

    assert condition(call) == ("PodScheduled", "False", reason, "why")
    (event,) = stage.calls_of(fwk.RecordEvent)
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "FailedScheduling", "Scheduling", "why")


async def test_a_refused_pod_waits_for_its_refusers() -> None:
    stage, _ = await attempt(REFUSED)

    (info,) = stage.world.queue.unschedulable_pods()
    assert (info.pod.name, set(info.unschedulable_plugins)) == ("p", {"NodeResourcesFit"})
    assert stage.world.queue.in_flight_pods() == []


async def test_a_pod_that_failed_waits_for_time() -> None:
    stage, _ = await attempt(Failure(fwk.error("broken")))

    assert [info.pod.name for info in stage.world.queue.pods_in_backoff_q(failed=True)] == ["p"]


async def test_failure_without_a_reason_writes_no_event_and_no_condition() -> None:
    stage, call = await attempt(Failure(fwk.SKIP))

    assert call is None
    assert notes(stage) == []
    assert [info.pod.name for info in stage.world.queue.pods_in_backoff_q(failed=True)] == ["p"]


async def test_error_without_a_message_still_writes_condition_and_event() -> None:
    stage, call = await attempt(Failure(fwk.error("")))

    assert condition(call) == ("PodScheduled", "False", "SchedulerError", "")
    assert notes(stage) == [""]


async def test_a_pod_that_changed_meanwhile_is_queued_as_it_is_now() -> None:
    stage, _ = await attempt(REFUSED, meanwhile=lambda stage: stage.tell(P, P.label(new="yes")))

    (info,) = stage.world.queue.unschedulable_pods()
    assert info.pod.labels == {"new": "yes"}


async def test_failure_of_a_deleted_pod_writes_an_event_and_queues_nothing() -> None:
    stage, call = await attempt(REFUSED, meanwhile=lambda stage: stage.tell(P, None))

    assert not stage.waits(P)
    assert notes(stage) == ["no room"]
    assert call is not None
    assert stage.world.queue.in_flight_pods() == []


async def test_a_pod_that_has_a_node_by_now_is_not_queued() -> None:
    stage, _ = await attempt(REFUSED, meanwhile=lambda stage: stage.tell(P, P.node("n")))

    assert not stage.waits(P)
    assert stage.world.queue.in_flight_pods() == []


async def test_failure_of_a_replaced_pod_writes_and_requeues_nothing() -> None:
    stage, call = await attempt(REFUSED, meanwhile=lambda stage: stage.tell(P, P.uid("another").gate("wait")))

    assert call is None
    assert notes(stage) == []
    (info,) = stage.world.queue.unschedulable_pods()
    assert (info.pod.uid, info.attempts) == ("another", 0)
    assert stage.world.queue.in_flight_pods() == []


@cases(
    "before, nominate, promised, node_name",
    ("a promise", "", "n", {"n": ["p"]}, "n"),
    ("another promise", "m", "n", {"n": ["p"]}, "n"),
    ("none any more", "m", "", {}, ""),
    ("as it is", "m", None, {"m": ["p"]}, None),
    ("none, as before", "", None, {}, None),
)
async def test_failed_attempt_keeps_sets_or_clears_the_nomination(
    before: str, nominate: str | None, promised: dict[str, list[str]], node_name: str | None
) -> None:
    failure = Failure(fwk.unschedulable("no room"), frozenset({"X"}), nominate=nominate)
    stage, call = await attempt(failure, P.nominated_node(before))

    assert {node: [pod.name for pod in pods] for node, pods in stage.world.queue.nominated_pods().items()} == promised
    assert call is not None
    assert call.nominated_node_name == node_name


async def test_condition_that_is_already_written_is_not_written_again() -> None:
    """TestUpdatePodStatus: neither the condition nor an end of a promise that there is none of."""
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")

    def with_condition(stage: Stage) -> None:
        stage.tell(P, replaced(P.obj(), status=replaced(P.obj().status, conditions=[condition])))

    _, call = await attempt(REFUSED, meanwhile=with_condition)
    assert call is not None
    assert call.is_no_op

    _, other = await attempt(Failure(fwk.unschedulable("less room"), frozenset({"X"})), meanwhile=with_condition)
    assert other is not None
    assert not other.is_no_op


async def test_a_note_is_cut_at_1024_bytes_and_never_within_a_character() -> None:
    for message, note in [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("x" + "ü" * 600, "x" + "ü" * 509 + " ..."),
    ]:
        stage, call = await attempt(Failure(fwk.error(message)))

        assert notes(stage) == [note]
        assert condition(call)[3] == message


@pytest.mark.parametrize(
    ("status", "unschedulable", "pending"),
    [
        (fwk.unschedulable("why").by("X"), {"X"}, set()),
        (fwk.unresolvable("why").by("X"), {"X"}, set()),
        (fwk.Status(fwk.Code.PENDING, ("why",), "X"), {"X"}, {"X"}),
        (fwk.unschedulable("why"), set(), set()),
    ],
    ids=str,
)
def test_a_refusal_after_the_node_was_chosen(status: fwk.Status, unschedulable: set[str], pending: set[str]) -> None:
    failure = refused_on_one_node(status)

    assert failure.status == fwk.unschedulable("0/1 nodes are available: 1 why.")
    assert (set(failure.unschedulable_plugins), set(failure.pending_plugins)) == (unschedulable, pending)
    assert failure.nominate == ""


async def test_the_pod_is_back_before_people_hear_of_it() -> None:
    """Whoever reacts to the event or to the condition finds it there."""
    stage = a_stage()
    stage.tell(None, P)
    info = stage.popped()
    checks: list[bool] = []

    def record(pod: Pod, *_: object) -> None:
        checks.append(stage.waits(P) and stage.world.queue.nominated_pods() != {})

    class Framework:
        record_event = staticmethod(record)

    failure = Failure(fwk.unschedulable("x"), frozenset({"X"}), nominate="n")
    handle_scheduling_failure(stage.world, Framework(), info, failure)  # type: ignore[arg-type]

    assert checks == [True]
