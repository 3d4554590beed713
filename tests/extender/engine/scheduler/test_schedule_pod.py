"""The node for a pod: the nominated one if it fits, else the best of those that fit; or why there is none."""

import logging
import random
from collections import Counter

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.scoring import select_host
from extender.engine.scheduler.schedule_pod import (
    FitError,
    ScheduleResult,
    SchedulingAlgorithm,
    num_feasible_nodes_to_find,
)
from extender.engine.snapshot import Snapshot
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod, make_snapshot
from tests.extender.plugins_by_table import Answers, Holds, Looks, PreScores, Refuses, Scores, raising
from tests.kit.tables import cases

POD = make_pod("p")
NO, NEVER = fwk.unschedulable("no"), fwk.unresolvable("never")


def nodes(*names: str) -> Snapshot:
    return make_snapshot(*map(make_node, names))


def numbered(count: int) -> Snapshot:
    """n0, n1, ... in this order."""
    return nodes(*(f"n{number}" for number in range(count)))


def schedule(framework: Framework, snapshot: Snapshot, pod: PodBuilder = POD) -> ScheduleResult:
    return SchedulingAlgorithm().schedule_pod(Cycle(framework, snapshot, pod.obj()))


def why_not(framework: Framework, snapshot: Snapshot) -> FitError:
    with pytest.raises(FitError) as caught:
        schedule(framework, snapshot)
    return caught.value


# The best node.


def test_the_best_of_the_nodes_that_fit() -> None:
    framework = make_framework(Refuses("Filter", {"c": NO}), Scores("Score", {"a": 10, "b": 20, "c": 100}))

    assert schedule(framework, nodes("a", "b", "c")) == ScheduleResult("b", 2, 3)


def test_a_single_node_that_fits_is_not_scored() -> None:
    score = Scores("Score")

    result = schedule(make_framework(Refuses("Filter", {"a": NO}), score), nodes("a", "b"))

    assert result == ScheduleResult("b", 1, 2)
    assert score.asked == []


def test_only_nodes_that_fit_are_scored() -> None:
    score = Scores("Score")
    schedule(make_framework(Refuses("Filter", {"a": NO}), score), nodes("a", "b", "c"))

    assert score.asked == [["b", "c"]]


def test_without_score_plugins_any_node_will_do() -> None:
    assert {schedule(make_framework(seed=seed), nodes("a", "b")).suggested_host for seed in range(20)} == {"a", "b"}


def test_only_the_nodes_that_pre_filter_left_are_looked_at() -> None:
    filter_ = Refuses("Filter")
    framework = make_framework(Looks("A", fwk.SUCCESS, "b", "c", "gone"), filter_, Scores("Score", {"c": 1}))

    result = schedule(framework, nodes("a", "b", "c"))

    assert result == ScheduleResult("c", 2, 2)
    assert filter_.asked == [["b", "c"]]


# Equals.


def test_between_equals_chance_decides() -> None:
    """With a chance of its own for each framework, so that a decision can be replayed."""
    snapshot = nodes("a", "b", "c")

    def hosts(seed: int) -> list[str]:
        framework = make_framework(Scores("Score", {"a": 5, "b": 9, "c": 9}), seed=seed)
        return [schedule(framework, snapshot).suggested_host for _ in range(100)]

    assert set(hosts(1)) == {"b", "c"}
    assert hosts(1) == hosts(1)
    assert min(Counter(hosts(1)).values()) > 25


@cases(
    "totals, best",
    ("alone", [7], {0}),
    ("the highest", [1, 5, 3], {1}),
    ("any of the highest", [1, 2, 5, 5], {2, 3}),
    ("all nothing", [0, 0], {0, 1}),
    ("below zero", [-5, -3], {1}),
    ("as int64, not as floats", [2**62, 2**62 - 1], {0}),
)
def test_the_host_is_one_of_the_highest(totals: list[int], best: set[int]) -> None:
    """Upstream takes the one that its heap happens to have on top; which that is, is nowhere promised."""
    framework = make_framework()

    assert {select_host(np.array(totals, np.int64), framework.random) for _ in range(40)} == best


def test_in_a_large_cluster_each_of_the_highest_is_as_likely() -> None:
    """The random number is the place among the best, however many nodes there are."""
    chance = random.Random(3)
    totals = np.array([chance.randrange(3) for _ in range(50_000)], np.int64)
    best = np.flatnonzero(totals == 2)

    chosen = [select_host(totals, random.Random(seed)) for seed in range(20)]

    assert chosen == [best[random.Random(seed).randrange(len(best))] for seed in range(20)]


# The nominated node.

NOMINATED = POD.nominated_node("b")


def test_the_nominated_node_is_looked_at_first_and_alone() -> None:
    """There was room made on it. Nothing is scored, however good other nodes are."""
    filter_, score = Refuses("Filter"), Scores("Score", {"a": 100})

    result = schedule(make_framework(filter_, score), nodes("a", "b", "c"), NOMINATED)

    assert result == ScheduleResult("b", 1, 1)
    assert (filter_.asked, score.asked) == ([["b"]], [])


@cases("pod", ("that refuses the pod", NOMINATED), ("that is no more", POD.nominated_node("gone")))
def test_a_nominated_node_is_forgotten_for_the_others(pod: PodBuilder) -> None:
    framework = make_framework(Refuses("Filter", {"b": NO}), Scores("Score", {"c": 1}))

    assert schedule(framework, nodes("a", "b", "c"), pod) == ScheduleResult("c", 2, 3)


def test_the_nominated_node_need_not_be_among_those_that_pre_filter_left() -> None:
    """So it is upstream."""
    framework = make_framework(Looks("A", fwk.SUCCESS, "c"))

    assert schedule(framework, nodes("a", "b", "c"), NOMINATED) == ScheduleResult("b", 1, 1)


def test_a_plugin_that_fails_on_the_nominated_node_does_not_end_the_search(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter((fwk.SUCCESS, fwk.accept(2)))
    framework = make_framework(Answers("filter", lambda: next(answers)))

    with caplog.at_level(logging.ERROR):
        result = schedule(framework, nodes("a", "b"), NOMINATED)

    assert result.feasible_nodes == 2
    assert '"Evaluation failed on nominated node"' in caplog.text


def test_room_of_nominated_pods_counts_as_taken() -> None:
    cache = make_cache(make_node("a"), make_node("b"))
    nominees = {name: make_pod(f"other-{name}").priority(priority).obj() for name, priority in (("a", 1), ("b", -1))}
    nominations = Nominations({node: ((cache.nominate(pod), pod),) for node, pod in nominees.items()})
    cycle = Cycle(make_framework(Holds(1)), cache.update_snapshot(), POD.obj(), nominations)

    assert SchedulingAlgorithm().schedule_pod(cycle) == ScheduleResult("b", 1, 2)


# Not all nodes.


@cases(
    "num_nodes, percentage, enough",
    ("fewer than a hundred: all", 99, 5, 99),
    ("a hundred at least", 100, 50, 100),
    ("a hundred at least, also where that is more", 150, 50, 100),
    ("a share", 5000, 10, 500),
    ("rounded down", 999, 33, 329),
    ("all of it", 5000, 100, 5000),
    ("nothing said: all", 5000, 0, 5000),
)
def test_how_many_nodes_are_enough(num_nodes: int, percentage: int, enough: int) -> None:
    assert num_feasible_nodes_to_find(num_nodes, percentage) == enough


def sampled(algorithm: SchedulingAlgorithm, snapshot: Snapshot, *, refused: range = range(0)) -> list[int]:
    """The numbers of the nodes that are scored, where a hundred are enough; the `refused` ones do not fit."""
    score = Scores("Score")
    filter_ = Refuses("Filter", {f"n{number}": NO for number in refused})
    algorithm.schedule_pod(Cycle(make_framework(filter_, score), snapshot, POD.obj()), percentage_of_nodes_to_score=1)
    (names,) = score.asked
    return [int(name[1:]) for name in names]


def test_search_ends_when_enough_nodes_fit_and_resumes_there() -> None:
    """The next search begins where this one ended, so that every node has its turn."""
    algorithm, snapshot = SchedulingAlgorithm(), numbered(150)

    assert sampled(algorithm, snapshot) == list(range(100))
    assert sampled(algorithm, snapshot) == [*range(100, 150), *range(50)]
    assert sampled(algorithm, snapshot) == list(range(50, 150))
    assert sampled(algorithm, snapshot) == list(range(100))


def test_nodes_that_do_not_fit_are_passed_over() -> None:
    algorithm, snapshot = SchedulingAlgorithm(), numbered(250)

    assert sampled(algorithm, snapshot, refused=range(30)) == list(range(30, 130))
    assert sampled(algorithm, snapshot, refused=range(30)) == list(range(130, 230))
    assert sampled(algorithm, snapshot, refused=range(30)) == [*range(230, 250), *range(30, 110)]


@cases("refused", ("fewer", range(70, 150)), ("just enough", range(100, 150)))
def test_search_visits_all_nodes_when_no_more_than_enough_fit(refused: range) -> None:
    """The search goes on until one more is found."""
    algorithm, snapshot = SchedulingAlgorithm(), numbered(150)

    assert sampled(algorithm, snapshot, refused=refused) == list(range(refused.start))
    assert sampled(algorithm, snapshot) == list(range(100))


@pytest.mark.parametrize("seed", range(5))
def test_next_search_begins_after_the_nodes_evaluated_whatever_pre_filter_and_filters_leave(seed: int) -> None:
    """Upstream visits the nodes that PreFilter left from the start on, until enough fit, and goes on so many nodes
    further among all nodes.
    """
    rng, algorithm, start = random.Random(seed), SchedulingAlgorithm(), 0
    snapshot = numbered(300)
    for _ in range(20):
        nodes = sorted(rng.sample(range(300), rng.choice([1, 50, 150, 250]))) if rng.random() < 0.7 else [*range(300)]
        refused = {*rng.sample(range(300), rng.choice([0, 0, 20, 150, 300]))}
        visited = [nodes[(start + turn) % len(nodes)] for turn in range(len(nodes))]
        feasible = [number for number in visited if number not in refused]
        enough = num_feasible_nodes_to_find(len(nodes), 1)
        expected = feasible[:enough]
        # The search ends with one more than enough, and goes on from where the last of them was found.
        start = (start + (visited.index(expected[-1]) + 1 if len(feasible) > enough else len(nodes))) % 300
        score = Scores("Score")
        plugins = [Refuses("Filter", {f"n{number}": NO for number in refused}), score]
        if len(nodes) < 300:
            plugins.append(Looks("Look", fwk.SUCCESS, *(f"n{number}" for number in nodes)))
        cycle = Cycle(make_framework(*plugins), snapshot, POD.obj())

        if expected:
            result = algorithm.schedule_pod(cycle, percentage_of_nodes_to_score=1)
            assert result.feasible_nodes == len(expected)
            assert score.asked == ([[f"n{number}" for number in expected]] if len(expected) > 1 else [])
        else:
            with pytest.raises(FitError):
                algorithm.schedule_pod(cycle, percentage_of_nodes_to_score=1)


def test_150_of_300_nodes_narrowed_turn_the_wheel_by_the_100_that_are_enough() -> None:
    algorithm, snapshot = SchedulingAlgorithm(), numbered(300)
    odd = Looks("Odd", fwk.SUCCESS, *(f"n{number}" for number in range(1, 300, 2)))
    algorithm.schedule_pod(Cycle(make_framework(odd), snapshot, POD.obj()), percentage_of_nodes_to_score=1)

    assert sampled(algorithm, snapshot)[0] == 100


ERROR = fwk.error("broken")


@cases(
    "plugin, failing",
    ("PreFilter raises", Answers("pre_filter", raising(ValueError("broken"))), "PreFilter"),
    ("PreFilter answers Error", Looks("Look", ERROR), "PreFilter"),
    ("Filter raises", Answers("filter", raising(ValueError("broken"))), "Filter"),
    ("Filter answers Error", Refuses("Filter", {"n0": ERROR}), "Filter"),
    ("PreScore", PreScores("PreScore", ERROR), "PreScore"),
    ("Score raises", Answers("score", raising(ValueError("broken"))), "Score"),
    ("Score is out of range", Scores("Score", {"n0": 101}), "Score"),
)
def test_failing_extension_point_is_counted_with_the_status_error(plugin: fwk.Plugin, failing: str) -> None:
    """Those before it are counted as a success, and those after it not at all."""
    points = ["PreFilter", "Filter", "PreScore", "Score"]
    before, algorithm = points[: points.index(failing)], SchedulingAlgorithm()

    with pytest.raises(PluginError):
        algorithm.schedule_pod(Cycle(make_framework(plugin), numbered(2), POD.obj()))

    samples = {(point, status): count for (point, status, _), count in algorithm.metrics.points.counts().items()}
    assert samples == {**{(point, "Success"): 1 for point in before}, (failing, "Error"): 1}


def test_an_extension_point_whose_plugin_works_in_a_thread_has_a_sample_once_it_has_answered() -> None:
    algorithm = SchedulingAlgorithm()
    framework = make_framework(Answers("filter", raising(LongWork(lambda is_wanted: None))))

    with pytest.raises(LongWork):
        algorithm.schedule_pod(Cycle(framework, numbered(2), POD.obj()))

    samples = {labels[:2]: count for labels, count in algorithm.metrics.points.counts().items()}
    assert samples == {("PreFilter", "Success"): 1}


def test_a_search_without_a_feasible_node_is_a_success_of_the_filters_as_upstream_counts_it() -> None:
    """The nominated node is a search of its own."""
    algorithm, framework = SchedulingAlgorithm(), make_framework(Refuses("Filter", {"n0": NO, "n1": NO}))

    with pytest.raises(FitError):
        algorithm.schedule_pod(Cycle(framework, numbered(2), POD.nominated_node("n0").obj()))

    assert [(labels[:2], count) for labels, count in algorithm.metrics.points.counts().items()] == [
        (("PreFilter", "Success"), 1),
        (("Filter", "Success"), 2),
    ]


def test_the_nominated_node_does_not_turn_the_wheel() -> None:
    algorithm, snapshot = SchedulingAlgorithm(), numbered(150)
    cycle = Cycle(make_framework(), snapshot, POD.nominated_node("n7").obj())
    algorithm.schedule_pod(cycle, percentage_of_nodes_to_score=1)

    assert sampled(algorithm, snapshot)[0] == 0


def test_a_profile_has_its_own_share() -> None:
    """Also when that is 0, for all nodes."""
    snapshot = numbered(250)

    def scored(of_profile: int | None, of_all: int) -> int:
        score = Scores("Score")
        framework = make_framework(score, percentage_of_nodes_to_score=of_profile)
        SchedulingAlgorithm().schedule_pod(Cycle(framework, snapshot, POD.obj()), percentage_of_nodes_to_score=of_all)
        return len(score.asked[0])

    shares = [(None, 0), (None, 60), (60, 0), (80, 60), (0, 60)]
    assert [scored(*share) for share in shares] == [250, 150, 150, 200, 250]


def test_a_cluster_that_shrank_is_searched_from_a_node_that_is_there() -> None:
    algorithm = SchedulingAlgorithm()
    sampled(algorithm, numbered(250))
    sampled(algorithm, numbered(250))

    assert sampled(algorithm, numbered(120))[0] == 200 % 120


# No node.


def test_an_empty_cluster() -> None:
    with pytest.raises(fwk.NoNodesAvailableError, match="no nodes available to schedule pods"):
        schedule(make_framework(), make_snapshot())


def test_equal_pods_share_why_no_node_fits_until_the_cluster_changes() -> None:
    framework, algorithm = make_framework(NodeResourcesFit()), SchedulingAlgorithm()
    cache = make_cache(make_node("a").capacity(cpu=1))

    def why_not_now(pod: PodBuilder, *nominated: PodBuilder) -> FitError:
        slots = tuple((cache.nominate(builder.obj()), builder.obj()) for builder in nominated)
        nominations = Nominations({"a": slots} if slots else {})
        with pytest.raises(FitError) as caught:
            algorithm.schedule_pod(Cycle(framework, cache.update_snapshot(), pod.obj(), nominations))
        return caught.value

    one, other, larger = (
        make_pod(name).uid(name).req(cpu=cpu) for name, cpu in (("one", 2), ("other", 2), ("larger", 3))
    )
    first = why_not_now(one)
    assert why_not_now(other).findings is first.findings
    assert why_not_now(larger).findings is not first.findings
    assert why_not_now(other, make_pod("promised").uid("promised").priority(1)).findings is not first.findings

    cache.add_node(make_node("b").capacity(cpu=1).obj())
    assert str(first) == "0/1 nodes are available: 1 Insufficient cpu."
    assert str(why_not_now(other)) == "0/2 nodes are available: 2 Insufficient cpu."


def test_why_no_node_fits() -> None:
    """Reasons are counted over nodes and sorted as text, so that 10 comes before 2."""
    snapshot = numbered(12)
    both = fwk.unschedulable("Insufficient cpu", "Insufficient memory")
    table = {f"n{number}": NEVER for number in range(2, 12)}
    table |= {"n0": both, "n1": fwk.unschedulable("Insufficient memory")}

    error = why_not(make_framework(Refuses("Filter", table)), snapshot)

    assert str(error) == "0/12 nodes are available: 1 Insufficient cpu, 10 never, 2 Insufficient memory."
    assert error.num_all_nodes == 12
    assert error.diagnosis.unschedulable_plugins == {"Filter"}
    assert error.diagnosis.statuses.of("n0") == both.by("Filter")


@cases(
    "plugin, why, absent",
    ("unschedulable", Looks("A", NO), "no", NO.code),
    ("unresolvable", Looks("A", NEVER), "never", NEVER.code),
    ("narrowed to nothing", Looks("A", fwk.SUCCESS, "*"), "node(s) didn't satisfy plugin A", NEVER.code),
)
def test_a_pod_that_pre_filter_refuses_fits_no_node(plugin: Looks, why: str, absent: fwk.Code) -> None:
    """No node is looked at; all of them have the PreFilter's answer, so that preemption tries all or none."""
    filter_ = Refuses("Filter")

    error = why_not(make_framework(plugin, filter_), nodes("a", "b"))

    assert str(error) == f"0/2 nodes are available: {why}."
    assert error.diagnosis.unschedulable_plugins == {"A"}
    assert error.diagnosis.statuses.of("a").code is absent
    assert filter_.asked == []


def test_nodes_left_out_by_pre_filter_name_the_plugins() -> None:
    narrowing = [Looks("B", fwk.SUCCESS, "a", "b"), Looks("A", fwk.SUCCESS, "b", "c")]

    error = why_not(make_framework(*narrowing, Refuses("Filter", {"b": NO})), nodes("a", "b", "c", "d"))

    assert str(error) == "0/4 nodes are available: 1 no, 3 node(s) didn't satisfy plugin(s) [A B]."
    assert error.diagnosis.unschedulable_plugins == {"A", "B", "Filter"}
    assert error.diagnosis.statuses.of("a").code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_plugin_that_fails_is_no_refusal() -> None:
    """The pod is tried again later, and nobody is preempted for it."""
    with pytest.raises(PluginError, match='running "Answers" filter plugin: boom'):
        schedule(make_framework(Answers("filter", raising(RuntimeError("boom")))), nodes("a"))


def test_a_score_off_the_scale_is_a_failure() -> None:
    with pytest.raises(PluginError, match="returns an invalid score 101"):
        schedule(make_framework(Scores("Score", {"a": 101})), nodes("a", "b"))
