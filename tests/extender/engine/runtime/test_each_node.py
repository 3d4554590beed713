"""Plugins that look at one node at a time: what a stranger writes who would rather not think in arrays."""

import random

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.each_node import EachNodeFilter
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.testing import check_filter, make_framework, make_node, make_pod, make_snapshot, random_cluster
from tests.extender.moves import moves, slot_of
from tests.kit.tables import cases


class OneTeam(fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin):
    """A node belongs to the team whose pods are on it; nodes with many pods of one's own team are best."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        teams = {other.labels.get("team", "") for other in node.pods}
        rivals = sorted(teams - {"", pod.labels.get("team", "")})
        if node.labels.get("shared") == "never":
            return fwk.unresolvable("node(s) were not to be shared")
        return fwk.unschedulable(*(f"node(s) belonged to team {team}" for team in rivals)) if rivals else fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> int:
        return len(node.pods)

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        return fwk.default_normalize_score(scores)


SNAPSHOT = make_snapshot(
    *map(make_node, ("free", "red", "mixed")),
    make_node("private").label(shared="never"),
    pods=[
        make_pod("r1").label(team="red").node("red"),
        make_pod("r2").label(team="red").node("red"),
        make_pod("r3").label(team="red").node("mixed"),
        make_pod("g1").label(team="green").node("mixed"),
    ],
)
BLUE = make_pod("b").label(team="blue").obj()


def test_every_node_is_asked_by_itself() -> None:
    framework = make_framework(OneTeam)

    verdicts = Cycle(framework, SNAPSHOT, BLUE).run_filter_plugins(Rows.of(SNAPSHOT))

    assert [verdicts.status_of(row) for row in range(4)] == [
        fwk.SUCCESS,
        fwk.unschedulable("node(s) belonged to team red").by("OneTeam"),
        fwk.unschedulable("node(s) belonged to team green", "node(s) belonged to team red").by("OneTeam"),
        fwk.unresolvable("node(s) were not to be shared").by("OneTeam"),
    ]


def test_a_node_is_shown_with_the_pods_of_the_hypothesis() -> None:
    """So that such plugins take part in preemption without knowing of it."""
    framework, rows, red = make_framework(OneTeam), Rows.of(SNAPSHOT), SNAPSHOT.nodes.index["red"]
    emptied = rows.changed(moves((red, slot_of(SNAPSHOT, "r1"), -1), (red, slot_of(SNAPSHOT, "r2"), -1)))

    state = Cycle(framework, SNAPSHOT, BLUE)

    assert not state.run_filter_plugins(rows).ok[red]
    assert state.run_filter_plugins(emptied).ok[red]


def test_filter_of_single_nodes_keeps_the_laws() -> None:
    """A row is an honest hypothesis, and rows do not talk: nodes asked one by one cannot do otherwise."""
    for seed in range(20):
        cluster, chance = random_cluster(random.Random(seed)), random.Random(seed)
        check_filter(EachNodeFilter(OneTeam()), cluster.snapshot(), cluster.pod, chance, arrivals=cluster.arrivals)


def test_every_node_is_scored_by_itself() -> None:
    framework = make_framework(OneTeam)

    scores = Cycle(framework, SNAPSHOT, BLUE).run_score_plugins(Rows.of(SNAPSHOT))

    assert scores.raw["OneTeam"].tolist() == [0, 2, 2, 0]
    assert scores.total.tolist() == [0, 100, 100, 0]


class Says(fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin):
    """Gives the same answer, whatever it is, to both questions."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> fwk.Status:
        return self._answer  # type: ignore[return-value]

    def score(self, state: fwk.CycleState, pod: fwk.Pod, node: fwk.NodeInfo) -> int:
        return self._answer  # type: ignore[return-value]


@cases(
    "answer, message",
    ("yes", True, "filter returned bool, not a Status"),
    ("an error", fwk.error("boom"), "boom"),
    ("skip is no answer here", fwk.SKIP, "it answered code 5"),
)
def test_invalid_verdict_fails_the_cycle_in_the_plugins_name(answer: object, message: str) -> None:
    framework = make_framework(Says(answer))

    with pytest.raises(PluginError) as caught:
        Cycle(framework, SNAPSHOT, BLUE).run_filter_plugins(Rows.of(SNAPSHOT))

    assert (caught.value.plugin, str(caught.value)) == ("Says", f'running "Says" filter plugin: {message}')


@cases(
    "answer, message",
    ("yes", True, "score returned bool, not an integer"),
    ("a float", 7.5, "score returned float, not an integer"),
    ("nothing", None, "score returned NoneType, not an integer"),
    ("more than int64 holds", 2**70, "Python int too large to convert to C long"),
)
def test_invalid_score_fails_the_cycle_in_the_plugins_name(answer: object, message: str) -> None:
    framework = make_framework(Says(answer))

    with pytest.raises(PluginError) as caught:
        Cycle(framework, SNAPSHOT, BLUE).run_score_plugins(Rows.of(SNAPSHOT))

    assert str(caught.value) == f'running Score plugins: plugin "Says" failed with: {message}'
