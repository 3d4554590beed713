"""What an answer says about nodes, drawn as tables: the waterfall (how many nodes each Filter plugin left over, as
bars, each of which continues in the next), the scores of the best nodes, as bars stacked by plugin, and node x plugin,
where nodes with equal verdicts share a row, so that thousands of nodes are a few rows.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from markupsafe import Markup

from api.ui.node_drawing import element
from extender.answers.types import NodePicture, NodeScore, PluginScore, WaterfallStep
from extender.values import limits

WIDTH, HEIGHT = 1000, 100
_TOP, _BOTTOM = 22, 78
_THINNEST: Final = 4.0
"""The width of the thinnest bar, so that a single node of thousands is visible."""


@final
@dataclass(frozen=True, slots=True)
class WaterfallTable:
    """The plugins that refused nodes with their bars, in the order in which they were asked, and the others."""

    total: int
    start: Markup
    rows: tuple[tuple[WaterfallStep, Markup], ...]
    silent: tuple[str, ...]


def waterfall_table(steps: Sequence[WaterfallStep], total: int) -> WaterfallTable:
    refusing = [step for step in steps if step.refused]
    rows, before = [], total
    for place, step in enumerate(refusing):
        rows.append((step, _bar(before, step.left, total, is_last=place == len(refusing) - 1)))
        before = step.left
    start = _framed(
        element("rect", class_="stands", x=0, y=_TOP, width=WIDTH, height=_BOTTOM - _TOP), _flow(WIDTH, _BOTTOM, HEIGHT)
    )
    return WaterfallTable(total, start, tuple(rows), tuple(step.plugin for step in steps if not step.refused))


def _bar(before: int, nodes_left: int, total: int, *, is_last: bool) -> Markup:
    wide, kept_width = _width(before, total), _width(nodes_left, total)
    lost_width = max(wide - kept_width, 0)
    parts = [
        _flow(wide, 0, _TOP),
        element("rect", class_="stands", x=0, y=_TOP, width=kept_width, height=_BOTTOM - _TOP),
        element("rect", class_="refused", x=kept_width, y=_TOP, width=lost_width, height=_BOTTOM - _TOP),
        element("rect", fill="url(#hatch)", x=kept_width, y=_TOP, width=lost_width, height=_BOTTOM - _TOP),
    ]
    if not is_last:
        parts.append(_flow(kept_width, _BOTTOM, HEIGHT))
    return _framed(*parts)


def _flow(width: float, top: int, bottom: int) -> Markup:
    return element("rect", class_="flows", x=0, y=top, width=width, height=bottom - top)


def _framed(*parts: Markup) -> Markup:
    # Stretched over its cell, and hidden from screen readers: the numbers beside it say the same.
    return element("svg", *parts, class_="bar", view_box=f"0 0 {WIDTH} {HEIGHT}", preserve="none", aria_hidden="true")


def _width(nodes: int, total: int) -> float:
    return max(_THINNEST, WIDTH * nodes / total) if nodes and total else 0.0


SCORE_WIDTH, SCORE_HEIGHT = 1000, 24
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
class ScoreBars:
    """The nodes, best first, and the figures of the first of them."""

    rows: tuple[ScoreRow, ...]
    plugins: tuple[tuple[str, str], ...]
    """(plugin, CSS class) of those that scored."""
    figures: tuple[tuple[str, int, tuple[PluginScore | None, ...]], ...] = ()
    """(plugin, weight, its score for each of the first nodes, or None)."""
    others: tuple[int, ...] = ()
    """What others than plugins gave the first nodes; empty if nothing."""


def score_bars(scores: Sequence[NodeScore]) -> ScoreBars:
    parts = [_parts(score) for score in scores]
    names = list(dict.fromkeys(name for part in parts for name, value in part.items() if value))
    names.sort(key=lambda name: -max(part.get(name, 0) for part in parts))
    css = {name: f"c{place % COLOURS}" for place, name in enumerate(names)}
    best = max((score.total for score in scores), default=0)
    first = scores[:FIRST_NODES]
    weights = {name: part.weight for score in first for name, part in score.plugins.items()}
    return ScoreBars(
        tuple(_row(score, css, best) for score in scores),
        tuple(css.items()),
        tuple((name, weight, tuple(score.plugins.get(name) for score in first)) for name, weight in weights.items()),
        tuple(score.others for score in first) if weights and any(score.others for score in first) else (),
    )


def _row(score: NodeScore, css: dict[str, str], best: int) -> ScoreRow:
    parts, x, values = [], 0.0, _parts(score)
    for name, colour in css.items():
        value = values.get(name, 0)
        if value > 0 and best > 0:
            wide, tip = SCORE_WIDTH * value / best, f"{name}: {value} for {score.node}"
            parts.append(element("rect", class_=colour, x=x, y=0, width=wide, height=SCORE_HEIGHT, data_tip=tip))
            x += wide
    words = ", ".join(f"{name} {value}" for name, value in values.items() if value)
    box = f"0 0 {SCORE_WIDTH} {SCORE_HEIGHT}"
    bar = element("svg", *parts, class_="scores", view_box=box, preserve="none", aria_hidden="true")
    return ScoreRow(score.node, score.total, words, bar)


def _parts(score: NodeScore) -> dict[str, int]:
    of_plugins = {name: part.weighted for name, part in score.plugins.items()}
    return {**of_plugins, OTHERS: score.others} if score.plugins and score.others else of_plugins


_SIGNS: Final = {"Unschedulable": ("✕", "no"), "UnschedulableAndUnresolvable": ("■", "never"), "": ("·", "yes")}


@final
@dataclass(frozen=True, slots=True)
class PictureCell:
    """The verdict of one plugin about the nodes of a row."""

    sign: str
    css: str
    tip: str


@final
@dataclass(frozen=True, slots=True)
class PictureRow:
    """Nodes with equal verdicts."""

    count: int
    percent: float
    """The share of the largest row."""
    names: tuple[str, ...]
    """The first of them."""
    cells: tuple[PictureCell, ...]


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """The rows, most nodes first."""

    plugins: tuple[str, ...]
    """The plugins that refuse at least one node; `silent` are the others."""
    silent: tuple[str, ...]
    rows: tuple[PictureRow, ...]
    others: int
    """The number of nodes in rows that are left out."""


def picture(answer: NodePicture, *, first_only: bool = False) -> Picture:
    """Returns the rows, most nodes first. With `first_only`, a plugin saw only the nodes that those before let pass."""
    passes = "passes, or was not asked" if first_only else "passes"
    nodes: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, cells in zip(answer.nodes, answer.cells, strict=True):
        nodes[cells].append(name)
    refusing = [place for place in range(len(answer.plugins)) if any(cells[place] >= 0 for cells in nodes)]
    ordered = sorted(nodes.items(), key=lambda row: (-len(row[1]), sum(cell >= 0 for cell in row[0]), row[1]))
    largest = len(ordered[0][1]) if ordered else 1
    rows = tuple(
        PictureRow(
            count=len(names),
            percent=100 * len(names) / largest,
            names=tuple(names[: limits.PICTURE_NAMES]),
            cells=tuple(_cell(answer, place, cells[place], passes) for place in refusing),
        )
        for cells, names in ordered[: limits.PICTURE_ROWS]
    )
    silent = tuple(name for place, name in enumerate(answer.plugins) if place not in refusing)
    return Picture(
        tuple(answer.plugins[place] for place in refusing),
        silent,
        rows,
        sum(len(names) for _, names in ordered[limits.PICTURE_ROWS :]),
    )


def refused_first(answer: NodePicture) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns each plugin with the nodes that it is the first to refuse, in the order in which plugins run."""
    nodes_by_place: dict[int, list[str]] = defaultdict(list)
    for name, cells in zip(answer.nodes, answer.cells, strict=True):
        first = next((place for place, cell in enumerate(cells) if cell >= 0), None)
        if first is not None:
            nodes_by_place[first].append(name)
    return tuple((answer.plugins[place], tuple(names)) for place, names in sorted(nodes_by_place.items()))


def _cell(answer: NodePicture, column: int, place: int, passes: str) -> PictureCell:
    plugin, verdict = answer.plugins[column], answer.verdicts[place] if place >= 0 else None
    sign, css = _SIGNS.get(verdict.code if verdict is not None else "", ("!", "error"))
    if verdict is None:
        return PictureCell(sign, css, f"{plugin}: {passes}")
    helps = {"no": "evicting pods may help", "never": "evicting pods does not help"}.get(css, verdict.code)
    return PictureCell(sign, css, "\n".join([plugin, *verdict.reasons, helps]))
