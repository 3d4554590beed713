from extender.engine.framework import unresolvable
from extender.engine.plugins.node_name import NodeName
from extender.testing import filter_nodes, make_node, make_pod, make_snapshot, refusals
from tests.kit.tables import cases

OTHER = "node(s) didn't match the requested node name"


@cases(
    "node_name, refused",
    ("no node asked for: any will do", "", {}),
    ("only the node asked for", "n1", {"n2": OTHER}),
    ("a node that does not exist: none", "n9", {"n1": OTHER, "n2": OTHER}),
)
def test_requested_node(node_name: str, refused: dict[str, str]) -> None:
    """A pod that names a node runs there or nowhere."""
    assert refused == refusals(
        NodeName(), make_snapshot(make_node("n1"), make_node("n2")), make_pod().node(node_name).obj()
    )


def test_preemption_cannot_help() -> None:
    answers = filter_nodes(NodeName(), make_snapshot(make_node("n1")), make_pod().node("n2").obj())

    assert answers == {"n1": unresolvable(OTHER)}
