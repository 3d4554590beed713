"""Which pods matter more: those are reprieved first, and listed first among victims."""

import numpy as np
from hypothesis import given, strategies as st

from extender.engine.preemption.budgets import by_importance, in_order
from extender.testing import make_node, make_pod, make_snapshot


def test_priority_then_age_then_order() -> None:
    """Within each group; a pod that has not started is as young as can be."""
    pods = [
        make_pod("waiting").priority(5),
        make_pod("young").priority(5).start_time("2026-01-02T00:00:00Z"),
        make_pod("old").priority(5).start_time("2026-01-01T00:00:00Z"),
        make_pod("low").priority(1).start_time("2020-01-01T00:00:00Z"),
        make_pod("high").priority(9),
        make_pod("twin").priority(5).start_time("2026-01-02T00:00:00Z"),
        make_pod("alone").priority(-1),
    ]
    snapshot = make_snapshot(make_node("n"), pods=[pod.node("n") for pod in pods])
    slots = np.array([snapshot.pods.slots[pod.obj().uid] for pod in pods])

    order = by_importance(snapshot, slots, np.array([1, 1, 1, 1, 1, 1, 0]))

    assert [snapshot.pod_at(slot).name for slot in slots[order].tolist()] == [
        "alone",
        "high",
        "old",
        "young",
        "twin",
        "waiting",
        "low",
    ]


EXTREME = st.sampled_from([-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**62, 2**63 - 1])


@given(st.lists(st.tuples(st.integers(0, 3), EXTREME | st.integers(-3, 3), EXTREME | st.integers(0, 2)), max_size=30))
def test_keys_sort_alike_whether_they_fit_into_one_number_or_not(pods: list[tuple[int, int, int]]) -> None:
    """Full ties keep their order, as in a stable sort of tuples."""
    keys = np.array(pods, np.int64).reshape(-1, 3).T

    assert in_order(*keys).tolist() == sorted(range(len(pods)), key=pods.__getitem__)
