"""Thousands of nodes as cells, darker and fuller where less is free. A zone is a handful of SVG paths."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, final

from markupsafe import Markup

from api.ui.node_drawing import boxes, drawing, element
from api.ui.node_table import GroupOfNodes, NodeSelection, groups_of
from api.ui.resources import Resource, resource_words, usage
from api.ui.wording import plural, share
from extender.answers.overviews import NodeOnMap

WIDTH: Final = 1000
LEVELS: Final = 10
PASSES: Final = "passes"
"""The CSS class of nodes that no plugin refuses."""
_AREA: Final = WIDTH * 560
_SMALLEST, _LARGEST = 9, 34

Box = tuple[float, float, float, float]
"""x, y, width, height."""


@final
@dataclass(frozen=True, slots=True)
class ZoneGrid:
    """The nodes of one zone: `picture`, and what a script needs to find the node at a point."""

    zone: str
    picture: Markup
    first: int
    """The place of its first node in the view."""
    count: int
    pitch: int
    columns: int
    words: str
    """A summary of the zone."""
    finds: str = ""
    """The filter that finds its nodes."""


def pitch_for(count: int) -> int:
    """Returns the distance between two cells at which so many fill the picture and can still be distinguished."""
    return max(_SMALLEST, min(_LARGEST, int(sqrt(_AREA / max(count, 1)))))


def level(requested: int, whole: int) -> int:
    """Returns 0 for an empty node to 9 for a full one."""
    return min(LEVELS - 1, share(requested, whole) * LEVELS // 100)


def group_grids(
    groups: Sequence[GroupOfNodes],
    resource: Resource,
    chosen: Collection[str] | None = None,
    marked: Collection[str] = (),
) -> tuple[ZoneGrid, ...]:
    """Returns a grid for each group, of how full nodes are: marked ones get a frame, all but the chosen ones pale."""
    return tuple(_fullness(zone, resource, frozenset(marked), chosen) for zone in _zones(groups))


def zone_grids(nodes: Sequence[NodeOnMap], resource: Resource, marked: Collection[str] = ()) -> tuple[ZoneGrid, ...]:
    return group_grids(groups_of(nodes, NodeSelection()), resource, marked=marked)


def reason_grids(
    nodes: Sequence[NodeOnMap], css: Mapping[str, str], marked: Collection[str] = ()
) -> tuple[ZoneGrid, ...]:
    """Returns a grid for each zone, of what refuses the nodes; `css` has the classes of those that are refused."""
    return tuple(_reasons(zone, css, frozenset(marked)) for zone in _zones(groups_of(nodes, NodeSelection())))


@final
@dataclass(frozen=True, slots=True)
class _Zone:
    """The nodes of one zone or other group, and the corners of their cells, in the same order."""

    group: GroupOfNodes
    first: int
    pitch: int
    columns: int
    corners: Sequence[tuple[int, int]]

    @property
    def inner(self) -> int:
        """The side of a cell without the gap to the next one."""
        return self.pitch - (2 if self.pitch > 14 else 1)

    def cells(self) -> Iterator[tuple[NodeOnMap, int, int]]:
        return ((node, x, y) for node, (x, y) in zip(self.group.nodes, self.corners, strict=True))


def _zones(groups: Sequence[GroupOfNodes]) -> list[_Zone]:
    pitch = pitch_for(sum(len(group.nodes) for group in groups))
    zones, first = [], 0
    for group in groups:
        columns = min(WIDTH // pitch, len(group.nodes))
        corners = [(place % columns * pitch, place // columns * pitch) for place in range(len(group.nodes))]
        zones.append(_Zone(group, first, pitch, columns, corners))
        first += len(group.nodes)
    return zones


def _fullness(zone: _Zone, resource: Resource, marked: frozenset[str], chosen: Collection[str] | None) -> ZoneGrid:
    inner, amounts = zone.inner, [usage(node, resource) for node in zone.group.nodes]
    filled: dict[int, list[Box]] = {}
    pale: list[Box] = []
    for (node, x, y), (requested, whole) in zip(zone.cells(), amounts, strict=True):
        tall = round(inner * min(100, share(requested, whole)) / 100)
        if chosen is not None and node.name not in chosen:
            pale.append((x, y, inner, inner))
        elif tall:
            filled.setdefault(level(requested, whole), []).append((x, y + inner - tall, inner, tall))
    parts = [element("path", class_="cell", d=boxes((x, y, inner, inner) for x, y in zone.corners))]
    parts += [element("path", class_=f"u{shade}", d=boxes(places)) for shade, places in sorted(filled.items())]
    if pale:
        parts.append(element("path", class_="pale", d=boxes(pale)))
    crossed = "".join(f"M{x} {y + inner}l{inner} {-inner}" for node, x, y in zone.cells() if node.cordoned)
    if crossed:
        parts.append(element("path", class_="cordoned", d=crossed))
    percent = share(sum(requested for requested, _ in amounts), sum(whole for _, whole in amounts))
    words = f"{percent} % of {resource_words(resource)} requested"
    if chosen is not None:
        words += f" · {len(amounts) - len(pale):,} match"
    return _drawn(zone, parts, marked, words)


def _reasons(zone: _Zone, css: Mapping[str, str], marked: frozenset[str]) -> ZoneGrid:
    groups: dict[str, list[Box]] = {}
    for node, x, y in zone.cells():
        groups.setdefault(css.get(node.name, PASSES), []).append((x, y, zone.inner, zone.inner))
    parts = [element("path", class_=name, d=boxes(places)) for name, places in sorted(groups.items())]
    return _drawn(zone, parts, marked, f"{len(groups.get(PASSES, ())):,} feasible")


def _drawn(zone: _Zone, parts: Sequence[Markup], marked: frozenset[str], words: str) -> ZoneGrid:
    framed = boxes((x - 1, y - 1, zone.inner + 2, zone.inner + 2) for node, x, y in zone.cells() if node.name in marked)
    frames = [element("path", class_="framed", d=framed)] if framed else []
    name, count = zone.group.title, len(zone.group.nodes)
    is_wide = zone.columns == WIDTH // zone.pitch
    picture = drawing(
        WIDTH if is_wide else zone.columns * zone.pitch,
        ceil(count / zone.columns) * zone.pitch,
        *parts,
        *frames,
        label=f"{plural(count, 'node')}{f' of {name}' if name else ''}, {words}",
        class_="grid" if is_wide else "grid part",
    )
    return ZoneGrid(name, picture, zone.first, count, zone.pitch, zone.columns, words, zone.group.words)
