"""The scores of the best nodes, as bars stacked by plugin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from markupsafe import Markup

from api.ui.svg import element
from extender.answers.types import NodeScore

WIDTH, HEIGHT = 1000, 24
COLOURS: Final = 8
"""The number of CSS classes, c0 to c7; further plugins use them again."""


@final
@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The bar of one node."""

    node: str
    total: int
    words: str
    bar: Markup


@final
@dataclass(frozen=True, slots=True)
class ScoreBars:
    """The nodes, best first, and (plugin, CSS class) of the plugins that scored."""

    rows: tuple[ScoreRow, ...]
    plugins: tuple[tuple[str, str], ...]


def score_bars(scores: Sequence[NodeScore]) -> ScoreBars:
    """Returns the bars, all at one scale."""
    names = list(dict.fromkeys(name for score in scores for name, value in score.plugins.items() if value))
    names.sort(key=lambda name: -max(score.plugins.get(name, 0) for score in scores))
    css = {name: f"c{place % COLOURS}" for place, name in enumerate(names)}
    best = max((score.total for score in scores), default=0)
    return ScoreBars(tuple(_row(score, css, best) for score in scores), tuple(css.items()))


def _row(score: NodeScore, css: dict[str, str], best: int) -> ScoreRow:
    parts, x = [], 0.0
    for name, colour in css.items():
        value = score.plugins.get(name, 0)
        if value > 0 and best > 0:
            wide = WIDTH * value / best
            parts.append(element("rect", class_=colour, x=x, y=0, width=wide, height=HEIGHT, data_tip=f"{name}: {value} for {score.node}"))
            x += wide
    words = ", ".join(f"{name} {value}" for name, value in score.plugins.items() if value)
    bar = element("svg", *parts, class_="scores", view_box=f"0 0 {WIDTH} {HEIGHT}", preserve="none", aria_hidden="true")
    return ScoreRow(score.node, score.total, words, bar)
