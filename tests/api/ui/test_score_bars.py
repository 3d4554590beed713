"""Scores are stacked bars at one scale."""

import re

from api.ui.answer_drawings import score_bars
from extender.answers.types import NodeScore
from tests.api.ui.samples import plugin_score

SCORES = (
    NodeScore(
        node="best",
        total=400,
        plugins={"Images": plugin_score(100), "Taints": plugin_score(300), "Silent": plugin_score(0)},
    ),
    NodeScore(node="next", total=200, plugins={"Taints": plugin_score(200)}),
)


def test_bars_are_as_long_as_their_scores_and_the_best_fills_the_width() -> None:
    best, second = score_bars(SCORES).rows

    assert [float(width) for width in re.findall(r' width="([\d.]+)"', best.bar)] == [750, 250]
    assert [float(width) for width in re.findall(r' width="([\d.]+)"', second.bar)] == [500]


def test_plugins_keep_their_colour_and_those_that_give_nothing_have_none() -> None:
    assert score_bars(SCORES).plugins == (("Taints", "c0"), ("Images", "c1"))


def test_every_bar_says_its_numbers_in_words() -> None:
    assert [row.words for row in score_bars(SCORES).rows] == ["Images 100, Taints 300", "Taints 200"]


def test_scores_of_nothing_are_no_bars() -> None:
    assert score_bars(()).rows == ()
    assert "rect" not in score_bars([NodeScore(node="n", total=0)]).rows[0].bar
