"""What kube-scheduler asks is remembered, too, and so are the victims that it was given, once it says which node it
took.
"""

import asyncio

import pytest

from extender.answers import history
from extender.answers.records.record_store import BEST_NODES, Limits
from extender.answers.records.records import Records
from extender.answers.types import NodeScore
from extender.engine.framework import status as fwk_status
from extender.engine.queue import QueuedPodInfo
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values import limits
from extender.values.objects.cluster import ClusterState
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import VerbError, Verbs
from tests.extender.verbs.verb_calls import filtered, scored
from tests.kit.told_scheduler import ToldScheduler

ASKED = make_pod("asked").uid("asked").req(cpu=1).priority(9)
LOW, LOWER = make_pod("low").uid("low").req(cpu=1).priority(1), make_pod("lower").uid("lower").req(cpu=1)


def engine(records: Records, *pods: PodBuilder) -> Verbs:
    """Nodes a and b, each with room for one pod."""
    nodes = [make_node(name).capacity(cpu=1, pods=10).obj() for name in "ab"]
    return make_verbs(ClusterState(nodes=nodes, pods=[pod.obj() for pod in pods]), reporter=records)


def test_a_filter_is_kept_with_every_nodes_verdict() -> None:
    records = Records()
    filtered(engine(records, LOW.node("b")), ASKED.obj(), node_names=["b", "a", "c"])

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.pod.name, answer.number) == ("Filter", "asked", 0)
    assert (answer.evaluated, answer.feasible) == (3, 1)
    (step,) = answer.waterfall
    assert (step.plugin, step.refused, step.left) == ("NodeResourcesFit", 1, 1)
    (attempt,) = records.attempts()
    picture = history.attempt(attempt, picture=True).picture
    assert picture is not None
    assert dict(zip(picture.nodes, picture.cells, strict=True)) == {"a": (-1,), "b": (0,)}


def test_a_filter_that_was_answered_before_any_node_was_looked_at() -> None:
    records = Records()
    claim = ASKED.claim("missing")
    filtered(engine(records), claim.obj(), node_names=["a"])

    (answer,) = map(history.attempt, records.attempts())
    assert answer.message == 'persistentvolumeclaim "missing" not found'
    assert [(step.reasons[0].reason, step.left) for step in answer.waterfall] == [(answer.message, 0)]


def test_best_scores_of_a_prioritize_call_are_kept() -> None:
    records = Records()
    small = make_pod("small").req(cpu="100m")
    scored(engine(records, LOW.node("b")), small.obj(), node_names=["b", "a", "c"])

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.evaluated) == ("Prioritize", 3)
    assert [score.node for score in answer.scores] == ["a", "b", "c"]
    assert answer.scores[0] == NodeScore(node="a", total=10, others=10)
    assert [score.total for score in answer.scores] == [10, 0, 0]


def test_only_the_best_of_many_nodes_are_kept() -> None:
    records = Records()
    many = [f"unknown-{number}" for number in range(1000)]
    scored(engine(records), ASKED.obj(), node_names=[*many, "b", "a"])

    (answer,) = map(history.attempt, records.attempts())
    assert [score.node for score in answer.scores][:3] == ["b", "a", "unknown-0"]
    assert len(answer.scores) == BEST_NODES


def test_a_question_without_an_answer_is_an_error() -> None:
    records = Records()

    with pytest.raises(VerbError):
        filtered(engine(records), ASKED.obj())

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.message) == ("Error", "neither nodes nor nodeNames given")


def asked_to_preempt(records: Records) -> Verbs:
    verbs = engine(records, LOW.node("a"), LOWER.node("b"))
    asyncio.run(verbs.preempt(ASKED.obj(), {"a": MetaVictims.of(("low",), 0), "b": MetaVictims.of(("lower",), 0)}))
    return verbs


def test_candidates_are_kept_before_a_node_is_chosen() -> None:
    records = Records()
    asked_to_preempt(records)

    (record,) = records.preemptions()
    assert (record.by.name, record.node, record.victims, record.outcome) == ("asked", "", (), "deciding")
    assert [(room.node, [victim.pod.name for victim in room.victims]) for room in record.candidates] == [
        ("b", ["lower"]),
        ("a", ["low"]),
    ]
    assert records.who_preempted("default/lower") is None


def test_nomination_decides_which_victims_are_recorded() -> None:
    """kube-scheduler writes it into the preemptor's status."""
    records = Records()
    verbs = asked_to_preempt(records)
    verbs.changed(ASKED.obj(), ASKED.nominated_node("a").obj())

    (record,) = records.preemptions()
    assert (record.node, record.outcome, [victim.pod.name for victim in record.victims]) == ("a", "told", ["low"])
    assert [room.node for room in record.candidates] == ["a", "b"]
    assert records.who_preempted("default/low") == record
    assert records.who_preempted("default/lower") is None


def test_nomination_is_recorded_once() -> None:
    records = Records()
    verbs = asked_to_preempt(records)
    promised = ASKED.nominated_node("a")
    verbs.changed(ASKED.obj(), promised.obj())
    version = records.version
    verbs.changed(promised.obj(), promised.label(touched="yes").obj())
    verbs.changed(promised.obj(), promised.node("a").obj())

    assert records.version == version


def test_nomination_to_a_node_that_was_not_asked_about_has_no_victims() -> None:
    records = Records()
    verbs = asked_to_preempt(records)
    verbs.changed(ASKED.obj(), ASKED.nominated_node("c").obj())

    (record,) = records.preemptions()
    assert (record.node, record.outcome, record.victims) == ("c", "told", ())
    assert len(record.candidates) == 2


def test_preempt_call_without_a_helpful_node_keeps_no_preemption() -> None:
    records = Records()
    asyncio.run(engine(records).preempt(ASKED.obj(), {"nowhere": MetaVictims.of((), 0)}))

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.evaluated, answer.feasible) == ("Preempt", 1, 0)
    assert list(records.preemptions()) == []


# What is asked is kept apart from what is decided here.


def decided(records: Records, pod: PodBuilder = ASKED, node: str = "a") -> None:
    records.decided(QueuedPodInfo(pod.obj(), 0.0), "default-scheduler", node, 2, 1, 0.001)


def outcomes(records: Records) -> list[tuple[str, str]]:
    return [(attempt.record.outcome, attempt.record.caller) for attempt in records.attempts()]


def test_a_call_is_marked_with_its_caller_and_an_attempt_is_not() -> None:
    records = Records()
    decided(records)
    verbs = engine(records, LOW.node("a"), LOWER.node("b"))
    filtered(verbs, ASKED.obj(), node_names=["a"], caller="system:kube-scheduler")
    scored(verbs, ASKED.obj(), node_names=["a"], caller="anonymous at 10.0.0.9")
    asyncio.run(verbs.preempt(ASKED.obj(), {"a": MetaVictims.of(("low",), 0)}, caller="system:kube-scheduler"))
    with pytest.raises(VerbError):
        filtered(verbs, ASKED.obj(), caller="anonymous at 10.0.0.9")
    decided(records, LOW)

    callers = [
        "",
        "anonymous at 10.0.0.9",
        "system:kube-scheduler",
        "anonymous at 10.0.0.9",
        "system:kube-scheduler",
        "",
    ]
    assert [attempt.caller for attempt in map(history.attempt, records.attempts())] == callers
    assert [item.caller for item in map(history.preemption, records.preemptions())] == ["system:kube-scheduler"]
    assert [attempt.record.id for attempt in records.attempts(before=6)] == [5, 4, 3, 2, 1]
    assert records.oldest == 1


def test_calls_cannot_push_out_what_was_decided_here() -> None:
    records = Records(Limits(attempts=3, preemptions=2), limits_of_calls=Limits(attempts=4, preemptions=2))
    for name in ("x", "y", "z"):
        decided(records, make_pod(name).uid(name))
    verbs = engine(records, LOW.node("a"))
    for number in range(50):
        pod = make_pod(f"forged-{number}").uid(f"forged-{number}").req(cpu=1).priority(9)
        asyncio.run(verbs.preempt(pod.obj(), {"a": MetaVictims.of(("low",), 0)}, caller="anonymous at 10.0.0.9"))

    assert outcomes(records) == [("Preempt", "anonymous at 10.0.0.9")] * 4 + [("Scheduled", "")] * 3
    assert len(list(records.preemptions())) == 2


def test_calls_with_huge_names_take_no_more_memory_than_others() -> None:
    records = Records(limits_of_calls=Limits(size=2**20))
    huge = "x" * 20_000
    pod = make_pod("p").uid(huge).req(cpu=99).scheduler_name(huge).claim(huge).obj()
    verbs = engine(records)
    for _ in range(20):
        filtered(verbs, pod, node_names=["a"], caller=huge)
        scored(verbs, make_pod("q").obj(), node_names=["a", huge])

    assert records.size <= 2**20
    record = next(attempt.record for attempt in records.attempts() if attempt.record.outcome == "Filter")
    assert {len(record.pod.uid), len(record.profile), len(record.caller)} == {limits.CALL_NAME_CHARACTERS}
    assert len(record.message) == limits.CALL_MESSAGE_CHARACTERS


def test_a_failed_binding_is_noted_at_the_attempt_and_not_at_a_later_call() -> None:
    records = Records()
    decided(records)
    filtered(engine(records), ASKED.obj(), node_names=["a"], caller="anonymous at 10.0.0.9")
    records.binding_failed(ASKED.obj(), fwk_status.error("the API server said no"))

    assert outcomes(records) == [("Filter", "anonymous at 10.0.0.9"), ("Error", "")]


async def test_a_call_cannot_claim_the_nomination_of_a_pod_that_is_decided_here() -> None:
    """Its victims would be shown as those that were preempted."""
    records = Records()
    scheduling = ToldScheduler(records)
    scheduling.comes(make_node("a").capacity(cpu=1, pods=10), LOW.node("a"), ASKED)
    await scheduling.decides()
    verbs = engine(records, LOWER.node("a"))
    await verbs.preempt(ASKED.obj(), {"a": MetaVictims.of(("lower",), 0)}, caller="anonymous at 10.0.0.9")
    verbs.changed(ASKED.obj(), ASKED.nominated_node("a").obj())

    assert records.who_preempted("default/lower") is None
    record = records.who_preempted("default/low")
    assert record is not None
    assert record.caller == ""
