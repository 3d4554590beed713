"""The cluster with the nodes of a request in it: the caller's nodes win, and the next request is not affected."""

import random
from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from extender.engine.cache.cluster import Cluster
from extender.engine.cache.overlay import Overlay
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, make_node, make_pod, random_cluster
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.node import Node
from tests.extender.engine.cache.snapshot_contents import on_node, view, without_image_counts
from tests.kit.examples import examples

KNOWN = [make_node(name).capacity(cpu=4).label(disk="hdd").obj() for name in ("a", "b")]
PODS = [make_pod("on-a").req(cpu=1).node("a").obj(), make_pod("on-new").req(cpu=2).node("new").obj()]


def overlay() -> Overlay:
    return Overlay(Cluster.of(ClusterState(nodes=KNOWN, pods=PODS)))


def snapshot_with(over: Overlay, nodes: Sequence[Node]) -> Snapshot:
    for _ in over.taking(nodes):
        pass
    return over.cluster.cache.update_snapshot()


def with_nodes(over: Overlay, *nodes: NodeBuilder) -> Snapshot:
    return snapshot_with(over, [node.obj() for node in nodes])


def cpu(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Node -> cores it has, cores its pods asked for."""
    nodes = snapshot.nodes
    return {
        name: (int(nodes.allocatable[place, 0]) // 1000, int(nodes.requested[place, 0]) // 1000)
        for name, place in nodes.index.items()
    }


def test_a_node_is_the_callers_and_its_pods_are_the_clusters() -> None:
    snapshot = with_nodes(overlay(), make_node("a").capacity(cpu=8))

    assert cpu(snapshot) == {"a": (8, 1), "b": (4, 0)}
    assert snapshot.nodes.label("disk").codes[snapshot.nodes.index["a"]] == -1


def test_nodes_that_are_not_in_the_request_are_the_clusters() -> None:
    """Spreading and affinity look at the whole cluster."""
    assert cpu(with_nodes(overlay())) == {"a": (4, 1), "b": (4, 0)}


def test_an_unknown_node_of_a_request_has_the_pods_that_name_it() -> None:
    """Cluster Autoscaler asks about nodes that do not exist yet; and a node may be new to us while its pods are not."""
    snapshot = with_nodes(overlay(), make_node("new").capacity(cpu=8), make_node("imagined").capacity(cpu=16))

    assert cpu(snapshot) == {"a": (4, 1), "b": (4, 0), "new": (8, 2), "imagined": (16, 0)}
    assert [pod.name for pod in on_node(snapshot, "new")] == ["on-new"]


def test_a_request_leaves_no_trace_in_the_next() -> None:
    over = overlay()
    before = view(with_nodes(over))
    with_nodes(over, make_node("a").capacity(cpu=8).taint("x").image("img", size=1), make_node("new").capacity(cpu=8))

    assert without_image_counts(view(with_nodes(over))) == without_image_counts(before)


def test_a_request_leaves_no_trace_in_the_cluster() -> None:
    filled = Cluster.of(ClusterState(nodes=KNOWN, pods=PODS))
    before = filled.cache.dump()
    over = Overlay(filled)
    with_nodes(
        over, make_node("a").capacity(cpu=8).image("img", size=1), make_node("new").capacity({"example.com/gpu": 8})
    )

    assert filled.cache.dump() == before
    assert list(filled.cache.update_snapshot().nodes.index) == ["a", "b"]


def test_equal_nodes_make_no_new_generation() -> None:
    over = overlay()
    nodes = [make_node("a").capacity(cpu=8).obj(), make_node("new").capacity(cpu=8).obj()]
    first = snapshot_with(over, nodes)
    generation = first.generation

    assert snapshot_with(over, list(nodes)).generation == generation
    assert snapshot_with(over, [make_node(node.name).capacity(cpu=8).obj() for node in nodes]).generation == generation


def test_an_invalid_node_of_a_request_is_marked_invalid() -> None:
    snapshot = with_nodes(overlay(), make_node("a").capacity(cpu="many"))

    assert list(snapshot.nodes.invalid) == [snapshot.nodes.index["a"]]


@settings(deadline=None, max_examples=examples(60))
@given(st.randoms(use_true_random=False))
def test_after_any_requests_a_snapshot_is_as_if_its_request_were_the_first(chance: random.Random) -> None:
    """A cluster with some nodes overlaid is the cluster that has those nodes in place of its own."""
    cluster = random_cluster(chance)
    over = Overlay(Cluster.of(ClusterState(nodes=cluster.nodes, pods=cluster.pods)))
    for _ in range(4):
        drawn_nodes = (random_cluster(chance).nodes[0] for _ in range(chance.randrange(3)))
        names = (f"n{number}" for number in range(chance.randrange(6), 9))
        overlay_nodes = [
            replaced(node, metadata=replaced(node.metadata, name=name))
            for node, name in zip(drawn_nodes, names, strict=False)
        ]

        snapshot = snapshot_with(over, overlay_nodes)

        as_asked = {node.name: node for node in overlay_nodes}
        cluster_nodes = [as_asked.get(node.name, node) for node in cluster.nodes]
        new = [node for node in overlay_nodes if node.name not in {node.name for node in cluster.nodes}]
        fresh = Cluster.of(ClusterState(nodes=[*cluster_nodes, *new], pods=cluster.pods)).cache.update_snapshot()
        assert without_image_counts(view(snapshot)) == without_image_counts(view(fresh))


def test_last_of_two_nodes_with_one_name_counts() -> None:
    """The faces do not let that through."""
    nodes: list[Node] = [make_node("a").capacity(cpu=8).obj(), make_node("a").capacity(cpu=16).obj()]

    assert cpu(snapshot_with(overlay(), nodes))["a"] == (16, 1)


def test_node_that_changed_while_requests_replaced_it_is_given_back_as_it_is_now() -> None:
    over = overlay()
    with_nodes(over, make_node("a").capacity(cpu=8), make_node("b").capacity(cpu=8))
    over.changed(None, make_node("a").capacity(cpu=2).obj())
    over.changed(make_node("b").obj(), None)
    over.changed(None, make_node("came").capacity(cpu=3).obj())

    meanwhile = cpu(with_nodes(over, make_node("a").capacity(cpu=8), make_node("b").capacity(cpu=8)))
    afterwards = cpu(with_nodes(over))

    assert meanwhile == {"a": (8, 1), "b": (8, 0), "came": (3, 0)}
    assert afterwards == {"a": (2, 1), "came": (3, 0)}
