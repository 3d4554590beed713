"""Which node is chosen when making room works on several: five criteria in order, each asked only where those before it
leave a tie.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.engine.framework import Candidate, ScoreFunction
from extender.engine.framework.preemption import Candidates
from extender.engine.preemption import V1_36
from extender.engine.preemption.costs import (
    ORDERED_SCORE_FUNCTIONS,
    fewest_pdb_violations,
    fewest_victims,
    pick_one_node_for_preemption,
)
from extender.engine.snapshot.axes import Int64s
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from extender.values.objects.pod import start_time
from tests.kit.examples import examples
from tests.kit.tables import cases

EARLY, NOON, LATE = "2026-01-01T08:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T18:00:00Z"
LEAST = -(2**31)
"""The lowest priority there is."""


def v(priority: int, started: str = NOON) -> PodBuilder:
    """A victim."""
    return make_pod().priority(priority).start_time(started)


def candidates(victims: Mapping[str, Sequence[PodBuilder]], violations: Mapping[str, int] | None = None) -> Candidates:
    """Node -> its victims, most important first; and node -> how many of them violate a budget."""
    placed = {
        node: [victim.name(f"{node}-{place}").node(node).obj() for place, victim in enumerate(of_node)]
        for node, of_node in victims.items()
    }
    snapshot = make_snapshot(*map(make_node, victims), pods=[pod for pods in placed.values() for pod in pods])
    listed = [Candidate(node, tuple(pods), (violations or {}).get(node, 0)) for node, pods in placed.items()]
    return Candidates.of(snapshot, listed, V1_36)


def chosen(options: Candidates) -> list[str]:
    """The nodes that no criterion tells apart."""
    return [options.at(place).node for place in pick_one_node_for_preemption(options).tolist()]


@cases(
    "victims, violations, best",
    ("a single candidate is taken whatever it costs", {"a": [v(9)]}, {"a": 5}, ["a"]),
    # 1
    ("1: the fewest violations of budgets, before all else", {"a": [v(0)], "b": [v(9), v(9)]}, {"a": 1}, ["b"]),
    ("1: fewer of them, where all have some", {"a": [v(0)], "b": [v(0), v(0)]}, {"a": 2, "b": 1}, ["b"]),
    # 2
    ("2: the lowest priority of the first victim", {"a": [v(5)], "b": [v(4), v(4), v(4)]}, {}, ["b"]),
    ("2: below zero, too", {"a": [v(-1)], "b": [v(-2)]}, {}, ["b"]),
    # 3
    ("3: the smallest sum of priorities", {"a": [v(5), v(3)], "b": [v(5), v(2)]}, {}, ["b"]),
    ("3: more victims are never cheaper, however low their priority", {"a": [v(5), v(-9)], "b": [v(5)]}, {}, ["b"]),
    # 4
    ("4: the fewest, where one more adds nothing", {"a": [v(5), v(LEAST), v(LEAST)], "b": [v(5), v(LEAST)]}, {}, ["b"]),
    # 5
    ("5: the latest start, for the less work is lost", {"a": [v(5, EARLY)], "b": [v(5, LATE)]}, {}, ["b"]),
    (
        "5: of the earliest of those of highest priority",
        {"a": [v(5, NOON), v(5, EARLY)], "b": [v(5, NOON), v(5, NOON)]},
        {},
        ["b"],
    ),
    (
        "5: those of lower priority do not matter",
        {"a": [v(5, NOON), v(4, EARLY)], "b": [v(5, NOON), v(4, LATE)]},
        {},
        ["a", "b"],
    ),
    ("5: a pod that has not started starts now", {"a": [v(5, LATE)], "b": [make_pod().priority(5)]}, {}, ["b"]),
    # 6
    ("then any of them", {"a": [v(5)], "b": [v(6)], "c": [v(5)]}, {}, ["a", "c"]),
)
def test_the_node_where_the_least_is_lost(
    victims: dict[str, list[PodBuilder]], violations: dict[str, int], best: list[str]
) -> None:
    assert chosen(candidates(victims, violations)) == best


def test_no_candidate_no_choice() -> None:
    assert chosen(candidates({})) == []


def test_the_first_victim_stands_for_all_whatever_its_priority() -> None:
    """Criterion 2 reads the first victim and does not look for the highest priority: an extender that lists them in
    another order is taken at its word, as upstream does.
    """
    assert chosen(candidates({"a": [v(1), v(9)], "b": [v(2), v(2)]})) == ["a"]


def test_own_criteria_replace_all_others() -> None:
    """Upstream's OrderedScoreFuncs."""

    def most_victims(options: Candidates) -> Int64s:
        return -fewest_victims(options)

    options = candidates({"a": [v(0)], "b": [v(9), v(9)], "c": [v(5), v(5)]}, {"b": 7})

    def chosen_by(*criteria: ScoreFunction) -> list[int]:
        return [
            *pick_one_node_for_preemption(msgspec.structs.replace(options, rules=replace(V1_36, criteria=criteria)))
        ]

    assert chosen_by(most_victims) == [1, 2]
    assert chosen_by(most_victims, fewest_pdb_violations) == [2]
    assert chosen_by() == [0, 1, 2]


def test_candidates_are_spelled_out_as_they_were_given() -> None:
    options = candidates({"a": [v(3), v(2)], "b": [v(1)]}, {"b": 1})

    listed = [(one.node, [pod.name for pod in one.victims], one.num_pdb_violations) for one in options.listed()]

    assert listed == [("a", ["a-0", "a-1"], 0), ("b", ["b-0"], 1)]


@pytest.mark.parametrize("places", [[], [1], [2, 0], [0, 1, 2], [1, 1]])
def test_some_candidates_keep_their_victims(places: list[int]) -> None:
    options = candidates({"a": [v(3), v(2)], "b": [v(1)], "c": [v(4), v(4), v(4)]}, {"b": 1})

    assert options.take(np.array(places, np.intp)).listed() == [options.at(place) for place in places]


def naive_choice(listed: Sequence[Candidate]) -> list[str]:
    """The criteria as upstream's documentation tells them, over spelled-out candidates."""

    def earliest(one: Candidate) -> int:
        top = max(pod.priority for pod in one.victims)
        return min(start_time(pod) for pod in one.victims if pod.priority == top)

    rivals = list(listed)
    for cost in (
        lambda one: one.num_pdb_violations,
        lambda one: one.victims[0].priority,
        lambda one: sum(pod.priority + 2**31 for pod in one.victims),
        lambda one: len(one.victims),
        lambda one: -earliest(one),
    ):
        lowest = min(cost(one) for one in rivals)
        rivals = [one for one in rivals if cost(one) == lowest]
    return [one.node for one in rivals]


@settings(deadline=None, max_examples=examples(200))
@given(st.randoms(use_true_random=False))
def test_the_choice_is_that_of_the_criteria_told_one_by_one(chance: random.Random) -> None:
    victims = {
        f"n{number}": [
            v(chance.choice((LEAST, -1, 0, 1, 2**31 - 1)), chance.choice((EARLY, NOON, LATE)))
            for _ in range(chance.randint(1, 3))
        ]
        for number in range(chance.randint(1, 5))
    }
    options = candidates(victims, {node: chance.randrange(2) for node in victims})

    assert chosen(options) == naive_choice(options.listed())


def test_candidates_are_ordered_by_five_criteria() -> None:
    assert [criterion.__name__ for criterion in ORDERED_SCORE_FUNCTIONS] == [
        "fewest_pdb_violations",
        "lowest_first_priority",
        "lowest_sum_of_priorities",
        "fewest_victims",
        "latest_start_time",
    ]
