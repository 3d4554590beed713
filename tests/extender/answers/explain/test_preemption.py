"""What preemption would do for a pod, told from the dry run's outcome."""

import asyncio

import msgspec

from extender.answers.explain.preemption import preemption_answer
from extender.answers.parts import PodName, Victim
from extender.answers.types import PreemptionAnswer, ReasonCount
from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.framework import PreemptionOutcome
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, PodBuilder, make_framework, make_node, make_pod, make_snapshot
from extender.values.config.plugin_args import DefaultPreemptionArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import PodDisruptionBudgetSpec
from extender.values.objects.meta import Condition, LabelSelector, LabelSelectorRequirement, OwnerReference
from extender.values.objects.pod import Pod
from tests.kit.owners import make_budget
from tests.kit.tables import cases

PENDING = make_pod("urgent").req(cpu="4").priority(1000)


def node(name: str) -> NodeBuilder:
    return make_node(name).capacity(cpu="4")


def running(name: str, on: str, priority: int = 0, cpu: str = "4") -> PodBuilder:
    return make_pod(name).req(cpu=cpu).node(on).priority(priority).start_time("2026-01-01T09:00:00Z")


def outcome_of(snapshot: Snapshot, pod: Pod) -> PreemptionOutcome:
    """What DefaultPreemption finds out when it may look at every node."""
    every_node = DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0)
    framework = make_framework(NodeAffinity, NodeResourcesFit, lambda _, handle: DefaultPreemption(every_node, handle))
    outcome = asyncio.run(evaluate(Cycle(framework, snapshot, pod, NO_NOMINATIONS))).preemption
    assert outcome is not None
    return outcome


def answered(snapshot: Snapshot, pod: Pod, limit: int = 20) -> PreemptionAnswer:
    return preemption_answer(outcome_of(snapshot, pod), snapshot, pod, 0.0, limit)


def test_victim_is_described_with_its_owner_and_start_time() -> None:
    owner = OwnerReference(kind="ReplicaSet", name="web-5d", uid="u", controller=True)
    victim = running("web-1", "a", priority=7).obj()
    victim = replaced(
        victim, metadata=replaced(victim.metadata, owner_references=[OwnerReference(kind="Other", name="x"), owner])
    )

    answer = answered(make_snapshot(node("a"), pods=[victim]), PENDING.obj())

    assert answer.node == "a"
    assert answer.victims == (
        Victim(
            pod=PodName(namespace="default", name="web-1", uid="default/web-1", priority=7),
            started="2026-01-01T09:00:00Z",
            owner="ReplicaSet/web-5d",
            cpu=4000,
        ),
    )


def test_the_chosen_node_comes_first_then_the_others_each_with_why_it_lost() -> None:
    snapshot = make_snapshot(
        *map(node, "abcd"),
        pods=[
            running("a1", "a", priority=50),
            running("b1", "b", priority=10),
            running("c1", "c", priority=10),
            running("d1", "d", priority=5).label(app="db"),
        ],
        objects=[make_budget("db", 0, app="db")],
    )

    answer = answered(snapshot, PENDING.obj())
    chosen = answer.candidates[0].node

    assert (answer.node, answer.num_candidates, answer.num_pdb_violations) == (chosen, 4, 0)
    assert [one.why_not for one in answer.candidates] == [
        "",
        f"ties with {chosen} on every criterion",
        f"its most important victim has priority 50, on {chosen} it is 10",
        f"1 PodDisruptionBudget violation, none on {chosen}",
    ]
    assert {one.node for one in answer.candidates[:2]} == {"b", "c"}
    assert answer.message == ""


def test_budgets_are_named_for_the_victims_that_break_them() -> None:
    """Counted as the dry run counts: in order of importance, over all that might go. The allowance goes to the more
    important pod.
    """
    snapshot = make_snapshot(
        node("a"),
        pods=[
            running("old", "a", priority=2, cpu="2").label(app="web", tier="front"),
            running("new", "a", cpu="2").label(app="web"),
        ],
        objects=[
            make_budget("web", 1, app="web"),
            make_budget("front", 0, tier="front"),
            make_budget("back", 0, tier="back"),
        ],
    )

    answer = answered(snapshot, PENDING.obj())

    assert [(victim.pod.name, victim.violates) for victim in answer.victims] == [("old", ("front",)), ("new", ("web",))]
    assert answer.num_pdb_violations == 2


def test_budgets_that_ask_for_no_label_are_named_for_pods_without_labels() -> None:
    no_app = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "DoesNotExist", [])])
    bare = replaced(make_budget("bare", 0), spec=PodDisruptionBudgetSpec(selector=no_app))
    pods = [running("web", "a", priority=2, cpu="2").label(app="web"), running("unlabelled", "a", cpu="2")]
    snapshot = make_snapshot(node("a"), pods=pods, objects=[make_budget("all", 1), bare])

    answer = answered(snapshot, PENDING.obj())

    violated = [(victim.pod.name, victim.violates) for victim in answer.victims]
    assert violated == [("web", ()), ("unlabelled", ("all", "bare"))]
    assert answer.num_pdb_violations == 1


def test_a_pod_that_stays_takes_from_the_allowance_all_the_same() -> None:
    """The more important one is reprieved, and yet the one disruption that is allowed was counted for it."""
    pods = [running("old", "a", priority=2, cpu="1").label(app="web"), running("new", "a", cpu="3").label(app="web")]
    snapshot = make_snapshot(node("a"), pods=pods, objects=[make_budget("web", 1, app="web")])

    answer = answered(snapshot, make_pod("urgent").req(cpu="3").priority(1000).obj())

    assert [(victim.pod.name, victim.violates) for victim in answer.victims] == [("new", ("web",))]
    assert answer.num_pdb_violations == 1


def test_not_all_candidates_of_a_large_cluster_are_spelled_out() -> None:
    names = [f"n{number:02}" for number in range(30)]
    snapshot = make_snapshot(
        *map(node, names), pods=[running(f"p-{name}", name, priority=priority) for priority, name in enumerate(names)]
    )

    answer = answered(snapshot, PENDING.obj(), limit=3)

    assert answer.num_candidates == 30
    assert [one.node for one in answer.candidates] == ["n00", "n01", "n02"]


@cases(
    "pod, message",
    ("its policy", PENDING.preemption_policy("Never"), "not eligible due to preemptionPolicy=Never."),
    (
        "its victims are leaving",
        PENDING.nominated_node("a"),
        "not eligible due to a terminating pod on the nominated node.",
    ),
)
def test_a_pod_that_may_not_preempt(pod: PodBuilder, message: str) -> None:
    leaving = running("leaving", "a").terminating().obj()
    target = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    status = replaced(leaving.status, conditions=[target])
    snapshot = make_snapshot(node("a"), pods=[replaced(leaving, status=status)])

    answer = answered(snapshot, pod.obj())

    assert answer == PreemptionAnswer(eligible=False, message=message)


def test_nodes_that_stay_closed_are_counted_by_reason() -> None:
    """Every node is a candidate or is counted here."""
    snapshot = make_snapshot(
        node("a").label(disk="ssd"),
        node("b").label(disk="ssd"),
        node("c"),
        pods=[
            running("a1", "a", priority=2000),
            running("b1", "b", priority=2000, cpu="2"),
            running("b2", "b", cpu="2"),
        ],
    )

    answer = answered(snapshot, PENDING.node_selector(disk="ssd").obj())

    assert answer.not_helpful == (
        ReasonCount(reason="Insufficient cpu", nodes=1),
        ReasonCount(reason="No preemption victims found for incoming pod", nodes=1),
        ReasonCount(reason="Preemption is not helpful for scheduling", nodes=1),
    )
    assert answer.eligible
    assert (answer.node, answer.victims, answer.candidates) == ("", (), ())
    assert answer.message.startswith("0/3 nodes are available: ")


def test_an_extender_that_failed_is_why_no_candidate_was_chosen() -> None:
    snapshot = make_snapshot(node("a"), pods=[running("a1", "a")])
    outcome = outcome_of(snapshot, PENDING.obj())
    failed = msgspec.structs.replace(
        outcome, status=fwk.error("the extender is down"), chosen=None, best=None, nominated_node=None
    )

    answer = preemption_answer(failed, snapshot, PENDING.obj(), 0.0)

    assert (answer.node, answer.victims, answer.message) == ("", (), "the extender is down")
    assert [(one.node, one.why_not) for one in answer.candidates] == [("a", "the extender is down")]
