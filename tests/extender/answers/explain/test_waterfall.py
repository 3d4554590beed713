"""From all nodes to none: each node counts for the first plugin that refused it."""

import asyncio
import random

import pytest

from extender.answers.explain.verdict_tables import waterfall
from extender.answers.types import ReasonCount, WaterfallStep
from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_name import NodeName
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.taints import NodeUnschedulable, TaintToleration
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Snapshot
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot, name_term, random_cluster
from extender.values.objects.pod import Pod

PLUGINS = (NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit)


class Sees(fwk.PreFilterPlugin):
    """Narrows the search to the nodes that the pod's annotation names, or refuses a pod whose annotation is empty."""

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        names = frozenset(pod.annotations.get("sees", "").split())
        return (
            fwk.PreFilterResult(fwk.SUCCESS, names) if names else fwk.PreFilterResult(fwk.unschedulable("sees nothing"))
        )


def evaluated(framework: Framework, snapshot: Snapshot, pod: Pod) -> Evaluation:
    return asyncio.run(evaluate(Cycle(framework, snapshot, pod, NO_NOMINATIONS)))


def steps(
    snapshot: Snapshot, pod: PodBuilder, *plugins: type[fwk.Plugin]
) -> list[tuple[str, dict[str, int], int, int]]:
    """(plugin, reason -> nodes, refused, left) of each step."""
    rows = waterfall(evaluated(make_framework(*plugins, *PLUGINS), snapshot, pod.obj()))
    return [
        (step.plugin, {count.reason: count.nodes for count in step.reasons}, step.refused, step.left) for step in rows
    ]


def test_plugins_come_in_the_profiles_order_and_count_what_the_ones_before_left() -> None:
    """A tainted node without room counts for the taint."""
    snapshot = make_snapshot(
        make_node("cordoned").unschedulable().taint("a"),
        make_node("tainted").taint("a"),
        make_node("small").capacity(cpu=1, memory=1),
        make_node("full").capacity(cpu=8, memory=1, pods=0),
        make_node("good").capacity(cpu=8, memory="8Gi"),
    )

    assert steps(snapshot, make_pod().req(cpu=2, memory="1Gi")) == [
        ("NodeUnschedulable", {"node(s) were unschedulable": 1}, 1, 4),
        ("TaintToleration", {"node(s) had untolerated taint(s)": 1}, 1, 3),
        ("NodeResourcesFit", {"Insufficient memory": 2, "Insufficient cpu": 1, "Too many pods": 1}, 2, 1),
    ]


def test_waterfall_counts_nodes_that_preemption_cannot_help() -> None:
    snapshot = make_snapshot(
        make_node("busy").capacity(cpu=2),
        make_node("small").capacity(cpu=1),
        pods=[make_pod("p").req(cpu=1).node("busy")],
    )

    (step,) = waterfall(evaluated(make_framework(NodeResourcesFit), snapshot, make_pod().req(cpu=2).obj()))

    reasons = (ReasonCount(reason="Insufficient cpu", nodes=2),)
    assert step == WaterfallStep(plugin="NodeResourcesFit", reasons=reasons, refused=2, unresolvable=1, left=0)


def test_a_pod_that_fits_everywhere_loses_no_node() -> None:
    assert steps(make_snapshot(make_node("a").capacity(cpu=1)), make_pod().req(cpu=1)) == []


def test_nodes_that_prefilter_leaves_out_are_the_first_step() -> None:
    snapshot = make_snapshot(*(make_node(name).capacity(cpu=1) for name in "abc"))

    assert steps(snapshot, make_pod().node_affinity(name_term("In", "a")).req(cpu=2)) == [
        ("NodeAffinity", {"node(s) didn't satisfy plugin(s) [NodeAffinity]": 2}, 2, 1),
        ("NodeResourcesFit", {"Insufficient cpu": 1}, 1, 0),
    ]


def test_plugins_that_narrow_the_search_together_share_a_step() -> None:
    snapshot = make_snapshot(*(make_node(name).capacity(cpu=1) for name in "abc"))

    assert steps(
        snapshot, make_pod().node_affinity(name_term("In", "a"), name_term("In", "b")).annotation(sees="b c"), Sees
    ) == [("NodeAffinity, Sees", {"node(s) didn't satisfy plugin(s) [NodeAffinity Sees]": 2}, 2, 1)]


def test_plugins_that_leave_nothing_over_together_share_the_only_step() -> None:
    snapshot = make_snapshot(*(make_node(name).capacity(cpu=1) for name in "ab"))

    assert steps(snapshot, make_pod().node_affinity(name_term("In", "a")).annotation(sees="b"), Sees) == [
        ("NodeAffinity, Sees", {"node(s) didn't satisfy plugin(s) [NodeAffinity Sees] simultaneously": 2}, 2, 0)
    ]


def test_a_pod_that_prefilter_refuses_loses_all_nodes_at_once() -> None:
    snapshot = make_snapshot(*(make_node(name).capacity(cpu=1) for name in "ab"))

    assert steps(snapshot, make_pod().req(cpu=9), Sees) == [("Sees", {"sees nothing": 2}, 2, 0)]


def test_waterfall_of_a_cluster_without_nodes_is_empty() -> None:
    assert steps(make_snapshot(), make_pod()) == []


@pytest.mark.parametrize("seed", range(40))
def test_every_node_is_counted_once(seed: int) -> None:
    """What the steps refused and what is feasible is all nodes, whatever the cluster."""
    cluster = random_cluster(random.Random(seed))
    framework = make_framework(NodeName, *PLUGINS)
    evaluation = evaluated(framework, cluster.snapshot(), cluster.pod)

    rows = waterfall(evaluation)

    nodes_left = [step.left for step in rows]
    assert sum(step.refused for step in rows) == len(cluster.nodes) - len(evaluation.feasible)
    assert nodes_left == sorted(nodes_left, reverse=True)
    assert (nodes_left[-1] if nodes_left else len(cluster.nodes)) == len(evaluation.feasible)
    assert all(max(count.nodes for count in step.reasons) <= step.refused for step in rows)
    assert all(step.unresolvable <= step.refused for step in rows)
