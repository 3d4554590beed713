"""The waterfall as a table: how many nodes each Filter plugin left over, as bars, each of which continues in the
next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from markupsafe import Markup

from api.ui.svg import element
from extender.answers.types import ReasonCount, WaterfallStep

WIDTH, HEIGHT = 1000, 100
_TOP, _BOTTOM = 22, 78
_THINNEST: Final = 4.0
"""The width of the thinnest bar, so that a single node of thousands is visible."""


@final
@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """A plugin that refused nodes."""

    plugin: str
    before: int
    left: int
    refused: int
    unresolvable: int
    reasons: tuple[ReasonCount, ...]
    bar: Markup
    is_last: bool


@final
@dataclass(frozen=True, slots=True)
class WaterfallTable:
    """The plugins that refused nodes, in the order in which they were asked, and those that refused none."""

    total: int
    start: Markup
    rows: tuple[WaterfallRow, ...]
    silent: tuple[str, ...]


def waterfall_table(steps: Sequence[WaterfallStep], total: int) -> WaterfallTable:
    """Returns the table of a waterfall that begins with so many nodes."""
    refusing = [step for step in steps if step.refused]
    rows, before = [], total
    for place, step in enumerate(refusing):
        is_last = place == len(refusing) - 1
        bar = _bar(before, step.left, total, is_last)
        rows.append(
            WaterfallRow(step.plugin, before, step.left, step.refused, step.unresolvable, step.reasons, bar, is_last)
        )
        before = step.left
    start = _framed(
        element("rect", class_="stands", x=0, y=_TOP, width=WIDTH, height=_BOTTOM - _TOP), _flow(WIDTH, _BOTTOM, HEIGHT)
    )
    return WaterfallTable(total, start, tuple(rows), tuple(step.plugin for step in steps if not step.refused))


def _bar(before: int, left: int, total: int, is_last: bool) -> Markup:
    wide, kept = _width(before, total), _width(left, total)
    parts = [
        _flow(wide, 0, _TOP),
        element("rect", class_="stands", x=0, y=_TOP, width=kept, height=_BOTTOM - _TOP),
        element("rect", class_="refused", x=kept, y=_TOP, width=max(wide - kept, 0), height=_BOTTOM - _TOP),
        element("rect", fill="url(#hatch)", x=kept, y=_TOP, width=max(wide - kept, 0), height=_BOTTOM - _TOP),
    ]
    if not is_last:
        parts.append(_flow(kept, _BOTTOM, HEIGHT))
    return _framed(*parts)


def _flow(width: float, top: int, bottom: int) -> Markup:
    return element("rect", class_="flows", x=0, y=top, width=width, height=bottom - top)


def _framed(*parts: Markup) -> Markup:
    """Returns the bar, stretched over its cell. It is hidden from screen readers, since the numbers beside it say the
    same.
    """
    return element("svg", *parts, class_="bar", view_box=f"0 0 {WIDTH} {HEIGHT}", preserve="none", aria_hidden="true")


def _width(nodes: int, total: int) -> float:
    return max(_THINNEST, WIDTH * nodes / total) if nodes and total else 0.0
