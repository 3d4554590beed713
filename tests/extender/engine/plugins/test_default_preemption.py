import asyncio

import pytest

from extender.engine.framework import NodeStatuses, PostFilterResult, unschedulable
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot
from extender.values.config.plugin_args import DefaultPreemptionArgs
from tests.kit.tables import cases

FULL = make_node().capacity(cpu="2", memory="4Gi", pods=10)


def preempt(pod: PodBuilder, *running: PodBuilder) -> PostFilterResult:
    """One node, one pod that does not fit, and what DefaultPreemption makes of it."""
    framework: Framework = make_framework(NodeResourcesFit, DefaultPreemption)
    state = Cycle(framework, make_snapshot(FULL, pods=[builder.node("n") for builder in running]), pod.obj())
    state.run_pre_filter_plugins()
    (plugin,) = [plugin for plugin in framework.plugins.post_filter if isinstance(plugin, DefaultPreemption)]
    return asyncio.run(plugin.post_filter(state, pod.obj(), NodeStatuses({"n": unschedulable("Insufficient cpu")})))


def test_the_node_is_nominated_where_a_victim_makes_room() -> None:
    """The pod of lower priority has to go, and the message is empty."""
    result = preempt(
        make_pod().req(cpu="2").priority(10), make_pod("low").req(cpu="1"), make_pod("high").priority(20).req(cpu="0")
    )

    assert result.nominated_node == "n"
    assert result.status.is_success
    assert result.candidate is not None
    assert [pod.name for pod in result.candidate.victims] == ["low"]


def test_without_pods_of_lower_priority_the_nomination_is_cleared() -> None:
    """The message says so for every node."""
    result = preempt(make_pod().req(cpu="2").priority(10), make_pod("equal").priority(10).req(cpu="1"))

    assert result.nominated_node == ""
    assert (
        result.status.message == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_that_never_preempts_leaves_everything_as_it_is() -> None:
    """preemptionPolicy Never: no dry run, no change of the nomination."""
    result = preempt(make_pod().req(cpu="2").priority(10).preemption_policy("Never"), make_pod("low").req(cpu="1"))

    assert result.nominated_node is None
    assert result.status.message == "preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize("num_nodes", [5, 300, 5000])
def test_all_nodes_are_tried_from_the_first_one_on(num_nodes: int) -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(), make_framework(seed=7))

    assert plugin.offset_and_num_candidates(num_nodes) == (0, num_nodes)


@cases(
    "percentage, absolute, num_nodes, enough",
    ("at least the absolute number", 10, 100, 300, 100),
    ("a tenth of many", 10, 100, 5000, 500),
    ("a number alone", 0, 7, 5000, 7),
    ("nearly all", 99, 0, 200, 198),
)
def test_share_that_the_user_sets_is_tried_from_a_random_node_on(
    percentage: int, absolute: int, num_nodes: int, enough: int
) -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(percentage, absolute), make_framework(seed=7))

    offsets, counts = zip(*(plugin.offset_and_num_candidates(num_nodes) for _ in range(50)), strict=True)

    assert set(counts) == {enough}
    assert len(set(offsets)) > 1
    assert set(offsets) <= set(range(num_nodes))


@pytest.mark.parametrize(
    ("percentage", "absolute", "num_nodes"), [(10, 100, 5), (10, 100, 100), (0, 9, 9), (100, 0, 9)]
)
def test_share_that_covers_all_nodes_begins_with_the_first(percentage: int, absolute: int, num_nodes: int) -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(percentage, absolute), make_framework(seed=7))

    assert {plugin.offset_and_num_candidates(num_nodes) for _ in range(9)} == {(0, num_nodes)}
