"""What kube-scheduler asks is remembered, too, and so are the victims that it was given, once it says which node it took."""

import pytest

from extender.answers import history
from extender.answers.types import NodeScore
from extender.objects.cluster import ClusterState
from extender.protocol.wire_types import MetaVictims
from extender.records.records import BEST_OF_ASKED, Records
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.verbs import VerbError, Verbs

ASKED = make_pod("asked").uid("asked").req(cpu=1).priority(9)
LOW, LOWER = make_pod("low").uid("low").req(cpu=1).priority(1), make_pod("lower").uid("lower").req(cpu=1)


def engine(records: Records, *pods: PodBuilder) -> Verbs:
    """
    Nodes a and b, each with room for one pod.
    """
    nodes = [make_node(name).capacity(cpu=1, pods=10).obj() for name in "ab"]
    return make_verbs(ClusterState(nodes=nodes, pods=[pod.obj() for pod in pods]), reporter=records)


def test_a_filter_is_kept_with_every_nodes_verdict() -> None:
    records = Records()
    engine(records, LOW.node("b")).filter(ASKED.obj(), node_names=["b", "a", "c"])

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.pod.name, answer.number, answer.evaluated, answer.feasible) == ("Filter", "asked", 0, 3, 1)
    (step,) = answer.waterfall
    assert (step.plugin, step.refused, step.left) == ("NodeResourcesFit", 1, 1)
    (attempt,) = records.attempts()
    assert attempt.details is not None
    assert attempt.details.verdicts is not None
    ((_, bits),) = attempt.details.verdicts.refused_by
    assert attempt.details.verdicts.mask(bits).tolist() == [False, True]


def test_a_filter_that_was_answered_before_any_node_was_looked_at() -> None:
    records = Records()
    claim = ASKED.claim("missing")
    engine(records).filter(claim.obj(), node_names=["a"])

    (answer,) = map(history.attempt, records.attempts())
    assert answer.message == 'persistentvolumeclaim "missing" not found'
    assert [(step.reasons[0].reason, step.left) for step in answer.waterfall] == [(answer.message, 0)]


def test_of_scores_that_were_asked_for_the_best_are_kept() -> None:
    records = Records()
    small = make_pod("small").req(cpu="100m")
    engine(records, LOW.node("b")).prioritize(small.obj(), node_names=["b", "a", "c"])

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.evaluated) == ("Prioritize", 3)
    assert [score.node for score in answer.scores] == ["a", "b", "c"]
    assert answer.scores[0] == NodeScore(node="a", total=10)
    assert 10 > answer.scores[1].total > answer.scores[2].total == 0


def test_of_many_nodes_only_the_best_are_kept() -> None:
    records = Records()
    many = [f"unknown-{number}" for number in range(1000)]
    engine(records).prioritize(ASKED.obj(), node_names=[*many, "b", "a"])

    (answer,) = map(history.attempt, records.attempts())
    assert [score.node for score in answer.scores][:3] == ["b", "a", "unknown-0"]
    assert len(answer.scores) == BEST_OF_ASKED


def test_a_question_without_an_answer_is_an_error() -> None:
    records = Records()

    with pytest.raises(VerbError):
        engine(records).filter(ASKED.obj())

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.message) == ("Error", "neither nodes nor nodeNames given")


def asked_to_preempt(records: Records) -> Verbs:
    asked = engine(records, LOW.node("a"), LOWER.node("b"))
    asked.preempt(ASKED.obj(), {"a": MetaVictims.of(("low",), 0), "b": MetaVictims.of(("lower",), 0)})
    return asked


def test_who_would_have_to_go_is_kept_although_nobody_has_been_chosen() -> None:
    records = Records()
    asked_to_preempt(records)

    (made,) = records.preemptions()
    assert (made.by.name, made.node, made.victims, made.outcome) == ("asked", "", (), "deciding")
    assert [(room.node, [victim.pod.name for victim in room.victims]) for room in made.candidates] == [("b", ["lower"]), ("a", ["low"])]
    assert records.who_preempted("default/lower") is None


def test_the_promise_says_which_victims_it_were() -> None:
    """
    kube-scheduler writes it into the preemptor's status.
    """
    records = Records()
    asked = asked_to_preempt(records)
    asked.changed(ASKED.obj(), ASKED.nominated_node("a").obj())

    (made,) = records.preemptions()
    assert (made.node, made.outcome, [victim.pod.name for victim in made.victims]) == ("a", "told", ["low"])
    assert [room.node for room in made.candidates] == ["a", "b"]
    assert records.who_preempted("default/low") == made
    assert records.who_preempted("default/lower") is None


def test_a_promise_is_told_once() -> None:
    records = Records()
    asked = asked_to_preempt(records)
    promised = ASKED.nominated_node("a")
    asked.changed(ASKED.obj(), promised.obj())
    version = records.version
    asked.changed(promised.obj(), promised.label(touched="yes").obj())
    asked.changed(promised.obj(), promised.node("a").obj())

    assert records.version == version


def test_a_promise_on_a_node_that_nobody_asked_about_names_no_victims() -> None:
    records = Records()
    asked = asked_to_preempt(records)
    asked.changed(ASKED.obj(), ASKED.nominated_node("c").obj())

    (made,) = records.preemptions()
    assert (made.node, made.outcome, made.victims) == ("c", "told", ())
    assert len(made.candidates) == 2


def test_nothing_is_kept_of_a_question_about_no_node_that_helps() -> None:
    records = Records()
    engine(records).preempt(ASKED.obj(), {"nowhere": MetaVictims.of((), 0)})

    (answer,) = map(history.attempt, records.attempts())
    assert (answer.outcome, answer.evaluated, answer.feasible) == ("Preempt", 1, 0)
    assert list(records.preemptions()) == []
