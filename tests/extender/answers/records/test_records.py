"""What a scheduler decides is remembered: attempts, and preemptions with the nodes that lost."""

import asyncio
import logging
import random
from typing import Any, NoReturn

import pytest

from extender.answers.records.record_store import KeptAttempt, Limits, picture_of
from extender.answers.records.records import Records
from extender.engine import framework as fwk
from extender.engine.queue import QueuedPodInfo
from extender.engine.reporter import NO_REPORTER, Reporter
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod
from tests.kit.owners import make_budget, owned_by
from tests.kit.tables import cases
from tests.kit.told_scheduler import NOON, ToldScheduler


def a_node(name: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=2, pods=10)


def a_pod(name: str, cpu: str = "1500m", priority: int = 0) -> PodBuilder:
    return make_pod(name).uid(f"uid-{name}").req(cpu=cpu).priority(priority)


def last(records: Records) -> KeptAttempt:
    return next(records.attempts())


async def after_deciding_about(*objects: PodBuilder | NodeBuilder) -> Records:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(*objects)
    await scheduling.decides()
    return records


# Attempts.


async def test_an_attempt_that_found_a_node() -> None:
    records = Records(now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("a"), a_node("b"), a_pod("taken").node("a"), a_pod("p", "100m"))
    await scheduling.decides()

    attempt = last(records)
    record = attempt.record
    assert (record.pod.key, record.pod.uid, record.profile, record.outcome, record.node) == (
        "default/p", "uid-p", "default-scheduler", "Scheduled", "b",
    )  # fmt: skip
    assert (record.number, record.evaluated, record.feasible, record.woken_by) == (1, 2, 2, "UnschedulablePodAdd")
    assert record.time == NOON.timestamp()
    assert attempt.details is not None
    highest, lower = attempt.details.scores
    assert (highest.node, lower.node) == ("b", "a")
    assert highest.total > lower.total


async def test_scores_are_kept_only_where_there_was_a_choice() -> None:
    records = await after_deciding_about(a_node("only"), a_pod("p"))

    assert last(records).details is None


async def test_scores_are_kept_of_a_limited_number_of_attempts_a_second() -> None:
    """Within a second: those of the next second are kept again."""
    time = [NOON.timestamp()]
    records = Records(Limits(details_a_second=2), now=lambda: time[0])
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("a"), a_node("b"), *(a_pod(f"p{number}", "1m") for number in range(5)))
    await scheduling.decides()
    time[0] += 1
    scheduling.comes(*(a_pod(f"late-{number}", "1m") for number in range(3)))
    await scheduling.decides()

    detailed = {attempt.record.pod.name for attempt in records.attempts() if attempt.details is not None}
    assert detailed == {"p0", "p1", "late-0", "late-1"}


async def test_verdicts_are_kept_of_a_limited_number_of_attempts_a_second() -> None:
    """Of the others what was said, and how many nodes were looked at."""
    records = Records(Limits(details_a_second=2), now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("a"), *(a_pod(f"p{number}", "64") for number in range(5)))
    await scheduling.decides()

    assert [attempt.details is not None for attempt in records.attempts()] == [False, False, False, True, True]
    assert len({attempt.record.message for attempt in records.attempts()}) == 1
    assert {attempt.record.evaluated for attempt in records.attempts()} == {1}


async def test_an_attempt_that_was_refused_keeps_every_nodes_verdict() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("full"), a_node("tainted").taint("key", "value"), a_pod("low").node("full"), a_pod("p"))
    await scheduling.decides()

    attempt = last(records)
    record, details = attempt.record, attempt.details
    assert (record.outcome, record.node, record.evaluated, record.feasible) == ("Unschedulable", "", 2, 0)
    (event,) = [call for call in scheduling.writes.calls if isinstance(call, fwk.RecordEvent)]
    assert record.message == event.note
    assert details is not None
    picture = picture_of(details)
    assert picture is not None
    assert picture.nodes == ("full", "tainted")
    refused = [[picture.verdicts[cell].plugin for cell in cells if cell >= 0] for cells in picture.cells]
    assert refused == [["NodeResourcesFit"], ["TaintToleration"]]


async def test_an_attempt_in_which_something_went_wrong() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("a"), a_pod("p"))
    scheduling.writes.fail(fwk.BindPod, fwk.CallError("the server is on fire"))
    await scheduling.decides(1)

    record = last(records).record
    assert (record.outcome, record.node) == ("Error", "a")
    assert "the server is on fire" in record.message


async def test_without_nodes_the_pod_is_unschedulable() -> None:
    records = await after_deciding_about(a_pod("p"))

    record = last(records).record
    assert (record.outcome, record.message) == ("Unschedulable", "no nodes available to schedule pods")
    assert last(records).details is None


async def test_attempt_records_the_event_that_woke_the_pod() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(make_node("small").capacity(cpu=1, pods=10), a_pod("p"))
    await scheduling.decides()
    scheduling.comes(a_node("a"))
    await scheduling.decides()

    second, first = (attempt.record for attempt in records.attempts("default/p"))
    assert (second.number, second.outcome, second.woken_by) == (2, "Scheduled", "NodeAdd")
    assert (first.number, first.outcome, first.woken_by) == (1, "Unschedulable", "UnschedulablePodAdd")


async def test_attempts_are_found_by_pod_and_page_by_page() -> None:
    records = await after_deciding_about(a_node("a"), *(a_pod(f"p{number}", "1m") for number in range(4)))

    newest, second, third, oldest = records.attempts()
    assert newest.record.id > second.record.id > third.record.id > oldest.record.id == records.oldest
    assert list(records.attempts(before=third.record.id)) == [oldest]
    assert list(records.attempts(second.record.pod.key)) == [second]
    assert list(records.attempts(second.record.pod.key, uid="of another")) == []
    assert list(records.attempts("default/unknown")) == []


def test_a_flood_stays_within_the_limits() -> None:
    """Whether anybody looks meanwhile or not; the newest are there."""
    records = Records(Limits(attempts=100, size=250_000))
    for number in range(1000):
        pod = make_pod(f"{'long-' * 40}{number}").uid(f"uid-{number}").obj()
        records.decided(QueuedPodInfo(pod, 0.0), "default-scheduler", "n", 1, 1, 0.001)
        assert records.size <= 250_000
        if number % 300 == 0:
            assert next(records.attempts()).record.id == number + 1

    assert [attempt.record.id for attempt in records.attempts()] == list(range(1000, 900, -1))
    assert records.size <= 250_000


# Preemptions.


async def test_a_preemption_is_kept_with_its_victims_and_the_nodes_that_lost() -> None:
    records = Records(now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    cheap = owned_by(a_pod("cheap", priority=5).node("a").start_time("2026-01-01T08:00:00Z").obj(), "Job", "work")
    scheduling.comes(
        *map(a_node, "abc"), make_budget("kept", 0, app="kept"), cheap, a_pod("dear", priority=9).node("b"),
        a_pod("kept").label(app="kept").node("c"), a_pod("high", priority=100),
    )  # fmt: skip
    await scheduling.decides()

    (record,) = records.preemptions()
    assert (record.by.key, record.by.priority, record.node, record.outcome) == ("default/high", 100, "a", "told")
    (victim,) = record.victims
    assert (victim.pod.key, victim.pod.priority, victim.owner) == ("default/cheap", 5, "Job/work")
    assert (victim.started, victim.violates) == ("2026-01-01T08:00:00Z", ())
    assert [room.node for room in record.candidates] == ["a", "b", "c"]
    assert record.candidates[2].num_pdb_violations == 1
    assert record.candidates[2].victims[0].violates == ("kept",)
    assert record.num_candidates == 3
    assert last(records).preemption == record
    assert record.id == last(records).record.id


async def test_losing_nodes_are_kept_of_a_limited_number_of_preemptions_a_second() -> None:
    """The chosen node is kept of all, with its victims and what they held."""
    records = Records(Limits(details_a_second=1), now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    running = [
        owned_by(a_pod(f"low-{node}").node(node).start_time("2026-01-01T08:00:00Z").obj(), "Job", "work")
        for node in "abc"
    ]
    scheduling.comes(*map(a_node, "abc"), *running, a_pod("first", priority=9), a_pod("second", priority=9))
    await scheduling.decides()

    second, first = records.preemptions()
    assert (first.by.key, len(first.candidates), first.num_candidates) == ("default/first", 3, 3)
    assert (second.by.key, len(second.candidates), second.num_candidates) == ("default/second", 1, 2)
    for record in (first, second):
        (chosen, *_), (victim,) = record.candidates, record.victims
        assert (chosen.node, chosen.victims) == (record.node, record.victims)
        assert (victim.pod.key, victim.owner) == (f"default/low-{record.node}", "Job/work")
        assert (victim.cpu, victim.memory, victim.started) == (1500, 0, "2026-01-01T08:00:00Z")


async def test_preemption_is_found_by_its_victim() -> None:
    records = await after_deciding_about(a_node("a"), a_pod("low").node("a"), a_pod("high", priority=100))

    (record,) = records.preemptions()
    assert records.who_preempted("default/low") == record
    assert records.who_preempted("default/high") is None
    assert list(records.preemptions("default/low")) == [record]
    assert list(records.preemptions("default/high")) == [record]
    assert list(records.preemptions("default/unknown")) == []


async def test_failed_preemption_has_no_victims() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(a_node("a"), a_pod("low").node("a"), a_pod("high", priority=100))
    scheduling.writes.fail(fwk.DeletePod, fwk.CallError("not today"))
    await scheduling.decides(1)

    (record,) = records.preemptions()
    assert record.outcome == "failed"
    assert records.who_preempted("default/low") is None


@cases(
    "pod, may_preempt, why",
    ("policy", a_pod("p", priority=9).preemption_policy("Never"), False, "not eligible due to preemptionPolicy=Never."),
    (
        "too large for every node",
        a_pod("p", cpu="64", priority=9),
        True,
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
)
async def test_reason_why_no_pod_was_preempted_is_kept(pod: PodBuilder, may_preempt: bool, why: str) -> None:
    records = await after_deciding_about(a_node("a"), a_pod("low").node("a"), pod)

    record = last(records).record
    assert (record.may_preempt, record.no_preemption) == (may_preempt, why)
    assert list(records.preemptions()) == []


# News.


async def test_waiting_readers_are_woken_by_a_new_record() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    waiting = [asyncio.ensure_future(records.news(records.version)) for _ in range(2)]
    await asyncio.sleep(1)
    assert not any(reader.done() for reader in waiting)

    scheduling.comes(a_node("a"), a_pod("p"))
    await scheduling.decides()
    await asyncio.sleep(1)

    assert [reader.result() for reader in waiting] == [records.version] * 2
    assert await records.news(0) == records.version


# What reporting must not do.


class Broken(Reporter):
    """Whatever it hears, it fails."""

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError("no ink")

    scored = refused = preemption_tried = decided = failed = binding_failed = preemption_ended = nominated = _fail
    filter_called = prioritize_called = preempt_called = call_failed = _fail


@pytest.mark.parametrize("seed", range(4))
async def test_decisions_do_not_depend_on_the_reporter(seed: int) -> None:
    async def decided_with(reporter: Reporter = NO_REPORTER) -> list[Any]:
        chance = random.Random(seed)
        scheduling = ToldScheduler(reporter)
        scheduling.comes(*(a_node(f"n{number}") for number in range(8)))
        for number in range(12):
            scheduling.comes(a_pod(f"old-{number}", f"{chance.randrange(900)}m").node(f"n{number % 8}"))
        for number in range(40):
            scheduling.comes(a_pod(f"new-{number}", f"{chance.randrange(1800)}m", priority=chance.randrange(3)))
        await scheduling.decides()
        return scheduling.writes.calls

    alone = await decided_with()

    assert {type(call) for call in alone} >= {fwk.BindPod, fwk.DeletePod}
    assert await decided_with(Records()) == alone
    assert await decided_with(Broken()) == alone


async def test_a_reporter_that_fails_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "extender.engine.reporter")
    scheduling = ToldScheduler(Broken())
    scheduling.comes(a_node("a"), a_pod("p"), a_pod("q", "64"), a_pod("r", "1m"))
    await scheduling.decides()
    assert len(scheduling.writes.bound) == 2

    (complaint,) = [record for record in caplog.records if record.name == "extender.engine.reporter"]
    assert "this is logged once" in complaint.getMessage()
    assert complaint.exc_info is not None
