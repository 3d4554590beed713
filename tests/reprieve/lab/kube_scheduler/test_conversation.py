"""What is told of an attempt of kube-scheduler: what it asked, what was answered, and how the pod ended.

The plugins in the tree stand for a rule of the user's.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import pytest

from extender.engine.reporter import Decided
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values.objects.cluster import ClusterState
from extender.values.objects.meta import Condition
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import VerbError, Verbs
from reprieve.lab.kube_scheduler import Conversation, ExtendedAttempt
from tests.extender.verbs.verb_calls import filtered, scored

ASKED: Final = make_pod("asked").uid("1").priority(10).req(cpu=1)
REFUSED: Final = Decided(status="Unschedulable", message="0/3 nodes are available: 3 no.")


@dataclass
class Told:
    """A conversation about three nodes, of which a is full, and what was told."""

    attempts: list[ExtendedAttempt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.conversation = Conversation(self.attempts.append)
        low = make_pod("low").uid("low").req(cpu=1).node("a").obj()
        state = ClusterState(nodes=[make_node(name).capacity(cpu=1).obj() for name in "abc"], pods=[low])
        self.verbs: Verbs = make_verbs(state, reporter=self.conversation)

    def ends(self, pod: PodBuilder, *, node: str = "", nominated: str = "") -> ExtendedAttempt:
        condition = Condition(type="PodScheduled", status="False", reason=REFUSED.status, message=REFUSED.message)
        after = pod.node(node) if node else pod._status(conditions=(condition,), nominated_node_name=nominated)
        self.conversation.changed(pod.obj(), after.obj())
        return self.attempts.pop()


def test_a_bound_pod() -> None:
    told = Told()
    filtered(told.verbs, ASKED.obj(), node_names=["c", "a", "b"])
    scored(told.verbs, ASKED.obj(), node_names=["c", "b"])

    found = told.ends(ASKED, node="b")

    assert (found.pod, found.decided) == ("default/asked", Decided(node="b"))
    assert (found.num_offered, sorted(found.offered)) == (3, ["a", "b", "c"])
    assert found.refused == (("Insufficient cpu", ("a",)),)
    assert sorted(found.scores) == [("b", 10), ("c", 10)]
    assert (found.evictions, found.error) == (None, "")


def test_a_pod_about_which_kube_scheduler_did_not_ask() -> None:
    assert Told().ends(ASKED) == ExtendedAttempt(pod="default/asked", decided=REFUSED)


def test_a_pod_that_a_whole_cluster_cannot_take_is_refused_without_names() -> None:
    told, claiming = Told(), ASKED.claim("nowhere")
    filtered(told.verbs, claiming.obj(), node_names=["a", "b", "c"])

    found = told.ends(claiming)

    assert found.num_offered == 3
    assert found.refused == (('persistentvolumeclaim "nowhere" not found', ()),)


def test_a_pod_that_preempts() -> None:
    told = Told()
    filtered(told.verbs, ASKED.obj(), node_names=["a"])
    asyncio.run(told.verbs.preempt(ASKED.obj(), {"a": MetaVictims.of(("low",), 0)}))

    found = told.ends(ASKED, nominated="a")

    assert (found.evictions, found.decided.nominated) == ((("a", 1),), "a")


def test_a_verb_that_could_not_be_answered() -> None:
    told = Told()
    with pytest.raises(VerbError):
        filtered(told.verbs, ASKED.obj())

    assert told.ends(ASKED).error == "neither nodes nor nodeNames given"


def test_only_the_last_attempt_counts_and_a_deleted_pod_is_forgotten() -> None:
    told, other = Told(), make_pod("other").uid("2").req(cpu=2)
    for names in (["a", "b"], ["b"]):
        filtered(told.verbs, ASKED.obj(), node_names=names)
    filtered(told.verbs, other.obj(), node_names=["a"])
    told.conversation.changed(other.obj(), None)

    assert told.ends(ASKED, node="b").offered == ("b",)
    assert told.ends(other).num_offered is None
