"""Answers about many rows at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.framework import Code, Verdicts, unresolvable
from extender.runtime.findings import statuses_by_node

CODES = (Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdicts:
    number = draw(st.integers(0, 12))
    masks = st.lists(st.lists(st.booleans(), min_size=number, max_size=number).map(lambda each: np.array(each, np.bool_)), max_size=10)
    codes = np.array(draw(st.lists(st.sampled_from(CODES), min_size=number, max_size=number)), np.int8)
    reasons = tuple((f"reason {place}", mask) for place, mask in enumerate(draw(masks)))
    return Verdicts(codes, reasons, tuple((f"Plugin{place}", mask) for place, mask in enumerate(draw(masks))))


@given(verdicts(), st.data())
def test_many_rows_are_told_what_each_of_them_is_told(of_rows: Verdicts, data: st.DataObject) -> None:
    """
    In the order in which they are asked about, however often.
    """
    asked = data.draw(st.lists(st.sampled_from(range(len(of_rows))))) if len(of_rows) else []

    statuses = of_rows.statuses_of(np.array(asked, np.intp))

    assert statuses == [of_rows.status_of(row) for row in asked]


def test_rows_that_are_told_the_same_share_it() -> None:
    codes = np.array([Code.UNSCHEDULABLE, Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE], np.int8)
    told = Verdicts(codes, (("no room", codes != Code.SUCCESS),), (("Fit", codes != Code.SUCCESS),))

    first, _, third, last = told.statuses_of(np.arange(4))

    assert first is third
    assert last is not first


def test_only_refused_nodes_have_a_status_of_their_own() -> None:
    codes = np.array([Code.UNSCHEDULABLE, Code.SUCCESS], np.int8)
    told = Verdicts(codes, (("no room", codes != Code.SUCCESS),), (("Fit", codes != Code.SUCCESS),))

    statuses = statuses_by_node(told, ["a", "b"], unresolvable("left out"))

    assert statuses.explicit == {"a": told.status_of(0)}
    assert statuses.of("c") == unresolvable("left out")
