"""What the framework makes of scores: skipped, normalised, weighted, added up; and what it does not take for scores."""

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.scoring import Scores as Scored
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.testing import make_framework, make_node, make_pod, make_snapshot
from tests.extender.plugins_by_table import Answers, PreScores, Scores, raising
from tests.kit.places import without_place
from tests.kit.tables import cases

POD = make_pod().obj()


def score(framework: Framework) -> Scored:
    """What the plugins say of nodes a and b, after PreScore."""
    snapshot = make_snapshot(make_node("a"), make_node("b"))
    state, rows = Cycle(framework, snapshot, POD), Rows.of(snapshot)
    state.run_pre_score_plugins(rows)
    return state.run_score_plugins(rows)


class Halves(fwk.ScorePlugin):
    """Gives 200 and 100, and brings that to the scale."""

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.array([200, 100])[: len(rows)]

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return scores // 2


@cases(
    "plugins, weights, total",
    ("nobody", [], {}, [0, 0]),
    ("one", [Scores("A", {"a": 10, "b": 20})], {}, [10, 20]),
    ("weighted", [Scores("A", {"a": 10, "b": 20})], {"A": 3}, [30, 60]),
    ("added up", [Scores("A", {"a": 100}), Scores("B", {"b": 100})], {"A": 2, "B": 5}, [200, 500]),
    ("normalised before it is weighted", [Halves()], {"Halves": 2}, [200, 100]),
    ("in int64", [Scores("A", {"a": 100})], {"A": 2**56}, [100 * 2**56, 0]),
)
def test_the_total_is_the_weighted_sum_of_normalised_scores(
    plugins: list[fwk.Plugin], weights: dict[str, int], total: list[int]
) -> None:
    assert score(make_framework(*plugins, weights=weights)).total.tolist() == total


def test_every_part_of_a_total_is_shown() -> None:
    scores = score(make_framework(Halves, Scores("A", {"b": 7}), weights={"Halves": 2, "A": 3}))

    assert {name: per_row.tolist() for name, per_row in scores.raw.items()} == {"Halves": [200, 100], "A": [0, 7]}
    assert {name: per_row.tolist() for name, per_row in scores.weighted.items()} == {"Halves": [200, 100], "A": [0, 21]}


def test_a_plugin_that_pre_score_skipped_contributes_nothing() -> None:
    scores = score(make_framework(PreScores("A", fwk.SKIP), PreScores("B", fwk.SUCCESS)))

    assert list(scores.weighted) == ["B"]
    assert scores.total.tolist() == [50, 50]


@cases(
    "answer, message",
    ("unschedulable is no answer here", lambda: fwk.unschedulable("no"), "no"),
    ("an error", lambda: fwk.error("boom"), "boom"),
    ("it raises", raising(ValueError("boom")), "boom"),
)
def test_a_pre_score_that_goes_wrong_fails_the_cycle_in_its_own_name(answer: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        score(make_framework(Answers("pre_score", answer)))  # type: ignore[arg-type]

    text = f'running PreScore plugin "Answers": {message}'
    assert (caught.value.plugin, without_place(str(caught.value))) == ("Answers", text)


NO_SCORES = [
    pytest.param(raising(ValueError("boom")), "boom", id="it raises"),
    pytest.param(lambda: "12", "scores must be an array of 2 integers", id="a text"),
    pytest.param(lambda: [1, 2], "scores must be an array of 2 integers", id="a list"),
    pytest.param(lambda: np.array([1]), "scores must be an array of 2 integers", id="too few"),
    pytest.param(lambda: np.array([[1, 2]]), "scores must be an array of 2 integers", id="of another shape"),
    pytest.param(lambda: np.array([1.0, 2.0]), "scores must be integers, not float64", id="floats"),
    pytest.param(lambda: np.array([np.nan, np.inf]), "scores must be integers, not float64", id="not a number"),
    pytest.param(lambda: np.array([True, False]), "scores must be integers, not bool", id="yes and no"),
    pytest.param(lambda: np.array(["1", "2"]), "scores must be integers, not <U1", id="strings"),
]


@pytest.mark.parametrize(
    ("answer", "message"),
    [*NO_SCORES, pytest.param(lambda: None, "scores must be an array of 2 integers", id="nothing")],
)
def test_invalid_score_fails_the_cycle_in_the_plugins_name(answer: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        score(make_framework(Answers("score", answer)))  # type: ignore[arg-type]

    text = f'running Score plugins: plugin "Answers" failed with: {message}'
    assert (caught.value.plugin, without_place(str(caught.value))) == ("Answers", text)


@pytest.mark.parametrize(("answer", "message"), NO_SCORES)
def test_invalid_normalised_score_fails_the_cycle_in_the_plugins_name(answer: object, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        score(make_framework(Answers("normalize_score", answer)))  # type: ignore[arg-type]

    text = f'running Normalize on Score plugins: plugin "Answers" failed with: {message}'
    assert (caught.value.plugin, without_place(str(caught.value))) == ("Answers", text)


@pytest.mark.parametrize("wrong", [101, -1, 2**40, -(2**40)])
def test_a_score_off_the_scale_fails_the_cycle(wrong: int) -> None:
    with pytest.raises(PluginError) as caught:
        score(make_framework(Scores("A", {"a": 50, "b": wrong})))

    assert str(caught.value) == (
        f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {wrong}, '
        "it should in the range of [0, 100] after normalizing"
    )


@pytest.mark.parametrize("edge", [0, 100])
def test_the_ends_of_the_scale_are_on_it(edge: int) -> None:
    assert score(make_framework(Scores("A", {"a": edge, "b": edge}))).total.tolist() == [edge, edge]


class Doubles(fwk.ScorePlugin):
    """Normalises in place, which it must not."""

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        return np.array([1, 2])

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        scores *= 2
        return scores


def test_raw_scores_cannot_be_written_to() -> None:
    """They are remembered for the next pod, and shown as they were given."""
    with pytest.raises(PluginError, match="read-only"):
        score(make_framework(Doubles))


@cases(
    "scores, normalised, reversed_",
    ("all nothing", [0, 0], [0, 0], [100, 100]),
    ("the best is 100", [5, 10], [50, 100], [50, 0]),
    ("rounded down before it is reversed", [1, 3], [33, 100], [67, 0]),
    ("alone", [7], [100], [0]),
    ("nobody", [], [], []),
    ("large numbers", [2**50, 2**51], [50, 100], [50, 0]),
)
def test_default_normalising(scores: list[int], normalised: list[int], reversed_: list[int]) -> None:
    """Each score as a share of the highest; where less is better, what is left to it."""
    raw = np.array(scores, np.int64)

    assert fwk.default_normalize_score(raw).tolist() == normalised
    assert fwk.default_normalize_score(raw, reverse=True).tolist() == reversed_
