"""Thousands of nodes as a grid of small vessels: the darker and the fuller, the less room there is. A zone is a handful of SVG paths."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, final

from markupsafe import Markup

from api.ui.svg import boxes, drawing, element
from api.ui.vessel import Resource, room
from api.ui.wording import plural, share
from extender.answers.cluster_map import NodeOnMap

WIDTH: Final = 1000
LEVELS: Final = 10
_AREA: Final = WIDTH * 560
_SMALLEST, _LARGEST = 9, 34


@final
@dataclass(frozen=True, slots=True)
class ZoneGrid:
    """The nodes of one zone: `picture`, and what a pointer needs to find a node in it."""

    zone: str
    picture: Markup
    first: int
    """Place of its first node in the map."""
    count: int
    pitch: int
    columns: int
    promised: int
    """Percent, of the whole zone."""


def pitch_for(count: int) -> int:
    """The distance between two cells so that so many fill the picture, and can still be told apart."""
    return max(_SMALLEST, min(_LARGEST, int(sqrt(_AREA / max(count, 1)))))


def level(promised: int, whole: int) -> int:
    """0 for empty to 9 for full."""
    return min(LEVELS - 1, share(promised, whole) * LEVELS // 100)


def zone_grids(nodes: Sequence[NodeOnMap], by: Resource, marked: Collection[str] = ()) -> tuple[ZoneGrid, ...]:
    """A grid for each zone.

    Arguments:
        nodes: by zone, as a map has them.
        marked: names of nodes that get a frame.
    """
    pitch = pitch_for(len(nodes))
    starts = [place for place, node in enumerate(nodes) if place == 0 or node.zone != nodes[place - 1].zone]
    ends = [*starts[1:], len(nodes)]
    return tuple(_grid(nodes[start:end], start, by, pitch, frozenset(marked)) for start, end in zip(starts, ends, strict=False))


def _grid(nodes: Sequence[NodeOnMap], first: int, by: Resource, pitch: int, marked: frozenset[str]) -> ZoneGrid:
    columns = min(WIDTH // pitch, len(nodes))
    is_wide = columns == WIDTH // pitch
    inner = pitch - (2 if pitch > 14 else 1)
    corners = [(place % columns * pitch, place // columns * pitch) for place in range(len(nodes))]
    filled: dict[int, list[tuple[float, float, float, float]]] = {}
    for (x, y), node in zip(corners, nodes, strict=True):
        promised, whole = room(node, by)
        tall = round(inner * min(100, share(promised, whole)) / 100)
        if tall:
            filled.setdefault(level(promised, whole), []).append((x, y + inner - tall, inner, tall))
    parts = [element("path", class_="cell", d=boxes((x, y, inner, inner) for x, y in corners))]
    parts += [element("path", class_=f"u{shade}", d=boxes(places)) for shade, places in sorted(filled.items())]
    cordoned = [corner for corner, node in zip(corners, nodes, strict=True) if node.cordoned]
    if cordoned:
        crossed = "".join(f"M{x} {y + inner}l{inner} {-inner}" for x, y in cordoned)
        parts.append(element("path", class_="cordoned", d=crossed))
    framed = [corner for corner, node in zip(corners, nodes, strict=True) if node.name in marked]
    if framed:
        parts.append(element("path", class_="framed", d=boxes((x - 1, y - 1, inner + 2, inner + 2) for x, y in framed)))
    sums = [room(node, by) for node in nodes]
    promised = share(sum(each for each, _ in sums), sum(each for _, each in sums))
    zone = nodes[0].zone
    said = f"{plural(len(nodes), 'node')}{f' of {zone}' if zone else ''}, {promised} % promised"
    rows = ceil(len(nodes) / columns)
    picture = drawing(WIDTH if is_wide else columns * pitch, rows * pitch, *parts, label=said, class_="grid" if is_wide else "grid part")
    return ZoneGrid(zone, picture, first, len(nodes), pitch, columns, promised)
