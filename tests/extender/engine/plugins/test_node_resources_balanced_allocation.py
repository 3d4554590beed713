import numpy as np
import pytest
from hypothesis import given, strategies as st

from extender.engine.framework import SKIP, CycleState
from extender.engine.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot, score_nodes
from extender.values.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from tests.kit.tables import cases

NODE = make_node().capacity({"example.com/gpu": 4}, cpu="4", memory="4Gi", pods=10)


@cases(
    "running, pod, score",
    ("even before and after", make_pod("r"), make_pod().req(cpu="1", memory="1Gi"), 75),
    ("the pod tips the balance", make_pod("r"), make_pod().req(cpu="2"), 62),
    ("the pod restores it", make_pod("r").req(memory="2Gi"), make_pod().req(cpu="2"), 87),
    ("more than everything is everything", make_pod("r").req(cpu="9"), make_pod().req(cpu="2"), 75),
)
def test_score(running: PodBuilder, pod: PodBuilder, score: int) -> None:
    """
    75 when the pod changes nothing, more when the use of resources becomes more even, less when it becomes less so.
    """
    alone = make_snapshot(NODE, pods=[running.node("n")])
    beside_another = make_snapshot(NODE, make_node("m").capacity(cpu="1", memory="1Gi"), pods=[running.node("n")])

    assert score_nodes(NodeResourcesBalancedAllocation(), alone, pod.obj()) == {"n": score}
    assert score_nodes(NodeResourcesBalancedAllocation(), beside_another, pod.obj())["n"] == score


AMOUNTS = st.tuples(st.integers(0, 7), st.integers(0, 7))


@given(st.lists(AMOUNTS, min_size=2, max_size=4), AMOUNTS, AMOUNTS)
def test_a_node_by_itself_gets_what_it_gets_among_others(
    capacities: list[tuple[int, ...]], used: tuple[int, ...], asked: tuple[int, ...]
) -> None:
    """One row is scored by other code than many."""
    nodes = [make_node(f"n{n}").capacity(cpu=cpu, memory=mem, pods=9) for n, (cpu, mem) in enumerate(capacities)]
    snapshot = make_snapshot(*nodes, pods=[make_pod("r").node("n0").req(cpu=used[0], memory=used[1])])
    plugin, state, pod = NodeResourcesBalancedAllocation(), CycleState(), make_pod().req(cpu=asked[0], memory=asked[1])
    every = Rows.of(snapshot)
    if plugin.pre_score(state, pod.obj(), every).is_skip:
        return
    scores = plugin.score(state, pod.obj(), every).tolist()

    alone = [every.take(np.array([place])) for place in range(len(nodes))]
    assert [plugin.score(state, pod.obj(), rows).tolist() for rows in alone] == [[score] for score in scores]


def test_a_pod_whose_request_wraps_gets_a_score_that_the_framework_refuses() -> None:
    """Where NodeResourcesFit does not run: the words are upstream's."""
    snapshot = make_snapshot(NODE, pods=[make_pod("r").req(cpu="9e15").node("n")])
    cycle = Cycle(make_framework(NodeResourcesBalancedAllocation), snapshot, make_pod().req(cpu="9e15").obj())
    rows = Rows.of(snapshot)
    cycle.run_pre_score_plugins(rows)

    with pytest.raises(PluginError, match=r"invalid score -2792150460684597, it should in the range of \[0, 100\]"):
        cycle.run_score_plugins(rows)


def test_three_resources_are_compared_by_their_standard_deviation() -> None:
    """With more than two resources the shares' deviation from their mean counts."""
    args = NodeResourcesBalancedAllocationArgs(
        (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec("example.com/gpu"))
    )
    pod = make_pod().req({"example.com/gpu": 4}, cpu="4").obj()

    assert score_nodes(NodeResourcesBalancedAllocation(args), make_snapshot(NODE), pod) == {"n": 51}


def test_a_pod_without_requests_is_not_scored() -> None:
    """It cannot tip any balance."""
    rows = Rows.of(make_snapshot(NODE))

    assert NodeResourcesBalancedAllocation().pre_score(CycleState(), make_pod().obj(), rows) == SKIP
