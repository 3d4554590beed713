"""What is told of an attempt of kube-scheduler: what it asked, what was answered, and how the pod ended.

The plugins in the tree stand for a rule of the user's.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import pytest

from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values.objects.cluster import ClusterState
from extender.values.objects.meta import Condition
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import VerbError, Verbs
from reprieve.lab.kube_scheduler import Conversation
from tests.extender.verbs.verb_calls import filtered, scored

ASKED: Final = make_pod("asked").uid("1").priority(10).req(cpu=1)
LEFT: Final = ("kube-scheduler left it", "pending: 0/3 nodes are available: 3 no.")


@dataclass
class Told:
    """A conversation about six nodes, of which a is full, and what was told."""

    attempts: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.conversation = Conversation("MyRule", lambda pod, rows: self.attempts.append((pod, rows)))
        low = make_pod("low").uid("low").req(cpu=1).node("a").obj()
        state = ClusterState(nodes=[make_node(name).capacity(cpu=1).obj() for name in "abcdef"], pods=[low])
        self.verbs: Verbs = make_verbs(state, reporter=self.conversation)

    def ends(self, pod: PodBuilder, *, node: str = "", nominated: str = "") -> list[tuple[str, str]]:
        message = "0/3 nodes are available: 3 no."
        condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        after = pod.node(node) if node else pod._status(conditions=(condition,), nominated_node_name=nominated)
        self.conversation.changed(pod.obj(), after.obj())
        name, rows = self.attempts.pop()
        assert name == pod.obj().key
        return rows


def test_a_bound_pod() -> None:
    stage = Told()
    filtered(stage.verbs, ASKED.obj(), node_names=["a", "b", "c"])
    scored(stage.verbs, ASKED.obj(), node_names=["b", "c"])

    assert stage.ends(ASKED, node="b") == [
        ("kube-scheduler offered", "3 nodes: a, b, c"),
        ("MyRule refused", "a: Insufficient cpu"),
        ("MyRule scored", "b 10, c 10"),
        ("kube-scheduler bound it", "to b"),
    ]


def test_a_rule_that_refuses_nothing_and_more_nodes_than_a_line_names() -> None:
    stage = Told()
    filtered(stage.verbs, ASKED.obj(), node_names=["b", "c", "d", "e", "f"])

    assert stage.ends(ASKED, node="b")[:2] == [
        ("kube-scheduler offered", "5 nodes: b, c, d, e and 1 more"),
        ("MyRule refused", "none"),
    ]


@pytest.mark.parametrize(
    ("node", "rows"),
    [
        ("", [("kube-scheduler offered", "no node: its own plugins refused all"), LEFT]),
        (
            "b",
            [("kube-scheduler offered", "no node: it did not call the extender"), ("kube-scheduler bound it", "to b")],
        ),
    ],
)
def test_a_pod_about_which_kube_scheduler_did_not_ask(node: str, rows: list[tuple[str, str]]) -> None:
    assert Told().ends(ASKED, node=node) == rows


def test_a_pod_that_no_node_may_have() -> None:
    stage, claiming = Told(), ASKED.claim("nowhere")
    filtered(stage.verbs, claiming.obj(), node_names=["a", "b", "c"])

    assert stage.ends(claiming) == [
        ("kube-scheduler offered", "3 nodes"),
        ("MyRule refused", 'all: persistentvolumeclaim "nowhere" not found'),
        LEFT,
    ]


def test_a_pod_that_preempts() -> None:
    stage = Told()
    filtered(stage.verbs, ASKED.obj(), node_names=["a"])
    asyncio.run(stage.verbs.preempt(ASKED.obj(), {"a": MetaVictims.of(("low",), 0)}))

    assert stage.ends(ASKED, nominated="a")[2:] == [
        ("MyRule lets evict on", "a (1 pod)"),
        ("kube-scheduler left it", f"{LEFT[1]}; it waits for a"),
    ]


def test_evictions_that_do_not_help() -> None:
    stage = Told()
    asyncio.run(stage.verbs.preempt(ASKED.priority(0).obj(), {"a": MetaVictims.of(("low",), 0)}))

    assert stage.ends(ASKED)[0] == ("MyRule lets evict on", "no node")


def test_a_verb_that_could_not_be_answered() -> None:
    stage = Told()
    with pytest.raises(VerbError):
        filtered(stage.verbs, ASKED.obj())

    assert stage.ends(ASKED) == [("MyRule failed", "neither nodes nor nodeNames given"), LEFT]


def test_only_the_last_attempt_counts_and_a_deleted_pod_is_forgotten() -> None:
    stage, other = Told(), make_pod("other").uid("2").req(cpu=2)
    for names in (["a", "b"], ["b"]):
        filtered(stage.verbs, ASKED.obj(), node_names=names)
    filtered(stage.verbs, other.obj(), node_names=["a"])
    stage.conversation.changed(other.obj(), None)

    assert stage.ends(ASKED, node="b")[0] == ("kube-scheduler offered", "1 node: b")
    assert stage.ends(other)[0] == ("kube-scheduler offered", "no node: its own plugins refused all")
