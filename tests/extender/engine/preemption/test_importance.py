"""Which pods matter more: those are reprieved first, and listed first among victims."""

from itertools import permutations

import numpy as np
from hypothesis import given, strategies as st

from extender.engine.cache import Cache
from extender.engine.preemption.budgets import by_importance, in_order
from extender.engine.preemption.pod_group_victims import victim_units
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from tests.kit.tables import cases


def names_in_order(pods: list[PodBuilder], groups: list[int] | None = None) -> list[str]:
    """All on one node, in the order in which they came."""
    snapshot = make_snapshot(make_node("n"), pods=[pod.node("n") for pod in pods])
    slots = np.array([snapshot.pods.slots[pod.obj().uid] for pod in pods])
    order = by_importance(snapshot, slots, np.array(groups or [0] * len(pods)))
    return [snapshot.pod_at(slot).name for slot in slots[order].tolist()]


def test_priority_then_age_then_uid() -> None:
    """Within each group; a pod that has not started is as young as can be."""
    pods = [
        make_pod("waiting").priority(5),
        make_pod("young").uid("2").priority(5).start_time("2026-01-02T00:00:00Z"),
        make_pod("old").priority(5).start_time("2026-01-01T00:00:00Z"),
        make_pod("low").priority(1).start_time("2020-01-01T00:00:00Z"),
        make_pod("high").priority(9),
        make_pod("twin").uid("1").priority(5).start_time("2026-01-02T00:00:00Z"),
        make_pod("alone").priority(-1),
    ]

    assert names_in_order(pods, [1, 1, 1, 1, 1, 1, 0]) == ["alone", "high", "old", "twin", "young", "waiting", "low"]


@cases(
    "uids",
    ("any text", ["b", "a", "c"]),
    ("as text, not as numbers", ["10", "9", "1"]),
    ("that begin alike", ["5f0a-2", "5f0a-10", "5f0a-1"]),
    ("beyond ASCII", ["ä", "z", "Z"]),
)
def test_equal_pods_come_by_uid_in_whatever_order_they_came(uids: list[str]) -> None:
    orders = [[make_pod(uid).uid(uid) for uid in order] for order in permutations(uids)]

    assert [names_in_order(pods) for pods in orders] == [sorted(uids)] * 6


def test_equal_pods_come_by_uid_after_others_have_gone() -> None:
    cache = Cache()
    cache.add_node(make_node("n").obj())
    pods = [make_pod(uid).uid(uid).node("n").obj() for uid in "dbeac"]
    for pod in pods:
        cache.add_pod(pod)
    cache.update_snapshot()
    cache.remove_pod(pods[1])
    snapshot = cache.update_snapshot()

    slots = np.array(snapshot.pods.on_node[0])
    order = by_importance(snapshot, slots, np.zeros(4, np.intp))

    assert [snapshot.pod_at(slot).name for slot in slots[order].tolist()] == ["a", "c", "d", "e"]


def test_equal_units_of_a_cluster_come_by_the_smallest_uid_of_each() -> None:
    pods = {uid: make_pod(uid).uid(uid).node(node).obj() for uid, node in zip("dbca", "nmnm", strict=True)}
    snapshot = make_snapshot(make_node("n"), make_node("m"), pods=[*pods.values()])

    units = victim_units(snapshot, 1, lambda group: {}, ())

    assert [pod.uid for unit in range(4) for pod in units.pods_of(unit)] == ["a", "b", "c", "d"]


EXTREME = st.sampled_from([-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**62, 2**63 - 1])


@given(st.lists(st.tuples(st.integers(0, 3), EXTREME | st.integers(-3, 3), EXTREME | st.integers(0, 2)), max_size=30))
def test_keys_sort_alike_whether_they_fit_into_one_number_or_not(pods: list[tuple[int, int, int]]) -> None:
    """Full ties keep their order, as in a stable sort of tuples."""
    keys = np.array(pods, np.int64).reshape(-1, 3).T

    assert in_order(*keys).tolist() == sorted(range(len(pods)), key=pods.__getitem__)
