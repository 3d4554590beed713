"""A drawing of a node: areas are amounts, and pods of high priority are at the bottom."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from api.ui.node_drawing import node_drawing, pod_tip, strips
from api.ui.resources import Priorities
from tests.api.ui.samples import HIDDEN, node, standing

WIDTH, HEIGHT = 100.0, 80.0


@given(st.lists(st.integers(0, 10_000), max_size=30), st.integers(0, 50_000))
def test_areas_are_in_proportion_and_in_the_box(amounts: list[int], free: int) -> None:
    whole = sum(amounts) + free

    placed = strips(amounts, WIDTH, HEIGHT, whole)

    assert [strip.index for strip in placed] == [index for index, amount in enumerate(amounts) if amount]
    for strip in placed:
        assert strip.width * strip.height == pytest.approx(WIDTH * HEIGHT * amounts[strip.index] / whole)
        assert strip.x >= -1e-6
        assert strip.x + strip.width <= WIDTH + 1e-6
        assert strip.y >= -1e-6
        assert strip.y + strip.height <= HEIGHT + 1e-6


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=12))
def test_rectangles_do_not_overlap_and_rise_from_the_bottom(amounts: list[int]) -> None:
    placed = strips(amounts, WIDTH, HEIGHT, 2 * sum(amounts))

    for one, other in pairwise(placed):
        beside = other.y == pytest.approx(one.y) and other.x >= one.x + one.width - 1e-6
        above = other.y + other.height <= one.y + 1e-6
        assert beside or above
    assert placed[0].y + placed[0].height == pytest.approx(HEIGHT)


def test_a_node_without_any_room_has_no_rectangles() -> None:
    assert strips([5], WIDTH, HEIGHT, 0) == []


def test_leaving_pod_is_hatched_and_arriving_pod_marked() -> None:
    drawn_node = node(standing("stays-here", 1000), standing("goes-away", 1000), standing("comes-now", 1000))
    marks = {"shop/goes-away": "leaves", "shop/comes-now": "arrives"}

    picture = node_drawing(drawn_node, "cpu", Priorities.of([0]), width=300, height=300, marks=marks)  # type: ignore[arg-type]

    assert picture.count("url(#hatch)") == 1
    assert "✕ goes-away" in picture
    assert "★ comes-now" in picture
    assert "evicted" in picture


def test_a_pod_that_asks_for_nothing_is_a_tick_below_the_node() -> None:
    picture = node_drawing(node(standing("idle", 0)), "cpu", Priorities.of([0]), width=100, height=100)

    assert 'y="103"' in picture
    assert "shop/idle" in picture


def test_requests_beyond_the_node_stand_above_its_rim() -> None:
    fitting = node_drawing(node(standing("a", 4000)), "cpu", Priorities.of([0]), width=100, height=100)
    beyond = node_drawing(node(standing("a", 6000)), "cpu", Priorities.of([0]), width=100, height=100)

    assert 'viewBox="0 0 100 110"' in fitting
    assert 'viewBox="0 0 100 160"' in beyond


def test_names_are_text_and_never_markup() -> None:
    picture = node_drawing(
        node(standing("<script>alert(1)</script>", 4000)), "cpu", Priorities.of([0]), width=400, height=100
    )

    assert "<script>" not in picture
    assert "&lt;script&gt;" in picture


def test_drawing_has_no_inline_style_as_the_policy_forbids_it() -> None:
    assert "style=" not in node_drawing(node(standing("a", 4000)), "cpu", Priorities.of([0]), width=100, height=100)


def test_a_pod_says_its_name_its_priority_and_its_size() -> None:
    assert pod_tip(standing("a", 1500, 10, 2**30), Priorities.of([10])) == "shop/a\npriority 10\n1.5 cpu · 1 GiB"


def test_hidden_pod_is_described_as_that_of_another_namespace() -> None:
    hidden = standing("a", 1500)

    assert pod_tip(type(hidden)(pod=HIDDEN, cpu=1500), Priorities.of([7])).startswith(
        "another namespace's pod\npriority 7"
    )
