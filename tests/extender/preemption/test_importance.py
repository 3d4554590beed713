"""Which pods matter more: those are reprieved first, and listed first among victims."""

import numpy as np

from extender.preemption.budgets import by_importance
from extender.testing import make_node, make_pod, make_snapshot


def test_priority_then_age_then_order() -> None:
    """
    Within each group; a pod that has not started is as young as can be.
    """
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

    assert [snapshot.pod_at(slot).name for slot in slots[order].tolist()] == ["alone", "high", "old", "young", "twin", "waiting", "low"]
