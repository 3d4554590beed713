"""The table of nodes can be sorted by what people look for, either way, and the address says how."""

import pytest

from api.ui.node_table import OrderError, columns_for, in_order
from tests.api.ui.samples import node, standing

NODES = [
    node(standing("a", 3000), name="node-2", zone="a"),
    node(name="node-10", zone="a"),
    node(standing("b", 1000), standing("c", 1000), name="node-1", zone="b"),
]


COLUMNS = columns_for(NODES)


def names(written: str) -> list[str]:
    return [each.name for each in in_order(NODES, written, COLUMNS)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("", ["node-2", "node-10", "node-1"], id="as on the map"),
        pytest.param("zone", ["node-2", "node-10", "node-1"], id="so is by zone"),
        pytest.param("-zone", ["node-1", "node-2", "node-10"], id="nodes of a zone keep their order"),
        pytest.param("name", ["node-1", "node-2", "node-10"], id="numbers in names are numbers"),
        pytest.param("-pods", ["node-1", "node-2", "node-10"], id="most pods first"),
        pytest.param("-pods-free", ["node-10", "node-2", "node-1"], id="most room for pods first"),
        pytest.param("cpu", ["node-10", "node-1", "node-2"], id="least promised first"),
        pytest.param("-cpu-free", ["node-10", "node-1", "node-2"], id="most room first"),
    ],
)
def test_nodes_stand_in_the_order_that_is_asked_for(written: str, expected: list[str]) -> None:
    assert names(written) == expected


@pytest.mark.parametrize("written", ["colour", "-", "--name", "name ", "Name", "cpu,-memory"])
def test_another_order_there_is_not(written: str) -> None:
    with pytest.raises(OrderError, match="sorted by name, zone, cpu, "):
        names(written)
