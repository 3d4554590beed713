"""Node x plugin: nodes with equal verdicts share a row, so that thousands of nodes are a few rows."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, final

from extender.answers.types import NodePicture

MAX_ROWS: Final = 60
MAX_NAMES: Final = 200
"""The number of nodes of a row that are named."""

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
    refusals: int
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
    """Returns the rows of the picture: those of most nodes first, then those with fewest refusals.

    Arguments:
        first_only: a plugin was asked only about the nodes that those before it let pass.
    """
    passes = "passes, or was not asked" if first_only else "passes"
    nodes: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, cells in zip(answer.nodes, answer.cells, strict=True):
        nodes[cells].append(name)
    refusing = [place for place in range(len(answer.plugins)) if any(cells[place] >= 0 for cells in nodes)]
    ordered = sorted(nodes.items(), key=lambda row: (-len(row[1]), sum(cell >= 0 for cell in row[0]), row[1]))
    most = len(ordered[0][1]) if ordered else 1
    rows = tuple(
        PictureRow(
            count=len(names),
            percent=100 * len(names) / most,
            names=tuple(names[:MAX_NAMES]),
            refusals=sum(cells[place] >= 0 for place in refusing),
            cells=tuple(_cell(answer, place, cells[place], passes) for place in refusing),
        )
        for cells, names in ordered[:MAX_ROWS]
    )
    silent = tuple(name for place, name in enumerate(answer.plugins) if place not in refusing)
    return Picture(
        tuple(answer.plugins[place] for place in refusing),
        silent,
        rows,
        sum(len(names) for _, names in ordered[MAX_ROWS:]),
    )


def refused_first(answer: NodePicture) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns each plugin with the nodes that it is the first to refuse, in the order in which plugins run."""
    found: dict[int, list[str]] = defaultdict(list)
    for name, cells in zip(answer.nodes, answer.cells, strict=True):
        first = next((place for place, cell in enumerate(cells) if cell >= 0), None)
        if first is not None:
            found[first].append(name)
    return tuple((answer.plugins[place], tuple(names)) for place, names in sorted(found.items()))


def _cell(answer: NodePicture, column: int, place: int, passes: str) -> PictureCell:
    plugin, verdict = answer.plugins[column], answer.verdicts[place] if place >= 0 else None
    sign, css = _SIGNS.get(verdict.code if verdict is not None else "", ("!", "error"))
    if verdict is None:
        return PictureCell(sign, css, f"{plugin}: {passes}")
    helps = {"no": "evicting pods may help", "never": "evicting pods does not help"}.get(css, verdict.code)
    return PictureCell(sign, css, "\n".join([plugin, *verdict.reasons, helps]))
