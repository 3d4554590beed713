"""The nodes of a plan before and after it, drawn."""

from collections.abc import Iterator
from html import escape
from typing import Final

from extender.answers.phrases import plural
from reprieve.lab.plan.plan_answer import NodeUse, PlanAnswer

_DRAWN: Final = 40
"""The most nodes of a picture."""
_CELLS: Final = 16
"""A node with at most so many of a resource has a square for each."""
_WIDTH, _LINE, _LEFT, _GAP = 200, 22, 150, 40


def drawn(answer: PlanAnswer) -> str:
    """Returns an SVG: a line for each node that changes or is free, with what is requested of it before and after."""
    nodes, beside = answer.nodes[:_DRAWN], _LEFT + _WIDTH + _GAP
    height = _LINE * (len(nodes) + 3)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {beside + _WIDTH + 90} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#333"><title>{escape(answer.summary)}</title>',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="16">{escape(answer.resource)} before</text><text x="{beside}" y="16">after '
        f"{plural(len(answer.moves), 'move')}</text>",
    ]
    for number, node in enumerate(nodes, 1):
        y = _LINE * number + 6
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 12}" text-anchor="end">{escape(node.node[:22])}</text>')
        for x, amount, before in ((_LEFT, node.before, node.before), (beside, node.after, node.before)):
            parts += _bar(node, x, y, amount, before)
        if node.is_free:
            parts.append(f'<text x="{beside + _WIDTH + 10}" y="{y + 12}" fill="#1a7f37" font-weight="bold">free</text>')
    if len(answer.nodes) > len(nodes):
        parts.append(f'<text x="{_LEFT}" y="{height - 12}">and {len(answer.nodes) - len(nodes)} more</text>')
    return "\n".join((*parts, "</svg>"))


def _bar(node: NodeUse, x: int, y: int, amount: int, before: int) -> Iterator[str]:
    """Yields the requested, the added and the free part, in three colours."""
    total = max(node.allocatable, amount, 1)
    cells = total if total <= _CELLS else 1
    width, stays = _WIDTH / cells, min(amount, before)
    free = "#d8f3dc" if node.is_free and not amount else "#eee"
    for cell in range(cells):
        parts = [(1.0, "#4a78b5" if cell < stays else "#e08a2e" if cell < amount else free)]
        if cells == 1:
            parts = [(1.0, free), (amount / total, "#e08a2e"), (stays / total, "#4a78b5")]
        for part, fill in parts:
            geometry = f'x="{x + cell * width:.1f}" y="{y}" width="{(width - 2) * part:.1f}" height="16"'
            yield f'<rect {geometry} fill="{fill}"/>'
