"""Why a pod is where it is, or nowhere."""

import asyncio
import random

from extender.answers.explain.explanation import explain, settled, unreadable
from extender.answers.parts import PodName
from extender.answers.types import Explanation, NodeScore
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import NO_NOMINATIONS
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]


def explained(snapshot: Snapshot, pod: Pod, *, picture: bool = False) -> Explanation:
    return asyncio.run(explain(PROFILE, snapshot, pod, NO_NOMINATIONS, picture=picture))


def node(name: str, cpu: int = 4) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi")


def test_a_pod_that_fits_nowhere_is_explained_whole() -> None:
    """Its own words are the scheduler's, its numbers add up, and each part speaks of the same nodes."""
    snapshot = make_snapshot(
        node("a"),
        node("b").unschedulable(),
        node("c", cpu=2).label(disk="ssd"),
        pods=[make_pod("p").req(cpu=3).node("a").label(app="db")],
    )

    answer = explained(snapshot, make_pod("web").req(cpu=3).priority(10).obj())

    assert (answer.pod.name, answer.state, answer.node) == ("web", "Pending", "")
    assert answer.message == "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    assert answer.summary == (
        "It fits on none of 3 nodes: NodeUnschedulable refuses 1 and NodeResourcesFit 2; evicting 1 pod from a would "
        "make room."
    )
    assert (answer.total_nodes, answer.feasible_nodes) == (3, 0)
    assert [(step.plugin, step.refused, step.unresolvable, step.left) for step in answer.waterfall] == [
        ("NodeUnschedulable", 1, 1, 2),
        ("NodeResourcesFit", 2, 1, 0),
    ]
    assert [near.node for near in answer.nearest] == ["a", "b", "c"]
    assert [(fix.text, fix.opens, fix.nodes) for fix in answer.fixes] == [
        ("ask for 2 of cpu instead of 3", 1, ("c",)),
        ("uncordon nodes", 1, ("b",)),
        ("add a node like a", 1, ()),
    ]
    assert answer.preemption is not None
    assert (answer.preemption.node, [victim.pod.name for victim in answer.preemption.victims]) == ("a", ["p"])
    assert (answer.scores, answer.picture) == ((), None)


def test_a_pod_that_fits_is_shown_with_the_best_nodes() -> None:
    snapshot = make_snapshot(
        *(node(f"n{number:02}") for number in range(12)), pods=[make_pod("p").req(cpu=3).node("n00")]
    )

    answer = explained(snapshot, make_pod().req(cpu=1, memory="1Gi").obj())

    assert (answer.feasible_nodes, answer.message, answer.preemption) == (12, "", None)
    assert (answer.waterfall, answer.fixes) == ((), ())
    assert [score.node for score in answer.scores] == [f"n{number:02}" for number in range(1, 11)]
    assert all(score.total == sum(part.weighted for part in score.plugins.values()) for score in answer.scores)
    assert all(
        part.weighted == part.normalized * part.weight for score in answer.scores for part in score.plugins.values()
    )
    assert (answer.scores_of, answer.choice) == ("now", "")
    assert answer.scores[0] == NodeScore(node="n01", total=answer.scores[0].total, plugins=answer.scores[1].plugins)


@cases(
    "pod, state, of_node",
    ("it waits", make_pod(), "Pending", ""),
    ("it is gated", make_pod().gate("quota"), "Gated", ""),
    ("room is being made for it", make_pod().nominated_node("a"), "Nominated", "a"),
    ("it has a node", make_pod().node("a"), "Scheduled", "a"),
    ("it is over", make_pod().node("a").phase("Succeeded"), "Finished", "a"),
    ("it was over before it began", make_pod().phase("Failed"), "Finished", ""),
)
def test_explanation_has_the_state_of_the_pod(pod: PodBuilder, state: str, of_node: str) -> None:
    answer = explained(make_snapshot(node("a")), pod.obj())

    assert (answer.state, answer.node) == (state, of_node)


def test_a_cluster_without_nodes_is_why() -> None:
    answer = explained(make_snapshot(), make_pod().obj())

    assert (answer.message, answer.total_nodes, answer.waterfall) == ("no nodes available to schedule pods", 0, ())


def test_unreadable_pod_is_explained_by_the_plugin_error() -> None:
    answer = explained(make_snapshot(node("a")), make_pod().req(cpu="much").obj())

    assert answer.message.startswith(
        'running PreFilter plugin "NodeResourcesFit": spec.containers[0].resources.requests[cpu]: '
    )
    assert answer.summary == f"It cannot be evaluated: {answer.message}."
    assert (answer.waterfall, answer.nearest, answer.fixes, answer.preemption) == ((), (), (), None)


def test_explaining_changes_nothing() -> None:
    cache = make_cache(node("a"), pods=[make_pod("p").req(cpu=3).node("a")])
    snapshot = cache.update_snapshot()
    requested = snapshot.nodes.requested.copy()

    explained(snapshot, make_pod().req(cpu=3).priority(5).obj(), picture=True)

    assert cache.update_snapshot() is snapshot
    assert (snapshot.nodes.requested == requested).all()


@cases(
    "answer, sentence",
    ("being bound", settled(make_pod().obj(), "Binding", "a"), "It is being bound on a."),
    ("running", settled(make_pod().node("a").phase("Running").obj(), "Scheduled"), "It runs on a."),
    ("not running yet", settled(make_pod().node("a").phase("Pending").obj(), "Scheduled"), "It is on a."),
    (
        "finished",
        settled(make_pod().node("a").phase("Succeeded").obj(), "Finished"),
        "It has finished on a (Succeeded).",
    ),
    (
        "not ours",
        settled(make_pod().scheduler_name("other").obj(), "NotOurs"),
        'No profile here has its schedulerName "other": another scheduler schedules it.',
    ),
    (
        "not to be read",
        unreadable(PodName(namespace="default", name="p"), "a quantity is wrong."),
        "It is left out because it cannot be read: a quantity is wrong.",
    ),
)
def test_pod_that_does_not_wait_is_explained_in_one_sentence(answer: Explanation, sentence: str) -> None:
    assert answer.summary == sentence
    assert (answer.message, answer.waterfall, answer.fixes) == ("", (), ())
