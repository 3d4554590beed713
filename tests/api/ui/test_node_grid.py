"""Thousands of nodes are a few paths."""

import re

from api.ui.node_grid import group_grids, level, pitch_for, reason_grids, zone_grids
from api.ui.node_table import NodeSelection, groups_of
from extender.answers.overviews import NodeOnMap


def nodes(count: int, zones: int = 1, promised: int = 50) -> list[NodeOnMap]:
    unsorted = [
        NodeOnMap(name=f"n{i}", zone=f"z{i * zones // count}", cpu=100, requested_cpu=promised) for i in range(count)
    ]
    return sorted(unsorted, key=lambda node: node.zone)


def test_every_node_is_one_cell() -> None:
    (grid,) = zone_grids(nodes(5000), "cpu")

    cells = re.search(r'class="cell" d="([^"]*)"', grid.picture)

    assert cells is not None
    assert cells[1].count("z") == 5000


def test_five_thousand_nodes_are_few_elements_and_few_bytes() -> None:
    many = [NodeOnMap(name=f"n{i}", zone="z", cpu=100, requested_cpu=i % 101) for i in range(5000)]

    (grid,) = zone_grids(many, "cpu")

    assert grid.picture.count("<path") <= 12
    assert len(grid.picture) < 300_000


def test_zones_know_where_their_nodes_begin() -> None:
    grids = zone_grids(nodes(10, zones=2), "cpu")

    assert [(grid.zone, grid.first, grid.count, grid.words) for grid in grids] == [
        ("z0", 0, 5, "50 % of cpu requested"),
        ("z1", 5, 5, "50 % of cpu requested"),
    ]


def test_a_cell_is_as_full_as_its_node() -> None:
    (half,) = zone_grids(nodes(1, promised=50), "cpu")
    (full,) = zone_grids(nodes(1, promised=100), "cpu")

    assert re.search(r'class="u5" d="M0 16h32v16h', half.picture)
    assert re.search(r'class="u9" d="M0 0h32v32h', full.picture)


def test_nodes_that_change_are_framed() -> None:
    (grid,) = zone_grids(nodes(10), "cpu", ["n3", "elsewhere"])

    framed = re.search(r'class="framed" d="([^"]*)"', grid.picture)

    assert framed is not None
    assert framed[1].count("z") == 1


def test_nodes_that_are_not_chosen_are_pale_and_the_others_counted() -> None:
    (grid,) = group_grids(groups_of(nodes(10), NodeSelection()), "cpu", chosen={"n3", "n4", "elsewhere"})

    cells = {name: path.count("z") for name, path in re.findall(r'class="(u5|pale)" d="([^"]*)"', grid.picture)}
    assert cells == {"u5": 2, "pale": 8}
    assert grid.words == "50 % of cpu requested · 2 match"


def test_cells_are_never_too_small_to_point_at() -> None:
    assert [pitch_for(count) for count in (1, 500, 5000, 15_000)] == [34, 33, 10, 9]


def test_levels_reach_from_empty_to_full_and_what_is_over_is_full() -> None:
    assert [level(promised, 100) for promised in (0, 9, 10, 95, 100, 250)] == [0, 0, 1, 9, 9, 9]
    assert level(5, 0) == 9


def test_nodes_have_the_colour_of_what_refuses_them() -> None:
    (grid,) = reason_grids(nodes(5), {"n0": "c0", "n1": "c1", "n2": "c0"}, ["n4"])

    counts = {
        name: path.count("z") for name, path in re.findall(r'class="(c\d|passes|framed)" d="([^"]*)"', grid.picture)
    }
    assert counts == {"c0": 2, "c1": 1, "passes": 2, "framed": 1}
    assert grid.words == "2 feasible"


def test_a_cluster_without_nodes_has_no_grid() -> None:
    assert zone_grids([], "cpu") == reason_grids([], {}) == ()
