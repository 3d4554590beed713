"""Which of thousands of nodes are shown: grouped, sorted and filtered as people ask for it."""

import msgspec
import pytest

from api.ui.node_table import NodeSelection, OrderError, chosen, columns_for, group_keys, groups_of, in_order
from api.ui.resources import resources_of
from extender.answers.overviews import NodeOnMap
from extender.values import limits
from tests.api.ui.samples import node, standing
from tests.kit.tables import cases

GPU = "nvidia.com/gpu=present:NoSchedule"
NODES = (
    node(standing("x", 3000), name="n1", zone="a"),
    msgspec.structs.replace(node(name="n2", zone="a"), labels={"pool": "gpu", "disk": "ssd"}, taints=(GPU,)),
    msgspec.structs.replace(
        node(standing("y", 1000), name="n10", zone="b"),
        labels={"pool": "web"},
        conditions=("DiskPressure",),
        cordoned=True,
    ),
)


def names(nodes: tuple[NodeOnMap, ...]) -> list[str]:
    return [node.name for node in nodes]


@cases(
    "words, expected",
    ("all", "", ["n1", "n2", "n10"]),
    ("a part of the name", "N1", ["n1", "n10"]),
    ("a label", "pool=gpu", ["n2"]),
    ("the value of a label", "ssd", ["n2"]),
    ("a taint", "nvidia.com/gpu", ["n2"]),
    ("a condition", "diskpressure", ["n10"]),
    ("cordoned", "cordoned", ["n10"]),
    ("without a word", "n1 -cordoned", ["n1"]),
    ("without a letter", "-w", ["n1", "n2"]),
    ("a dash alone", "-", []),
    ("all words", "n1 pool=gpu", []),
)
def test_words_of_the_filter_select_nodes(words: str, expected: list[str]) -> None:
    assert names(chosen(NODES, words)) == expected


def test_nodes_are_grouped_by_zone_by_pool_or_by_any_label() -> None:
    assert [(group.title, names(group.nodes), group.words) for group in groups_of(NODES, NodeSelection())] == [
        ("a", ["n1", "n2"], "a"), ("b", ["n10"], "b"),
    ]  # fmt: skip
    assert [(group.title, names(group.nodes), group.words) for group in groups_of(NODES, NodeSelection(group="pool"))] == [
        ("no pool", ["n1"], ""), ("gpu", ["n2"], "pool=gpu"), ("web", ["n10"], "pool=web"),
    ]  # fmt: skip


@pytest.mark.parametrize(("sort", "first"), [("", "n1"), ("fullest", "n1"), ("emptiest", "n2")])
def test_nodes_of_a_group_are_sorted_by_how_full_they_are(sort: str, first: str) -> None:
    assert groups_of(NODES, NodeSelection(sort=sort))[0].nodes[0].name == first


def test_labels_that_tell_nodes_apart_are_offered_and_pools_first() -> None:
    labels = [
        {"karpenter.sh/nodepool": pool, "a": "same", "hostname": f"h{number}"}
        for number, pool in enumerate("xy" * limits.NODE_GROUPS)
    ]

    assert group_keys(NodeOnMap(name="n", labels=item) for item in labels) == ("zone", "karpenter.sh/nodepool")
    assert group_keys(NODES) == ("zone", "pool")


def test_an_address_keeps_what_is_asked_for() -> None:
    selection = NodeSelection("cpu", "pool", "fullest", "a b")

    assert selection.query() == "?by=cpu&group=pool&sort=fullest&node=a+b"
    assert selection.query(node="", group="zone") == "?by=cpu&sort=fullest"


# The table, by what people look for, either way.

TABLE = [
    node(standing("a", 3000), name="node-2", zone="a"),
    node(name="node-10", zone="a"),
    node(standing("b", 1000), standing("c", 1000), name="node-1", zone="b"),
]


COLUMNS = columns_for(resources_of(TABLE))


def sorted_names(order: str) -> list[str]:
    return [node.name for node in in_order(TABLE, order, COLUMNS)]


@cases(
    "order, expected",
    ("as on the map", "", ["node-2", "node-10", "node-1"]),
    ("so is by zone", "zone", ["node-2", "node-10", "node-1"]),
    ("nodes of a zone keep their order", "-zone", ["node-1", "node-2", "node-10"]),
    ("numbers in names are numbers", "name", ["node-1", "node-2", "node-10"]),
    ("most pods first", "-pods", ["node-1", "node-2", "node-10"]),
    ("most room for pods first", "-pods-free", ["node-10", "node-2", "node-1"]),
    ("least promised first", "cpu", ["node-10", "node-1", "node-2"]),
    ("most room first", "-cpu-free", ["node-10", "node-1", "node-2"]),
)
def test_nodes_stand_in_the_order_that_is_asked_for(order: str, expected: list[str]) -> None:
    assert sorted_names(order) == expected


@pytest.mark.parametrize("order", ["colour", "-", "--name", "name ", "Name", "cpu,-memory"])
def test_another_order_there_is_not(order: str) -> None:
    with pytest.raises(OrderError, match="sorted by name, zone, cpu, "):
        sorted_names(order)
