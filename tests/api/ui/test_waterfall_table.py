"""The waterfall goes from all nodes to those that are left, and leaves nobody out."""

import re

from api.ui.answer_drawings import waterfall_table
from extender.answers.types import WaterfallStep
from tests.api.ui.samples import EXPLANATION


def widths(bar: str, css: str) -> list[float]:
    return [float(width) for width in re.findall(rf'class="{css}"[^>]* width="([\d.]+)"', bar)]


def test_each_row_says_what_its_plugin_refused_and_left() -> None:
    waterfall = waterfall_table(EXPLANATION.waterfall, 4)

    assert [(row.plugin, row.refused, row.left) for row, _ in waterfall.rows] == [
        ("TaintToleration", 1, 3),
        ("NodeResourcesFit", 3, 0),
    ]


def test_bars_are_as_wide_as_their_numbers() -> None:
    (_, first), (_, last) = waterfall_table(EXPLANATION.waterfall, 4).rows

    assert (widths(first, "stands"), widths(first, "refused")) == ([750], [250])
    assert (widths(last, "stands"), widths(last, "refused")) == ([0], [750])


def test_a_single_node_of_thousands_is_seen() -> None:
    ((_, bar),) = waterfall_table(
        [WaterfallStep(plugin="P", reasons=(), refused=4999, unresolvable=0, left=1)], 5000
    ).rows

    assert widths(bar, "stands") == [4]


def test_plugins_that_refuse_no_node_are_named_but_not_drawn() -> None:
    assert waterfall_table(EXPLANATION.waterfall, 4).silent == ("NodeName",)


def test_only_the_last_bar_flows_nowhere() -> None:
    assert [bar.count('class="flows"') for _, bar in waterfall_table(EXPLANATION.waterfall, 4).rows] == [2, 1]
