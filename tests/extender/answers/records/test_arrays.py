"""Packed arrays say what the arrays said."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from extender.answers.records.arrays import (
    BEST_NODES,
    OTHER_REASONS,
    Naming,
    NodeNames,
    keep_scores,
    keep_verdicts,
)
from extender.engine import framework as fwk
from extender.engine.runtime.findings import Findings
from extender.engine.runtime.ranking import Ranking
from extender.engine.runtime.scoring import Choice, Scores
from extender.engine.snapshot import Rows, Snapshot
from extender.testing import make_node, make_snapshot
from extender.values import limits


def a_snapshot(num_nodes: int) -> tuple[Snapshot, NodeNames]:
    snapshot = make_snapshot(*(make_node(f"n{number}") for number in range(num_nodes)))
    return snapshot, Naming().of(snapshot.nodes.index)


@given(st.data(), st.integers(1, 40))
def test_every_verdict_is_found_again(data: st.DataObject, num_nodes: int) -> None:
    """
    Whatever order the nodes were asked in.
    """
    snapshot, nodes = a_snapshot(num_nodes)
    asked = np.array(data.draw(st.lists(st.integers(0, num_nodes - 1), min_size=1, unique=True)), np.intp)
    rows = Rows.of(snapshot, asked)
    codes = data.draw(arrays(np.int8, len(rows), elements=st.sampled_from([0, 2, 3, 6])))
    refused = codes != 0
    reason = refused & data.draw(arrays(np.bool_, len(rows)))
    verdicts = fwk.Verdicts(codes, (("a reason", reason),), (("Fit", refused),))

    kept = keep_verdicts(Findings(rows, verdicts), nodes)

    back = {int(place): row for row, place in enumerate(kept.asked().tolist())}
    assert sorted(back) == sorted(asked.tolist())
    (_, bits), (_, reasons) = kept.refused_by[0], kept.reasons[0]
    for row, place in enumerate(asked.tolist()):
        at = back[place]
        assert kept.mask(bits)[at] == refused[row]
        assert kept.mask(reasons)[at] == reason[row]
        assert kept.mask(kept.unresolvable)[at] == (codes[row] == fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        assert (kept.pending is not None and kept.mask(kept.pending)[at]) == (codes[row] == fwk.Code.PENDING)


def test_a_node_that_was_asked_about_twice_is_kept_once() -> None:
    snapshot, nodes = a_snapshot(3)
    rows = Rows.of(snapshot, np.array([2, 0, 2]))
    kept = keep_verdicts(Findings(rows, fwk.reject(np.array([True, False, True]), "no")), nodes)

    assert kept.asked().tolist() == [0, 2]
    assert kept.mask(kept.reasons[0][1]).tolist() == [False, True]


def test_a_reason_a_node_is_too_much() -> None:
    snapshot, nodes = a_snapshot(100)
    everywhere = np.arange(100)
    reasons = tuple((f"reason {number}", (everywhere == number) | (everywhere == 99)) for number in range(99))
    kept = keep_verdicts(Findings(Rows.of(snapshot), fwk.Verdicts(np.full(100, 2, np.int8), reasons)), nodes)

    assert len(kept.reasons) == limits.REASONS_KEPT + 1
    assert kept.reasons[-1][0] == OTHER_REASONS
    assert np.logical_or.reduce([kept.mask(bits) for _, bits in kept.reasons]).all()


def test_pre_filter_refusal_of_all_nodes_is_kept_once() -> None:
    snapshot, nodes = a_snapshot(3)
    nobody = Rows.of(snapshot, np.zeros(0, np.intp))
    kept = keep_verdicts(Findings(nobody, fwk.accept(0), fwk.unresolvable("never").by("Volumes")), nodes)

    assert kept.pre_filter == ("Volumes", "never", True)
    assert kept.asked().tolist() == []


def a_choice(rows: Rows, total: list[int], chosen: int) -> Choice:
    """
    One plugin of weight 2, and extenders that add the rest.
    """
    scores = np.array(total, np.int64)
    ranking, place = Ranking(rows, scores), int(rows.node[chosen])
    return Choice(
        ranking, place, lambda at: Scores({"A": scores[at] // 4}, {"A": scores[at] // 4 * 2}, scores[at], {"A": 2})
    )


def test_the_chosen_node_comes_first_then_the_best_and_of_equals_the_first() -> None:
    snapshot, _ = a_snapshot(5)
    rows = Rows.of(snapshot, np.array([4, 1, 3, 2]))

    kept = keep_scores(a_choice(rows, [4, 8, 8, 8], 2))

    assert kept.nodes == ("n3", "n1", "n2", "n4")
    assert kept.total.tolist() == [8, 8, 8, 4]
    assert (kept.plugins, kept.raw.tolist(), kept.weighted.tolist()) == ((("A", 2),), [[2, 2, 2, 1]], [[4, 4, 4, 2]])


@given(st.lists(st.integers(-(2**40), 2**40) | st.sampled_from([0, 7]), min_size=2, max_size=60))
def test_best_of_many_nodes_are_kept(total: list[int]) -> None:
    snapshot, _ = a_snapshot(len(total))
    chosen = max(reversed(range(len(total))), key=total.__getitem__)

    kept = keep_scores(a_choice(Rows.of(snapshot), total, chosen))

    assert kept.nodes[0] == f"n{chosen}"
    assert kept.total.tolist() == sorted(total, reverse=True)[:BEST_NODES]
    assert len(set(kept.nodes)) == len(kept.nodes)
    assert [total[int(name[1:])] for name in kept.nodes] == kept.total.tolist()
