"""Details that are kept say what the arrays said."""

import asyncio

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from extender.answers.explain.verdict_tables import OTHER_REASONS
from extender.answers.records.record_store import BEST_NODES, best_scores, picture_of, verdict_details
from extender.answers.types import ReasonCount
from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.scoring import Choice, Ranking, Scores
from extender.engine.scheduler.extenders import schedule_pod_with_extenders
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.snapshot import Rows, Snapshot
from extender.testing import make_framework, make_node, make_snapshot
from extender.values import limits
from tests.extender.engine.scheduler.test_extenders import POD, an_extender, says, three_nodes
from tests.extender.plugins_by_table import Refuses


def a_snapshot(num_nodes: int) -> Snapshot:
    return make_snapshot(*(make_node(f"n{number}") for number in range(num_nodes)))


@given(st.data(), st.integers(1, 40))
def test_every_verdict_is_found_again(data: st.DataObject, num_nodes: int) -> None:
    """Whatever order the nodes were asked in."""
    order = np.array(data.draw(st.lists(st.integers(0, num_nodes - 1), min_size=1, unique=True)), np.intp)
    rows = Rows.of(a_snapshot(num_nodes), order)
    codes = data.draw(arrays(np.int8, len(rows), elements=st.sampled_from([0, 2, 3, 6])))
    refused = codes != 0
    reason = refused & data.draw(arrays(np.bool_, len(rows)))
    verdicts = fwk.Verdicts(codes, (("a reason", reason),), (("Fit", refused),))

    picture = picture_of(verdict_details(Findings(rows, verdicts), refuses_all=False))

    assert picture is not None
    assert picture.nodes == tuple(f"n{place}" for place in range(num_nodes))
    row_of = {place: row for row, place in enumerate(order.tolist())}
    for place, (cell,) in enumerate(picture.cells):
        row = row_of.get(place)
        if row is None or not refused[row]:
            assert cell == -1
        else:
            assert picture.verdicts[cell].code == str(fwk.Code(int(codes[row])))
            assert picture.verdicts[cell].reasons == (("a reason",) if reason[row] else ())


def test_a_node_that_was_asked_about_twice_is_kept_once() -> None:
    rows = Rows.of(a_snapshot(3), np.array([2, 0, 2]))
    verdicts = fwk.Verdicts(np.array([2, 0, 2], np.int8), (), (("Fit", np.array([True, False, True])),))

    (step,) = verdict_details(Findings(rows, verdicts), refuses_all=False).waterfall

    assert (step.refused, step.left) == (1, 1)


def test_a_reason_a_node_is_too_much() -> None:
    everywhere = np.arange(100)
    reasons = tuple((f"reason {number}", (everywhere == number) | (everywhere == 99)) for number in range(99))
    verdicts = fwk.Verdicts(np.full(100, 2, np.int8), reasons, (("Fit", np.ones(100, np.bool_)),))

    details = verdict_details(Findings(Rows.of(a_snapshot(100)), verdicts), refuses_all=True)

    (step,), picture = details.waterfall, picture_of(details)
    assert len(step.reasons) == limits.REASONS_KEPT + 1
    assert (step.reasons[-1].reason, step.reasons[-1].nodes) == (OTHER_REASONS, 100 - limits.REASONS_KEPT)
    assert picture is not None
    assert max(len(verdict.reasons) for verdict in picture.verdicts) == limits.REASONS_KEPT + 1


def test_pre_filter_refusal_of_all_nodes_is_kept_once() -> None:
    nobody = Rows.of(a_snapshot(3), np.zeros(0, np.intp))

    details = verdict_details(
        Findings(nobody, fwk.accept(0), fwk.unresolvable("never").by("Volumes")), refuses_all=True
    )

    (step,) = details.waterfall
    assert (step.plugin, step.reasons[0].reason, step.refused, step.unresolvable) == ("Volumes", "never", 3, 3)
    assert picture_of(details) is None


def a_choice(rows: Rows, total: list[int], chosen: int) -> Choice:
    """One plugin of weight 2, and extenders that add the rest."""
    scores = np.array(total, np.int64)
    ranking, place = Ranking(rows, scores), int(rows.node[chosen])
    return Choice(
        ranking, place, lambda i: Scores({"A": scores[i] // 4}, {"A": scores[i] // 4 * 2}, scores[i], {"A": 2})
    )


def test_the_chosen_node_comes_first_then_the_best_and_of_equals_the_first() -> None:
    rows = Rows.of(a_snapshot(5), np.array([4, 1, 3, 2]))

    best = best_scores(a_choice(rows, [4, 8, 8, 8], 2))

    assert [(score.node, score.total, score.others) for score in best] == [
        ("n3", 8, 4), ("n1", 8, 4), ("n2", 8, 4), ("n4", 4, 2),
    ]  # fmt: skip
    assert [(part.raw, part.normalized, part.weight, part.weighted) for part in (score.plugins["A"] for score in best)] == [
        (2, 2, 2, 4), (2, 2, 2, 4), (2, 2, 2, 4), (1, 1, 2, 2),
    ]  # fmt: skip


@given(st.lists(st.integers(-(2**40), 2**40) | st.sampled_from([0, 7]), min_size=2, max_size=60))
def test_best_of_many_nodes_are_kept(total: list[int]) -> None:
    chosen = max(reversed(range(len(total))), key=total.__getitem__)

    best = best_scores(a_choice(Rows.of(a_snapshot(len(total))), total, chosen))

    assert best[0].node == f"n{chosen}"
    assert [score.total for score in best] == sorted(total, reverse=True)[:BEST_NODES]
    assert len({score.node for score in best}) == len(best)
    assert [total[int(score.node[1:])] for score in best] == [score.total for score in best]


def test_the_filters_come_first_and_the_extenders_last() -> None:
    framework, snapshot = make_framework(Refuses("Filter", {"a": fwk.unschedulable("no")})), three_nodes()
    extender = an_extender(
        says({"NodeNames": [], "FailedNodes": {"b": "licence"}, "FailedAndUnresolvableNodes": {"c": "licence"}})
    )
    cycle = Cycle(framework, snapshot, POD.obj())

    with pytest.raises(FitError) as caught:
        asyncio.run(schedule_pod_with_extenders(SchedulingAlgorithm(), (extender,), cycle, 0))

    by_filter, by_extenders = verdict_details(caught.value.findings, refuses_all=True).waterfall
    assert (by_filter.plugin, by_filter.refused, by_filter.left) == ("Filter", 1, 2)
    assert (by_extenders.plugin, by_extenders.refused) == ("extenders", 2)
    assert (by_extenders.unresolvable, by_extenders.left) == (1, 0)
    assert by_extenders.reasons == (ReasonCount(reason="licence", nodes=2),)
