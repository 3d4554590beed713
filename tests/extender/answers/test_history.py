"""What was recorded reads as kube-scheduler and the live answers put it."""

import msgspec
import numpy as np
import pytest

from extender.answers import history
from extender.answers.explain.verdict_tables import waterfall
from extender.answers.parts import PodName
from extender.answers.records.record_store import AttemptRecord, KeptAttempt, verdict_details
from extender.answers.records.records import Records
from extender.answers.types import Attempt, ReasonCount, WaterfallStep
from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.runtime.findings import Findings
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.snapshot import Rows
from extender.testing import make_framework, make_node, make_pod, make_snapshot
from tests.extender.plugins_by_table import Looks, Refuses
from tests.kit.tables import cases
from tests.kit.told_scheduler import NOON, ToldScheduler

NO, NEVER = fwk.unschedulable("no"), fwk.unresolvable("never")
SNAPSHOT = make_snapshot(*(make_node(name) for name in "abcd"))


def attempt_with(findings: Findings) -> Attempt:
    details = msgspec.msgpack.encode(verdict_details(findings, refuses_all=True))
    record = AttemptRecord(1, 0.0, PodName("default", "p"), "default-scheduler", "Unschedulable")
    return history.attempt(KeptAttempt(record, details), picture=True)


def refused_by(*plugins: fwk.Plugin) -> Findings:
    with pytest.raises(FitError) as caught:
        SchedulingAlgorithm().schedule_pod(Cycle(make_framework(*plugins), SNAPSHOT, make_pod().obj()))
    return caught.value.findings


@cases(
    "plugins",
    ("two Filters", (Refuses("A", {"a": NO, "b": NEVER}), Refuses("B", {"a": NO, "c": NO, "d": NEVER}))),
    ("PreFilter narrows", (Looks("P", fwk.SUCCESS, "a", "c"), Refuses("A", {"a": NO, "c": NEVER}))),
    ("PreFilter refuses for good", (Looks("P", NEVER),)),
    ("PreFilter refuses", (Looks("P", NO),)),
    ("PreFilter leaves nothing", (Looks("P", fwk.SUCCESS, "*"),)),
)
async def test_the_waterfall_is_that_of_the_live_explanation(plugins: tuple[fwk.Plugin, ...]) -> None:
    framework = make_framework(*plugins)

    recorded = attempt_with(refused_by(*plugins)).waterfall

    live = waterfall(await evaluate(Cycle(framework, SNAPSHOT, make_pod().obj(), NO_NOMINATIONS)))

    assert recorded == live
    assert sum(step.refused for step in recorded) == 4


def test_refusals_of_extenders_are_the_last_step_of_the_waterfall() -> None:
    rows = Rows.of(SNAPSHOT)
    verdicts = fwk.Verdicts(np.array([2, 0, 0, 0], np.int8), (("no", rows.node == 0),), (("A", rows.node == 0),))
    statuses = {"b": fwk.unschedulable("licence"), "c": fwk.unresolvable("licence")}

    steps = attempt_with(Findings(rows, verdicts, by_extenders=statuses)).waterfall

    assert steps[-1] == WaterfallStep(
        plugin="extenders", reasons=(ReasonCount(reason="licence", nodes=2),), refused=3, unresolvable=1, left=0
    )  # fmt: skip


def test_nodes_that_were_not_asked_about_are_no_step() -> None:
    rows = Rows.of(SNAPSHOT, np.array([1, 2]))

    (step,) = attempt_with(
        Findings(rows, fwk.Verdicts(np.array([2, 0], np.int8), (), (("A", np.array([True, False])),)))
    ).waterfall

    assert (step.plugin, step.refused, step.left) == ("A", 1, 1)


def test_picture_shows_the_first_plugin_that_refused_each_node() -> None:
    findings = refused_by(Refuses("A", {"a": NO, "b": NEVER}), Refuses("B", {"a": NO, "c": NO, "d": NO}))

    picture = attempt_with(findings).picture

    assert picture is not None
    assert picture.plugins == ("A", "B")
    assert picture.nodes == ("a", "b", "c", "d")
    verdicts = [(verdict.plugin, verdict.code, verdict.reasons) for verdict in picture.verdicts]
    assert [[verdicts[cell] if cell >= 0 else None for cell in cells] for cells in picture.cells] == [
        [("A", "Unschedulable", ("no",)), None],
        [("A", "UnschedulableAndUnresolvable", ("never",)), None],
        [None, ("B", "Unschedulable", ("no",))],
        [None, ("B", "Unschedulable", ("no",))],
    ]


def test_attempt_without_filters_has_no_picture() -> None:
    assert attempt_with(refused_by(Looks("P", NO))).picture is None


async def test_a_decision_tells_the_best_nodes() -> None:
    records = Records(now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    scheduling.comes(*(make_node(name).capacity(cpu=2, pods=10) for name in "ab"), make_pod("p").uid("p").req(cpu=1))
    await scheduling.decides()

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.time, answer.outcome, answer.number) == ("2026-01-01T12:00:00.000Z", "Scheduled", 1)
    assert answer.scores[0].node == answer.node
    assert "NodeResourcesFit" in answer.scores[0].plugins
    assert all(score.total == sum(part.weighted for part in score.plugins.values()) for score in answer.scores)
    assert {score.node for score in answer.scores} == {"a", "b"}
    assert answer.preemption is None


async def test_a_preemption_tells_why_the_others_lost() -> None:
    records = Records(now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    scheduling.comes(
        *(make_node(name).capacity(cpu=2, pods=10) for name in "ab"),
        make_pod("low").uid("low").req(cpu=2).node("a"),
        make_pod("higher").uid("higher").req(cpu=2).priority(5).node("b"),
        make_pod("high").uid("high").req(cpu=2).priority(9),
    )
    await scheduling.decides()

    (record,), (attempt,) = map(history.preemption, records.preemptions()), map(history.attempt, records.attempts())
    assert (record.by.name, record.node, record.outcome) == ("high", "a", "told")
    assert [victim.pod.name for victim in record.victims] == ["low"]
    assert [(candidate.node, candidate.why_not) for candidate in record.candidates] == [
        ("a", ""),
        ("b", "its most important victim has priority 5, on a it is 0"),
    ]
    assert attempt.preemption is not None
    assert (attempt.preemption.eligible, attempt.preemption.node) == (True, "a")
    assert attempt.preemption.candidates == record.candidates


async def test_record_of_a_pod_that_may_not_preempt_has_the_reason() -> None:
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(
        make_node("a").capacity(cpu=1, pods=9), make_pod("p").uid("p").req(cpu=2).priority(9).preemption_policy("Never")
    )
    await scheduling.decides()

    (answer,) = map(history.attempt, records.attempts())
    assert answer.preemption is not None
    assert answer.preemption.eligible is False
    assert answer.preemption.message == "not eligible due to preemptionPolicy=Never."
    assert answer.preemption.not_helpful == ()
