"""The plot of docs/figures.md: an SVG file of its own, which follows the reader's theme."""

from collections.abc import Mapping

from markupsafe import Markup

from api.ui.node_drawing import drawing, element
from bench.decision import SHAPES, Figures

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 300, 70, 40, 16
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444; stroke: none !important }
.axis { stroke: #ccc } .line { fill: none; stroke-width: 2 }
.c0 { stroke: #1f6feb; fill: #1f6feb } .c1 { stroke: #c4432b; fill: #c4432b } .c2 { stroke: #2a8a4a; fill: #2a8a4a }
.c3 { stroke: #9a5bc7; fill: #9a5bc7 } .c4 { stroke: #b8860b; fill: #b8860b }
.line.c0, .line.c1, .line.c2, .line.c3, .line.c4 { fill: none }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .axis { stroke: #444 } }
"""


def _standing(picture: Markup) -> str:
    """A drawing as a file of its own."""
    return (
        str(picture)
        .replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        .replace(">", f"><style>{_STYLE}</style>", 1)
        + "\n"
    )


def lines(decisions: Mapping[tuple[int, str], Figures]) -> str:
    sizes = sorted({nodes for nodes, _ in decisions})
    top = 500 * (1 + int(max(figures.per_second for figures in decisions.values()) // 500))
    wide, high = WIDTH - LEFT - 130, HEIGHT - BOTTOM - TOP

    def point(nodes: int, value: float) -> tuple[float, float]:
        return LEFT + nodes / sizes[-1] * wide, HEIGHT - BOTTOM - value / top * high

    parts = []
    for tick in range(5):
        _, y = point(0, top * tick / 4)
        parts.append(element("line", class_="axis", x1=LEFT, x2=LEFT + wide, y1=y, y2=y))
        parts.append(element("text", f"{top * tick // 4:,}", x=LEFT - 6, y=y + 4, text_anchor="end"))
    under = HEIGHT - BOTTOM + 18
    parts += [element("text", f"{nodes:,}", x=point(nodes, 0)[0], y=under, text_anchor="middle") for nodes in sizes]
    parts.append(element("text", "nodes", x=LEFT + wide, y=HEIGHT - 6, text_anchor="end"))
    ends = sorted(
        ((decisions[sizes[-1], shape].per_second, number, shape) for number, shape in enumerate(SHAPES)), reverse=True
    )
    below = 0.0
    for value, number, shape in ends:
        points = [point(nodes, decisions[nodes, shape].per_second) for nodes in sizes]
        parts.append(element("path", class_=f"line c{number}", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)))
        below = max(point(sizes[-1], value)[1], below + 15)
        parts.append(element("text", shape, class_=f"c{number}", x=LEFT + wide + 8, y=below + 4))
    return _standing(
        drawing(WIDTH, HEIGHT, *parts, label="Decisions a second and core by number of nodes, for five kinds of pods")
    )
