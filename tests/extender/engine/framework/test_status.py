"""Answers about many rows at once."""

from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from extender.engine.framework import Code, NodeStatuses, Status, Verdicts, unresolvable
from extender.engine.snapshot import Rows
from extender.testing import make_node, make_snapshot

CODES = (Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdicts:
    number = draw(st.integers(0, 12))
    masks = st.lists(
        st.lists(st.booleans(), min_size=number, max_size=number).map(lambda bits: np.array(bits, np.bool_)),
        max_size=10,
    )
    codes = np.array(draw(st.lists(st.sampled_from(CODES), min_size=number, max_size=number)), np.int8)
    reasons = tuple((f"reason {place}", mask) for place, mask in enumerate(draw(masks)))
    return Verdicts(codes, reasons, tuple((f"Plugin{place}", mask) for place, mask in enumerate(draw(masks))))


@given(verdicts(), st.data())
def test_statuses_of_many_rows_equal_those_of_single_rows(of_rows: Verdicts, data: st.DataObject) -> None:
    """In the order in which they are asked about, however often."""
    asked_rows = data.draw(st.lists(st.sampled_from(range(len(of_rows))))) if len(of_rows) else []

    assert of_rows.statuses_of(np.array(asked_rows, np.intp)) == [of_rows.status_of(row) for row in asked_rows]


def no_room(*codes: Code) -> Verdicts:
    """What Fit says of a row each."""
    is_refused = np.array(codes) != Code.SUCCESS
    return Verdicts(np.array(codes, np.int8), (("no room", is_refused),), (("Fit", is_refused),))


def test_rows_with_equal_verdicts_share_one_status() -> None:
    answer = no_room(Code.UNSCHEDULABLE, Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    first, _, third, last = answer.statuses_of(np.arange(4))

    assert first is third
    assert last is not first


def test_only_refused_nodes_have_a_status_of_their_own() -> None:
    answer, rows = no_room(Code.UNSCHEDULABLE, Code.SUCCESS), Rows.of(make_snapshot(make_node("a"), make_node("b")))

    statuses = NodeStatuses.refused(answer, rows, unresolvable("left out"))

    assert statuses.explicit == {"a": answer.status_of(0)}
    assert statuses.of("c") == unresolvable("left out")


def test_many_different_answers_are_distinguished() -> None:
    """More rows than are compared one by one, and more reasons than fit into one number."""
    chance = np.random.default_rng(1)
    masks = [chance.random(200) < 0.5 for _ in range(130)]
    reasons = tuple((f"reason {place}", mask) for place, mask in enumerate(masks))
    answer = Verdicts(np.full(200, Code.UNSCHEDULABLE, np.int8), reasons)

    assert answer.statuses_of(np.arange(200)) == [answer.status_of(row) for row in range(200)]


@given(verdicts())
def test_statuses_of_refused_nodes_are_the_same_whether_asked_for_together_or_by_name(answer: Verdicts) -> None:
    snapshot = make_snapshot(*(make_node(f"n{place}") for place in range(len(answer))))
    rows = Rows.of(snapshot)
    together = NodeStatuses.refused(answer, rows, unresolvable("left out"))
    refused = {name: answer.status_of(row) for row, name in enumerate(rows.names) if answer.codes[row]}
    by_name = NodeStatuses(refused, unresolvable("left out"))

    numbers = [Counter[Status](), Counter[Status]()]
    for counts, statuses in zip(numbers, (together, by_name), strict=True):
        for status, number in statuses.counts():
            counts[status] += number
    assert numbers[0] == numbers[1]
    marks = np.ones((2, len(answer)), np.bool_)
    for mask, statuses in zip(marks, (together, by_name), strict=True):
        statuses.mark(mask, snapshot, lambda status: status.code is Code.UNSCHEDULABLE)
    assert marks[0].tolist() == marks[1].tolist()
    for place in range(len(answer)):
        assert together.at_place(place, snapshot) == by_name.at_place(place, snapshot) == by_name.of(f"n{place}")
    assert together.explicit == by_name.explicit
