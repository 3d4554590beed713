"""One sentence about a pod that waits."""

import asyncio

from extender.answers.explain.explanation import summary
from extender.answers.explain.preemption import preemption_answer
from extender.answers.explain.verdict_tables import waterfall
from extender.answers.phrases import why_no_room
from extender.answers.types import PreemptionAnswer
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.taints import NodeUnschedulable
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, PodBuilder, make_framework, make_node, make_pod, make_snapshot, name_term
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import PodDisruptionBudget, PodDisruptionBudgetSpec
from extender.values.objects.meta import Condition, LabelSelector, ObjectMeta
from tests.kit.tables import cases

FRAMEWORK = make_framework(NodeUnschedulable, NodeAffinity, NodeResourcesFit, DefaultPreemption)
NO_PREEMPTION = make_framework(NodeUnschedulable, NodeAffinity, NodeResourcesFit)


def sentence(snapshot: Snapshot, pod: PodBuilder, *, preempts: bool = True) -> str:
    evaluation = asyncio.run(
        evaluate(Cycle(FRAMEWORK if preempts else NO_PREEMPTION, snapshot, pod.obj(), NO_NOMINATIONS))
    )
    preemption = (
        None if evaluation.preemption is None else preemption_answer(evaluation.preemption, snapshot, pod.obj(), 0.0)
    )
    return summary(pod.obj(), evaluation, waterfall(evaluation), preemption)


def nodes(*names: str) -> list[NodeBuilder]:
    return [make_node(name).capacity(cpu=4) for name in names]


def test_a_pod_that_fits_somewhere() -> None:
    busy = make_snapshot(*nodes("a", "b", "c"), pods=[make_pod("p").req(cpu=2).node("a")])
    single = make_snapshot(*nodes("a"))

    assert sentence(busy, make_pod().req(cpu=1)) == "It fits on 3 of 3 nodes, best on b."
    assert sentence(single, make_pod().req(cpu=1)) == "It fits on the only node, a."


def test_a_pod_that_fits_nowhere() -> None:
    snapshot = make_snapshot(
        make_node("a").capacity(cpu=4).unschedulable(),
        *nodes("b", "c", "d"),
        make_node("e").capacity(cpu=1).label(disk="ssd"),
    )

    text = sentence(snapshot, make_pod().req(cpu=2).node_selector(disk="ssd"), preempts=False)

    assert text == "It fits on none of 5 nodes: NodeUnschedulable refuses 1, NodeAffinity 3 and NodeResourcesFit 1."


def test_a_plugin_is_named_once_whenever_it_refused() -> None:
    """The terms name two nodes, so that PreFilter leaves out the third; one of the two lacks the label."""
    both = [name_term("In", "a"), name_term("In", "b")]
    snapshot = make_snapshot(make_node("a").label(disk="ssd"), *nodes("b", "c"))

    text = sentence(snapshot, make_pod().node_affinity(*both).node_selector(disk="ssd"), preempts=False)

    assert text == "It fits on none of 3 nodes: NodeAffinity refuses 2 and NodeResourcesFit 1."


@cases(
    "pod, end",
    ("room can be made", make_pod().req(cpu=4).priority(5), "; evicting 1 pod from a would make room."),
    (
        "no pod is less important",
        make_pod().req(cpu=4),
        "; no pod of lower priority is on a node where evictions could help.",
    ),
    ("the node is too small", make_pod().req(cpu=9).priority(5), "; no eviction would make room."),
    (
        "it may not preempt",
        make_pod().req(cpu=4).priority(5).preemption_policy("Never"),
        "; it may not preempt: not eligible due to preemptionPolicy=Never.",
    ),
)
def test_summary_says_what_preemption_would_do(pod: PodBuilder, end: str) -> None:
    snapshot = make_snapshot(*nodes("a"), pods=[make_pod("p").req(cpu=2).node("a")])

    assert sentence(snapshot, pod) == f"It does not fit on the only node: NodeResourcesFit refuses it{end}"


def test_the_less_important_may_not_be_enough() -> None:
    running = [make_pod("p").req(cpu=1).node("a"), make_pod("q").req(cpu=2).node("a").priority(9)]
    snapshot = make_snapshot(*nodes("a", "b"), pods=[*running, make_pod("r").req(cpu=4).node("b").priority(9)])

    text = sentence(snapshot, make_pod().req(cpu=4).priority(5))

    assert text.endswith("NodeResourcesFit refuses 2; evicting all pods of lower priority would not make room.")


def test_an_extender_may_keep_room_from_being_made() -> None:
    failed = PreemptionAnswer(eligible=True, message="cannot reach it.", num_candidates=1)

    assert why_no_room(failed) == "preemption failed: cannot reach it"


def test_broken_budgets_are_mentioned() -> None:
    everything = PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"}))
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"), spec=everything)
    running = [make_pod(name).req(cpu=2).node("a").label(app=app) for name, app in (("p", "web"), ("q", "db"))]
    snapshot = make_snapshot(*nodes("a"), pods=running, objects=[budget])

    text = sentence(snapshot, make_pod().req(cpu=4).priority(5))

    assert text.endswith("; evicting 2 pods from a would make room, 1 of them against a PodDisruptionBudget.")


def test_a_gated_pod_is_held_back_whatever_its_chances() -> None:
    snapshot = make_snapshot(*nodes("a"))

    text = sentence(snapshot, make_pod().gate("quota"))
    assert text == "It is held back by the scheduling gate quota; apart from that, it fits on the only node, a."
    assert sentence(snapshot, make_pod().gate("x").gate("y")).startswith(
        "It is held back by the scheduling gates x and y; "
    )


def test_a_nominated_pod() -> None:
    leaving = make_pod("p").req(cpu=2).node("a").terminating().obj()
    target = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = replaced(leaving, status=replaced(leaving.status, conditions=[target]))
    waiting, free = make_snapshot(*nodes("a"), pods=[leaving]), make_snapshot(*nodes("a"))
    occupied = make_snapshot(*nodes("a"), pods=[make_pod("q").req(cpu=2).node("a").priority(9)])
    pod = make_pod().req(cpu=4).priority(5).nominated_node("a")

    assert sentence(waiting, pod) == "It is nominated to a and waits until the pods that it preempted there are gone."
    assert sentence(free, pod) == "It is nominated to a, where it fits now."
    assert sentence(occupied, pod) == (
        "It is nominated to a, where it does not fit now; "
        "it does not fit on the only node: NodeResourcesFit refuses it; "
        "no pod of lower priority is on a node where evictions could help."
    )


def test_summary_names_the_reason_when_nothing_can_be_decided() -> None:
    assert sentence(make_snapshot(), make_pod()) == "It cannot be evaluated: no nodes available to schedule pods."
