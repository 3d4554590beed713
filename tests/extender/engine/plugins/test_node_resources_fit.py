import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from extender.engine.framework import SUCCESS, CycleState, Rows, Status, unresolvable, unschedulable
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.snapshot import PodChanges
from extender.testing import PodBuilder, filter_nodes, make_cache, make_node, make_pod, make_snapshot, score_nodes
from extender.values.config.configuration import ConfigErrors
from extender.values.config.plugin_args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from tests.kit.tables import cases

asking = make_pod().req
NO_CPU = unschedulable("Insufficient cpu")
RUNNING = make_pod("running").node("n").req(cpu="3", memory="6Gi")


@cases(
    "pod, answer",
    ("room left", asking(cpu="500m"), SUCCESS),
    ("exactly full is a fit", asking(cpu="1", memory="2Gi"), SUCCESS),
    ("one millicore too many", asking(cpu="1001m"), NO_CPU),
    (
        "all that is short is named",
        asking(cpu="2", memory="3Gi"),
        unschedulable("Insufficient cpu", "Insufficient memory"),
    ),
    ("more than the node ever had", asking(cpu="5"), unresolvable("Insufficient cpu")),
    (
        "one hopeless resource makes it hopeless",
        asking(cpu="2", memory="9Gi"),
        unresolvable("Insufficient cpu", "Insufficient memory"),
    ),
    ("extended resource", asking({"example.com/gpu": 1}), SUCCESS),
    ("too many of them", asking({"example.com/gpu": 3}), unresolvable("Insufficient example.com/gpu")),
    ("a resource that no node has", asking({"example.com/fpga": 1}), unresolvable("Insufficient example.com/fpga")),
    ("zero of it is nothing", asking({"example.com/fpga": 0}), SUCCESS),
    ("disk", asking({"ephemeral-storage": "2Gi"}), unschedulable("Insufficient ephemeral-storage")),
    ("an init container counts by itself", asking(cpu="500m").init_req(cpu="2"), NO_CPU),
    ("a sidecar counts on top", asking(cpu="600m").sidecar_req(cpu="500m"), NO_CPU),
    ("so does overhead", asking(cpu="600m").overhead(cpu="500m"), NO_CPU),
    ("nothing asked, nothing needed", make_pod(), SUCCESS),
)
def test_filter(pod: PodBuilder, answer: Status) -> None:
    """A pod fits when what it asks for is not more than what is left."""
    node = make_node().capacity({"example.com/gpu": 2, "ephemeral-storage": "10Gi"}, cpu="4", memory="8Gi", pods=10)
    snapshot = make_snapshot(node, pods=[RUNNING.req({"ephemeral-storage": "9Gi"})])

    assert filter_nodes(NodeResourcesFit(), snapshot, pod.obj()) == {"n": answer}


def test_a_node_that_begins_to_offer_a_resource_has_room_for_what_the_pods_there_have_left() -> None:
    """Until then, a pod that requests it is refused. Pods with a nodeName may have it before their node does."""
    without_gpus, with_gpus = (make_node().capacity(gpus, cpu="4", pods=10) for gpus in ({}, {"example.com/gpu": 3}))
    cache = make_cache(without_gpus, pods=[make_pod("running").node("n").req({"example.com/gpu": 2})])
    one, two = (make_pod().req({"example.com/gpu": amount}).obj() for amount in (1, 2))
    before = filter_nodes(NodeResourcesFit(), cache.update_snapshot(), one)
    cache.update_node(without_gpus.obj(), with_gpus.obj())
    after = [filter_nodes(NodeResourcesFit(), cache.update_snapshot(), pod) for pod in (one, two)]

    assert before == {"n": unresolvable("Insufficient example.com/gpu")}
    assert after == [{"n": SUCCESS}, {"n": unschedulable("Insufficient example.com/gpu")}]


def test_the_number_of_pods_counts_even_for_a_pod_without_requests() -> None:
    """A full node has no place for one more pod."""
    snapshot = make_snapshot(make_node().capacity(cpu="4", pods=1), pods=[make_pod("running").node("n")])

    assert filter_nodes(NodeResourcesFit(), snapshot, make_pod().obj()) == {"n": unschedulable("Too many pods")}


@cases(
    "args",
    ("by name", NodeResourcesFitArgs(ignored_resources=("example.com/gpu",))),
    ("by group", NodeResourcesFitArgs(ignored_resource_groups=("example.com",))),
)
def test_ignored_resources_are_not_looked_at(args: NodeResourcesFitArgs) -> None:
    """What an extender manages is left to it."""
    pod = make_pod().req({"example.com/gpu": 8}).obj()

    assert filter_nodes(NodeResourcesFit(args), make_snapshot(make_node().capacity(pods=1)), pod) == {"n": SUCCESS}


CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))


@cases(
    "strategy, scores",
    ("the emptier the better", ScoringStrategy("LeastAllocated", CPU_AND_MEMORY), [75, 50, 0]),
    ("the fuller the better", ScoringStrategy("MostAllocated", CPU_AND_MEMORY), [25, 50, 0]),
    (
        "by weight, in whole numbers",
        ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 3), ResourceSpec("memory", 1))),
        [75, 37, 0],
    ),
)
def test_score(strategy: ScoringStrategy, scores: list[int]) -> None:
    """Free or used shares of the resources are averaged; a resource that the node does not have does not count. Scores
    are those of the nodes empty, half and none.
    """
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi", pods=10) for name in ("empty", "half")]
    running = make_pod("running").node("half").req(cpu="2", memory="0")
    snapshot = make_snapshot(*nodes, make_node("none").capacity(pods=10), pods=[running])
    plugin, pod = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy)), asking(cpu="1", memory="2Gi").obj()

    assert [*score_nodes(plugin, snapshot, pod).values()] == scores
    for node, score in zip(snapshot.nodes.objects, scores, strict=True):
        alone = make_snapshot(node, pods=[running] if node.name == "half" else [])
        assert score_nodes(plugin, alone, pod) == {node.name: score}


def test_a_pod_that_is_nominated_to_the_only_node_takes_its_room() -> None:
    cache = make_cache(make_node().capacity(cpu="1", pods=10))
    slot, snapshot = cache.nominate(asking(cpu="1").obj()), cache.update_snapshot()
    plugin, state, pod = NodeResourcesFit(), CycleState(), asking(cpu="1").obj()
    plugin.pre_filter(state, pod, snapshot)
    alone = Rows.of(snapshot)
    nominated = alone.changed(PodChanges(np.array([0]), np.array([slot]), np.array([1])))

    assert [plugin.filter(state, pod, rows).status_of(0) for rows in (alone, nominated)] == [SUCCESS, NO_CPU]


MOST = "9223372036854775807"
AMOUNTS = st.sampled_from(["0", "1m", "1", "3", "4", "9007199254740993", MOST])
PODS = st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 3)), max_size=3)


@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 2)), min_size=2, max_size=4),
    PODS,
    st.tuples(AMOUNTS, AMOUNTS),
    st.sampled_from(["LeastAllocated", "MostAllocated"]),
)
@example([("4", MOST, 3), ("4", "4", 2)], [], ("1", "1"), "LeastAllocated")
@example([("4", "4", 3), ("4", "4", 2)], [("1", MOST, 0), ("1", "1", 0)], ("1", "1"), "LeastAllocated")
def test_a_node_by_itself_gets_what_it_gets_among_others(
    capacities: list[tuple[str, str, int]], pods: list[tuple[str, str, int]], asked: tuple[str, str], strategy: str
) -> None:
    """One row is judged by other code than many, also if sums of amounts are too large for 64 bits."""
    nodes = [
        make_node(f"n{n}").capacity(cpu=cpu, memory=mem, pods=most) for n, (cpu, mem, most) in enumerate(capacities)
    ]
    running = [
        make_pod(f"p{n}").node(f"n{on % len(nodes)}").req(cpu=cpu, memory=mem) for n, (cpu, mem, on) in enumerate(pods)
    ]
    snapshot = make_snapshot(*nodes, pods=running)
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, CPU_AND_MEMORY)))
    state, pod, every = CycleState(), asking(cpu=asked[0], memory=asked[1]).obj(), Rows.of(snapshot)
    plugin.pre_filter(state, pod, snapshot)
    plugin.pre_score(state, pod, every)
    verdicts, scores = plugin.filter(state, pod, every), plugin.score(state, pod, every)

    for place in range(len(nodes)):
        alone = every.take(np.array([place]))
        assert plugin.filter(state, pod, alone).status_of(0) == verdicts.status_of(place)
        if verdicts.status_of(place).is_success:
            assert plugin.score(state, pod, alone).tolist() == [scores[place]]


def test_wrong_arguments_are_refused_when_the_plugin_is_made() -> None:
    """As upstream: these arguments are looked at when the plugin is built."""
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 101),)))

    with pytest.raises(ConfigErrors, match="not in valid range"):
        NodeResourcesFit(args)
