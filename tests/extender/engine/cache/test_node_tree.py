"""The order in which nodes are visited: round-robin over the zones."""

from extender.engine.cache.nodes import NodeTree, zone_key
from extender.testing import make_cache, make_node
from extender.values.objects.node import Node
from tests.kit.tables import cases

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def node(name: str) -> Node:
    """`a1` is a node in zone a; `1`, without a letter, is in none."""
    return make_node(name).label({ZONE: name[0]} if name[0].isalpha() else {}).obj()


def tree_of(names: str) -> NodeTree:
    tree = NodeTree()
    for name in names.split():
        tree.add(node(name))
    return tree


@cases(
    "added, visited",
    ("none", "", ""),
    ("no zones: in order of arrival", "1 2 3", "1 2 3"),
    ("zones take turns", "a1 a2 b1 b2", "a1 b1 a2 b2"),
    ("zones that have no more sit out", "a1 a2 a3 b1 c1 c2", "a1 b1 c1 a2 c2 a3"),
    ("the zone that was seen first goes first", "b1 a1", "b1 a1"),
    ("nodes without a zone are a zone of their own", "a1 1 b1 2", "a1 1 b1 2"),
    ("added twice, there once", "a1 b1 a1", "a1 b1"),
)
def test_nodes_are_visited_round_robin_over_the_zones(added: str, visited: str) -> None:
    tree = tree_of(added)

    assert tree.names() == visited.split()
    assert tree.num_nodes == len(visited.split())


def test_a_zone_that_was_empty_starts_at_the_end() -> None:
    tree = tree_of("a1 b1")
    tree.remove(node("a1"))
    tree.add(node("a2"))

    assert tree.names() == ["b1", "a2"]


def test_removing_a_node_that_is_not_in_the_zone_its_labels_name_is_an_error() -> None:
    tree = tree_of("a1")

    error = tree.remove(make_node("a1").label({ZONE: "b"}).obj())

    assert error == 'node "a1" in group ":\\x00:b" was not found'
    assert tree.names() == ["a1"]


def test_a_node_that_moves_to_another_zone_goes_to_its_end() -> None:
    tree = tree_of("a1 a2 b1")
    moved = make_node("a1").label({ZONE: "b"}).obj()

    tree.update(node("a1"), moved)

    assert tree.names() == ["a2", "b1", "a1"]


def test_a_node_that_stays_in_its_zone_keeps_its_place() -> None:
    tree = tree_of("a1 a2")

    tree.update(node("a1"), make_node("a1").label({ZONE: "a"}, disk="ssd").obj())

    assert tree.names() == ["a1", "a2"]


def test_a_copy_is_independent() -> None:
    tree = tree_of("a1 a2 b1 b2 1")
    copy = tree.copy()
    copied = copy.names()
    copy.remove(node("a1"))

    assert copied == tree.names() == ["a1", "b1", "1", "a2", "b2"]
    assert (copy.num_nodes, tree.num_nodes) == (4, 5)


@cases(
    "labels, key",
    ("neither", {}, ""),
    ("zone alone", {ZONE: "z"}, ":\x00:z"),
    ("region alone", {REGION: "r"}, "r:\x00:"),
    ("both", {REGION: "r", ZONE: "z"}, "r:\x00:z"),
    ("the old labels", {OLD_REGION: "r", OLD_ZONE: "z"}, "r:\x00:z"),
    ("the old label goes before the new one", {ZONE: "new", OLD_ZONE: "old"}, ":\x00:old"),
    ("unless it is empty", {ZONE: "new", OLD_ZONE: ""}, ":\x00:new"),
)
def test_a_zone_is_a_region_and_a_zone(labels: dict[str, str], key: str) -> None:
    assert zone_key(make_node().label(labels).obj()) == key


def test_a_snapshot_has_the_nodes_in_this_order() -> None:
    snapshot = make_cache(*(node(name) for name in ("a1", "a2", "b1"))).update_snapshot()

    assert [node.name for node in snapshot.nodes.objects] == ["a1", "b1", "a2"]


def test_a_node_that_changes_zone_keeps_its_place_until_a_node_comes_or_goes() -> None:
    cache = make_cache(*(node(name) for name in ("a1", "a2", "b1")))
    cache.update_snapshot()
    cache.update_node(node("a1"), make_node("a1").label({ZONE: "b"}).obj())
    before = list(cache.update_snapshot().nodes.index)
    cache.add_node(node("c1"))

    assert before == ["a1", "b1", "a2"]
    assert list(cache.update_snapshot().nodes.index) == ["a2", "b1", "c1", "a1"]
