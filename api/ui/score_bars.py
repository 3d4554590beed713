"""The scores of the best nodes, as bars stacked by plugin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from markupsafe import Markup

from api.ui.svg import element
from extender.answers.types import NodeScore, PluginScore

WIDTH, HEIGHT = 1000, 24
FIRST_NODES: Final = 4
"""The number of nodes of which all figures are shown."""
OTHERS: Final = "others"
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
class PluginRow:
    """The scores of one plugin for the first nodes: None where it gave none."""

    plugin: str
    weight: int
    parts: tuple[PluginScore | None, ...]


@final
@dataclass(frozen=True, slots=True)
class ScoreBars:
    """The nodes, best first, (plugin, CSS class) of the plugins that scored, and the figures of the first nodes."""

    rows: tuple[ScoreRow, ...]
    plugins: tuple[tuple[str, str], ...]
    figures: tuple[PluginRow, ...] = ()
    others: tuple[int, ...] = ()
    """What others than plugins gave the first nodes; empty if nothing."""


def score_bars(scores: Sequence[NodeScore]) -> ScoreBars:
    """Returns the bars, all at one scale."""
    parts = [_parts(score) for score in scores]
    names = list(dict.fromkeys(name for each in parts for name, value in each.items() if value))
    names.sort(key=lambda name: -max(each.get(name, 0) for each in parts))
    css = {name: f"c{place % COLOURS}" for place, name in enumerate(names)}
    best = max((score.total for score in scores), default=0)
    first = scores[:FIRST_NODES]
    weights = {name: part.weight for score in first for name, part in score.plugins.items()}
    return ScoreBars(
        tuple(_row(score, css, best) for score in scores),
        tuple(css.items()),
        tuple(
            PluginRow(name, weight, tuple(score.plugins.get(name) for score in first))
            for name, weight in weights.items()
        ),
        tuple(score.others for score in first) if weights and any(score.others for score in first) else (),
    )


def _row(score: NodeScore, css: dict[str, str], best: int) -> ScoreRow:
    parts, x, values = [], 0.0, _parts(score)
    for name, colour in css.items():
        value = values.get(name, 0)
        if value > 0 and best > 0:
            wide = WIDTH * value / best
            parts.append(
                element(
                    "rect",
                    class_=colour,
                    x=x,
                    y=0,
                    width=wide,
                    height=HEIGHT,
                    data_tip=f"{name}: {value} for {score.node}",
                )
            )
            x += wide
    words = ", ".join(f"{name} {value}" for name, value in values.items() if value)
    bar = element("svg", *parts, class_="scores", view_box=f"0 0 {WIDTH} {HEIGHT}", preserve="none", aria_hidden="true")
    return ScoreRow(score.node, score.total, words, bar)


def _parts(score: NodeScore) -> dict[str, int]:
    of_plugins = {name: part.weighted for name, part in score.plugins.items()}
    return {**of_plugins, OTHERS: score.others} if score.plugins and score.others else of_plugins
