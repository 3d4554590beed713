"""Node x plugin: what each Filter by itself says of each node."""

import asyncio
import random

import pytest

from extender.answers.explain.verdict_tables import picture
from extender.answers.types import NodePicture, PluginVerdict
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.evaluation.scenario import answer
from extender.engine.plugins import IN_TREE
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.taints import NodeUnschedulable
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Snapshot
from extender.testing import make_framework, make_node, make_pod, make_snapshot, name_term, random_cluster
from extender.values.config.configuration import Configuration

PROFILE = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]


def test_each_distinct_answer_is_written_once() -> None:
    """Every plugin is asked about every node, whatever the others say."""
    snapshot = make_snapshot(
        make_node("a").capacity(cpu=1).unschedulable(),
        make_node("b").capacity(cpu=4),
        make_node("c").capacity(cpu=1, pods=0),
        make_node("d").capacity(cpu=4, pods=0),
        make_node("e").capacity(cpu=1),
    )
    framework = make_framework(NodeUnschedulable, NodeResourcesFit)

    drawn = picture(asyncio.run(evaluate(Cycle(framework, snapshot, make_pod().req(cpu=2).obj(), NO_NOMINATIONS))))

    for_good = "UnschedulableAndUnresolvable"
    assert drawn.plugins == ("NodeUnschedulable", "NodeResourcesFit")
    assert drawn.nodes == ("a", "b", "c", "d", "e")
    assert set(drawn.verdicts) == {
        PluginVerdict(plugin="NodeUnschedulable", code=for_good, reasons=("node(s) were unschedulable",)),
        PluginVerdict(plugin="NodeResourcesFit", code=for_good, reasons=("Insufficient cpu",)),
        PluginVerdict(plugin="NodeResourcesFit", code=for_good, reasons=("Too many pods", "Insufficient cpu")),
        PluginVerdict(plugin="NodeResourcesFit", code="Unschedulable", reasons=("Too many pods",)),
    }
    spelled_out = [[drawn.verdicts[cell].reasons if cell >= 0 else () for cell in row] for row in drawn.cells]
    assert spelled_out == [
        [("node(s) were unschedulable",), ("Insufficient cpu",)],
        [(), ()],
        [(), ("Too many pods", "Insufficient cpu")],
        [(), ("Too many pods",)],
        [(), ("Insufficient cpu",)],
    ]


def test_picture_has_no_columns_when_pre_filter_refused_the_pod() -> None:
    snapshot = make_snapshot(make_node("a"), make_node("b"))
    pod = make_pod().node_affinity(name_term("In")).obj()

    assert picture(asyncio.run(evaluate(Cycle(PROFILE, snapshot, pod, NO_NOMINATIONS)))) == NodePicture(
        plugins=(), nodes=("a", "b"), verdicts=(), cells=((), ())
    )


def evaluated(snapshot: Snapshot, seed: int) -> Evaluation:
    return asyncio.run(evaluate(Cycle(PROFILE, snapshot, random_cluster(random.Random(seed)).pod, NO_NOMINATIONS)))


@pytest.mark.parametrize("seed", range(20))
def test_the_picture_shows_what_evaluate_says(seed: int) -> None:
    evaluation = evaluated(random_cluster(random.Random(seed)).snapshot(), seed)
    drawn = picture(evaluation)

    verdicts_by_plugin = {
        plugin: {
            node: {"code": drawn.verdicts[row[column]].code, "reasons": sorted(drawn.verdicts[row[column]].reasons)}
            for node, row in zip(drawn.nodes, drawn.cells, strict=True)
            if row[column] >= 0
        }
        for column, plugin in enumerate(drawn.plugins)
    }

    assert verdicts_by_plugin == answer(evaluation)["filterByPlugin"]
    assert all(
        drawn.verdicts[cell].plugin == drawn.plugins[column]
        for row in drawn.cells
        for column, cell in enumerate(row)
        if cell >= 0
    )
