"""Draws docs/images/rooms.svg, the rooms of the program and what they import: python -m tools.draw_rooms

The arrows come from the import graph. An arrow that follows from others is left out: api imports values, too, but that
follows from the way down. Names, order and words are those of ARCHITECTURE.md.
"""

import re
import textwrap
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "rooms.svg"

COLUMNS: Final = {"sources": 0, "lab": 2, "cluster": 3, "answers": 0, "client": 2, "rules": 3}
"""Rooms beside the middle column, so that no arrow crosses a box."""
MIDDLE: Final = 1
WIDTH, HEIGHT, ACROSS, DOWN, LETTERS = 210, 64, 240, 96, 30

_STYLE: Final = (
    "rect { fill: #f6f8fa; stroke: #57606a } path { fill: none; stroke: #57606a } marker path { fill: #57606a } "
    "text { font: 12px system-ui, sans-serif; fill: #24292f; text-anchor: middle } .name { font-weight: 600; "
    "font-size: 14px } @media (prefers-color-scheme: dark) { rect { fill: #161b22; stroke: #8b949e } path { stroke: "
    "#8b949e } marker path { fill: #8b949e } text { fill: #e6edf3 } }"
)


def rooms() -> list[dict[str, str]]:
    """Returns the floors of ARCHITECTURE.md from the top, each as name -> words."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Rooms\n")[1].split("\n## ")[0]
    floors = []
    for names, words in re.findall(r"^(\w+(?: \| \w+)*) {2,}(\S.*)$", text, re.MULTILINE):
        sides = names.split(" | ")
        sentences = [words] if len(sides) == 1 else re.split(r"(?<=\.) ", words)
        floors.append(dict(zip(sides, sentences, strict=True)))
    return floors


def imports(floors: list[dict[str, str]]) -> set[tuple[str, str]]:
    """Returns (room, room below that it imports), without pairs that follow from others."""
    floor_of = {name: number for number, floor in enumerate(floors) for name in floor}
    graph = grimp.build_graph("extender", "reprieve", "api")
    pairs = {
        (above, below)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if (above := _room(module)) in floor_of and (below := _room(imported)) in floor_of
        if floor_of[above] < floor_of[below]
    }
    return {
        (above, below)
        for above, below in pairs
        if not any((above, between) in pairs and _leads(pairs, between, below) for between in floor_of)
    }


def _room(module: str) -> str:
    package, _, rest = module.partition(".")
    return package if package == "api" else rest.partition(".")[0]


def _leads(pairs: set[tuple[str, str]], above: str, below: str) -> bool:
    return (above, below) in pairs or any(_leads(pairs, third, below) for first, third in pairs if first == above)


def picture() -> str:
    """Returns the drawing."""
    floors = rooms()
    centres = {
        name: (COLUMNS.get(name, MIDDLE) * ACROSS + ACROSS // 2, number * DOWN + DOWN // 2)
        for number, floor in enumerate(floors)
        for name in floor
    }
    wide, high = ACROSS * (1 + max(COLUMNS.values())), DOWN * len(floors)
    boxes = [_box(*centres[name], name, words) for floor in floors for name, words in floor.items()]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">',
            "<title>The rooms of Reprieve, from the top; an arrow is an import</title>",
            f"<style>{_STYLE}</style>",
            '<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z"/></marker>',
            *boxes,
            *(_arrow(centres, *pair) for pair in sorted(imports(floors))),
            "</svg>\n",
        )
    )


def _box(x: int, y: int, name: str, words: str) -> str:
    lines = textwrap.wrap(words, LETTERS)
    top = y - 8 * len(lines) + 2
    texts = "".join(f'<text x="{x}" y="{top + 16 * (i + 1)}">{escape(line)}</text>' for i, line in enumerate(lines))
    frame = f'<rect x="{x - WIDTH // 2}" y="{y - HEIGHT // 2 - 6}" width="{WIDTH}" height="{HEIGHT + 12}" rx="6"/>'
    return f'{frame}<text class="name" x="{x}" y="{top}">{name}</text>{texts}'


def _arrow(centres: Mapping[str, tuple[int, int]], above: str, below: str) -> str:
    """Returns the arrow between two boxes: straight down, or around one corner, away from the middle column first."""
    (x1, y1), (x2, y2) = centres[above], centres[below]
    half, tall = WIDTH // 2, HEIGHT // 2 + 6
    if x1 == x2:
        way = f"M{x1} {y1 + tall}V{y2 - tall}"
    elif COLUMNS.get(above, MIDDLE) == MIDDLE:
        way = f"M{x1 + (half if x2 > x1 else -half)} {y1}H{x2}V{y2 - tall}"
    else:
        way = f"M{x1} {y1 + tall}V{y2}H{x2 + (half if x1 > x2 else -half)}"
    return f'<path d="{way}" marker-end="url(#end)"/>'


def main() -> None:
    """Writes the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
