"""Nodes that every plugin answers alike are one row."""

from api.ui.answer_drawings import picture, refused_first
from extender.answers.types import NodePicture, PluginVerdict
from extender.values import limits
from tests.api.ui.samples import EXPLANATION

NO_ROOM = PluginVerdict(plugin="Fit", code="Unschedulable", reasons=("Insufficient cpu",))
TAINTED = PluginVerdict(
    plugin="Taints", code="UnschedulableAndUnresolvable", reasons=("node(s) had untolerated taint(s)",)
)


def test_rows_come_with_most_nodes_first() -> None:
    assert EXPLANATION.picture is not None

    table = picture(EXPLANATION.picture)

    assert [(row.count, row.names) for row in table.rows] == [(3, ("n0", "n1", "n3")), (1, ("n2",))]


def test_plugins_without_an_objection_have_no_column() -> None:
    assert EXPLANATION.picture is not None

    table = picture(EXPLANATION.picture)

    assert (table.plugins, table.silent) == (("NodeResourcesFit",), ("NodeName",))


def test_a_cell_says_in_a_sign_and_in_words_whether_preemption_can_help() -> None:
    node_picture = NodePicture(plugins=("Fit", "Taints"), nodes=("n",), verdicts=(NO_ROOM, TAINTED), cells=((0, 1),))

    fit, taints = picture(node_picture).rows[0].cells

    assert (fit.sign, fit.tip) == ("✕", "Fit\nInsufficient cpu\nevicting pods may help")
    assert (taints.sign, taints.tip.splitlines()[-1]) == ("■", "evicting pods does not help")


def test_five_thousand_nodes_are_a_few_rows_that_name_the_first_of_them() -> None:
    names = tuple(f"n{number}" for number in range(5000))
    node_picture = NodePicture(
        plugins=("Fit", "Taints"), nodes=names, verdicts=(NO_ROOM, TAINTED), cells=((0, -1),) * 4000 + ((0, 1),) * 1000
    )

    table = picture(node_picture)

    assert [(row.count, len(row.names), row.percent) for row in table.rows] == [
        (4000, limits.PICTURE_NAMES, 100),
        (1000, limits.PICTURE_NAMES, 25),
    ]


def test_a_node_belongs_to_the_first_plugin_that_refuses_it() -> None:
    node_picture = NodePicture(
        plugins=("Taints", "Fit"), nodes=("a", "b", "c"), verdicts=(NO_ROOM, TAINTED), cells=((1, 0), (-1, 0), (-1, -1))
    )

    assert refused_first(node_picture) == (("Taints", ("a",)), ("Fit", ("b",)))


def test_nodes_of_rows_that_are_left_out_are_counted() -> None:
    plugins = tuple(f"P{number}" for number in range(8))
    cells = tuple(tuple(0 if row >> bit & 1 else -1 for bit in range(8)) for row in range(limits.PICTURE_ROWS + 10))
    node_picture = NodePicture(
        plugins=plugins, nodes=tuple(f"n{number}" for number in range(len(cells))), verdicts=(NO_ROOM,), cells=cells
    )

    assert picture(node_picture).others == 10
