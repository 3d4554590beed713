"""A ranking has the totals of the feasible nodes; the best of them is chosen without listing the others."""

import random
from collections.abc import Sequence
from typing import final

import numpy as np
import pytest
from hypothesis import given, strategies as st

from extender.engine import framework as fwk
from extender.engine.framework.interface import LabelScorePlugin
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.engine.plugins.taints import TaintToleration
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.scoring import Ranking, select_host, type_of_totals
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.columns import LabelScores
from extender.testing import (
    NodeBuilder,
    PodBuilder,
    make_cache,
    make_framework,
    make_node,
    make_pod,
    make_snapshot,
)
from tests.extender.plugins_by_table import Refuses, Scores
from tests.kit.tables import cases


def scored(framework: Framework, snapshot: Snapshot, pod: PodBuilder | None = None) -> tuple[Cycle, Rows]:
    """A cycle that has come to the scores, and its feasible nodes."""
    state = Cycle(framework, snapshot, (pod or make_pod("p")).obj())
    state.run_pre_filter_plugins()
    rows = state.feasible_rows()
    state.run_pre_score_plugins(rows)
    return state, rows


def as_lists(by_plugin: dict[str, Int64s]) -> dict[str, list[int]]:
    return {name: scores.tolist() for name, scores in by_plugin.items()}


@cases(
    "weights, expected",
    ("no scorer", [], np.int16),
    ("the usual weights", [1, 1, 2, 2, 3], np.int16),
    ("just narrow enough", [327], np.int16),
    ("one more", [328], np.int32),
    ("very heavy", [2**31], np.int64),
)
def test_totals_are_as_narrow_as_the_weights_allow(weights: list[int], expected: type[np.signedinteger]) -> None:
    assert type_of_totals(weights) is expected


@pytest.mark.parametrize("weight", [1, 327, 328, 10**6, 10**9])
def test_no_weight_is_too_heavy_for_a_total(weight: int) -> None:
    framework = make_framework(Scores("S", {"a": 99, "b": 100}), weights={"S": weight})

    state, rows = scored(framework, make_snapshot(make_node("a"), make_node("b")))

    assert state.ranking(rows).total.tolist() == [99 * weight, 100 * weight]


@final
class Wealth(fwk.ScorePlugin):
    """Scores nodes by their zone, which is a number; normalised over the feasible nodes by their highest."""

    normalizes_by_extremes = True

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> Int64s:
        return rows.label_number("zone")

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return fwk.default_normalize_score(scores)


@cases(
    "zones, expected",
    ("different scores", [10, 20, 15], [50, 100, 75]),
    ("equal scores, which are normalised once", [20, 20, 20], [100, 100, 100]),
)
def test_scores_are_normalised_over_the_feasible_nodes(zones: list[int], expected: list[int]) -> None:
    """The richest zone is full, so that it is no measure for the others."""
    nodes = [make_node(f"n{place}").label(zone=str(zone)) for place, zone in enumerate([*zones, 1000])]
    full = Refuses("Full", {"n3": fwk.unschedulable("full")})

    state, rows = scored(make_framework(full, Wealth()), make_snapshot(*nodes))

    assert state.ranking(rows).total.tolist() == expected
    assert state.run_score_plugins(rows).total.tolist() == expected


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.sampled_from([1, 400, 10**6]))
def test_a_ranking_has_the_scores_of_the_score_plugins_whatever_their_span(zones: list[int], weight: int) -> None:
    """Of a span below the number of nodes, every possible score is normalised once; of a wider one, every node's."""
    nodes = [make_node(f"n{place}").label(zone=str(zone)) for place, zone in enumerate(zones)]

    state, rows = scored(make_framework(Wealth(), weights={"Wealth": weight}), make_snapshot(*nodes))
    ranking, every_row = state.ranking(rows), np.arange(len(rows))

    scores, row_scores = state.run_score_plugins(rows), state.scores_at(rows, every_row)
    assert ranking.total.tolist() == scores.total.tolist()
    assert row_scores.raw["Wealth"].tolist() == zones
    assert row_scores.weighted["Wealth"].tolist() == scores.weighted["Wealth"].tolist()


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=8, max_size=8),
    st.sampled_from(["", "b"]),
    st.lists(st.integers(0, 8), min_size=6, max_size=12),
    st.sampled_from([2, 400, 10**6]),
    st.booleans(),
)
def test_scores_that_follow_from_one_label_are_those_of_each_node(
    zones: list[str], last: str, pods_at: list[int], weight: int, is_alone: bool
) -> None:
    """Also of nodes without the label, of values that no node has any more, and after nodes and pods changed."""

    def node(place: int, zone: str) -> NodeBuilder:
        return make_node(f"n{place}").label(rack=str(place % 2), **({"zone": zone} if zone else {}))

    running = [make_pod(f"web-{number}").label(app="web") for number in range(len(pods_at))]
    on_nodes = [pod.node(f"n{place}") for pod, place in zip(running, pods_at, strict=True)]
    cache = make_cache(*(node(place, zone) for place, zone in enumerate([*zones, last])), pods=on_nodes)
    framework = make_framework(InterPodAffinity, weights={"InterPodAffinity": weight})
    pod = make_pod("p").preferred_pod_affinity(7, "zone", app="web")
    if not is_alone:
        pod = pod.preferred_pod_anti_affinity(3, "rack", app="web")

    for turn in range(4):
        state, rows = scored(framework, cache.update_snapshot(), pod)
        ranking, every_row = state.ranking(rows), np.arange(len(rows))
        scores, row_scores = state.run_score_plugins(rows), state.scores_at(rows, every_row)
        assert ranking.total.tolist() == scores.total.tolist()
        assert as_lists(row_scores.raw) == as_lists(scores.raw)
        assert as_lists(row_scores.weighted) == as_lists(scores.weighted)
        if turn % 2:
            cache.add_pod(make_pod(f"late-{turn}").label(app="web").node("n7").obj())
        for place, zone in enumerate(zones):
            if zone == "a" and not turn:
                cache.update_node(node(place, "a").obj(), node(place, "d").obj())
            elif zone == "c" and turn == 2:
                cache.update_node(node(place, "c").obj(), node(place, "b").obj())


def test_a_subclass_that_scores_otherwise_is_asked() -> None:
    class Zones(LabelScorePlugin):
        def label_scores(self, state: fwk.CycleState) -> Sequence[LabelScores]:
            column = make_snapshot(*nodes).nodes.label("zone")
            return [LabelScores(column, np.array([30, 60, 0]))]

    class Racks(Zones):
        def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> Int64s:
            return 100 - super().score(state, pod, rows)

    nodes = [make_node(f"n{place}").label(zone="ab"[place % 2]) for place in range(6)]
    totals = []
    for plugin in (Zones(), Racks()):
        state, rows = scored(make_framework(plugin), make_snapshot(*nodes))
        assert state.run_score_plugins(rows).total.tolist() == state.ranking(rows).total.tolist()
        totals.append(state.ranking(rows).total.tolist())

    assert totals == [[30, 60] * 3, [70, 40] * 3]


def test_equal_nodes_are_distinguished_once_one_changes() -> None:
    cache = make_cache(*(make_node(name) for name in "abc"))
    framework = make_framework(TaintToleration)

    def totals() -> dict[str, int]:
        state, rows = scored(framework, cache.update_snapshot())
        return dict(zip(rows.names, state.ranking(rows).total.tolist(), strict=True))

    before = totals()
    cache.update_node(make_node("b").obj(), make_node("b").taint("slow", effect="PreferNoSchedule").obj())

    assert before == {"a": 100, "b": 100, "c": 100}
    assert totals() == {"a": 100, "b": 0, "c": 100}


def test_among_some_of_the_nodes_the_best_is_the_one_that_would_be_chosen_if_they_were_listed() -> None:
    snapshot = make_snapshot(*(make_node(f"n{number}") for number in range(50)))
    chance = random.Random(5)
    for seed in range(40):
        mask = np.array([chance.random() < 0.6 for _ in range(50)])
        totals = np.array([chance.randrange(4) for _ in range(50)], np.int16)
        rows = Rows.masked(snapshot, mask)
        ranking = Ranking(rows, (totals + np.int16(1)) * mask, is_over_nodes=True, common=300)

        assert ranking.total.tolist() == (totals[mask] + 300).tolist()
        assert ranking.best(random.Random(seed)) == rows.node[select_host(totals[mask], random.Random(seed))]
