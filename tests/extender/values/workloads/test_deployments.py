"""Numbers of replicas on the way from one revision to the next."""

import pytest
from hypothesis import given, strategies as st

from extender.values.workloads.deployments import Revision, fenceposts, rolled, scaled, scaled_value
from tests.kit.tables import cases


@cases(
    "strategy, replicas, posts",
    ("a quarter each by default", {}, 4, (1, 1)),
    ("the surge is rounded up, the gap down", {}, 10, (3, 2)),
    ("something has to move", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "1%"}}, 3, (0, 1)),
    ("numbers", {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}, 3, (2, 0)),
    ("no more can be missing than there are", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 9}}, 3, (0, 3)),
    ("recreated at once", {"type": "Recreate"}, 3, (0, 0)),
)
def test_fenceposts_bound_surge_and_unavailability(
    strategy: dict[str, object], replicas: int, posts: tuple[int, int]
) -> None:
    assert fenceposts({"replicas": replicas, "strategy": strategy}) == posts


def test_a_text_without_a_percent_sign_is_no_share() -> None:
    with pytest.raises(ValueError, match="invalid type: string is not a percentage"):
        scaled_value("half", 4, round_up=True)


@cases(
    "new, old, moves",
    ("first the surge", (0, 0), (4, 4), {"new": 1}),
    ("then the old gives way to what may be missing", (1, 0), (4, 4), {"old": 3}),
    ("then it waits for the new ones", (2, 0), (3, 3), {}),
    ("what is available may replace", (2, 2), (3, 3), {"old": 1}),
    ("what is not available goes first", (1, 0), (4, 1), {"old": 3}),
    ("the last one", (4, 4), (1, 1), {"old": 0}),
    ("too many new ones", (6, 6), (0, 0), {"new": 4}),
)
def test_a_rolling_update_of_four(new: tuple[int, int], old: tuple[int, int], moves: dict[str, int]) -> None:
    assert dict(rolled(4, 1, 1, Revision("new", *new), [Revision("old", *old)])) == moves


@given(
    replicas=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    old=st.lists(st.integers(0, 10), max_size=3),
)
def test_a_rollout_arrives_and_keeps_its_limits(replicas: int, surge: int, unavailable: int, old: list[int]) -> None:
    """When every pod becomes available, the new revision ends with all replicas and the old ones with none; on the way
    there are never more than the surge allows (or than there were), nor fewer available than promised (or than there
    were).
    """
    if not surge:
        unavailable = max(unavailable, 1)
    counts = {"new": 0, **{f"old{place}": count for place, count in enumerate(old)}}
    maximum, minimum = max(replicas + surge, sum(old)), min(replicas - unavailable, sum(old))

    for _ in range(200):
        revisions = [Revision(name, count, count) for name, count in counts.items()]
        moves = rolled(replicas, surge, unavailable, revisions[0], revisions[1:])
        if not moves:
            break
        # What is new is not available at once.
        available = sum(min(count, moves.get(name, count)) for name, count in counts.items())
        counts |= moves
        assert sum(counts.values()) <= maximum
        assert available >= min(minimum, sum(counts.values()))

    assert counts == {"new": replicas, **{name: 0 for name in counts if name != "new"}}


@cases(
    "replicas, sizes, moves",
    ("grown in proportion, the leftover to the biggest", 20, (8, 2), {"old": 18, "new": 4}),
    ("shrunk in proportion", 5, (8, 2), {"old": 5}),
    ("enough with the surge", 8, (8, 2), {}),
    ("nothing left", 0, (8, 2), {"old": 0, "new": 0}),
)
def test_scaling_in_the_midst_of_a_rollout(replicas: int, sizes: tuple[int, int], moves: dict[str, int]) -> None:
    old, new = (Revision(name, count, count) for name, count in zip(("old", "new"), sizes, strict=True))

    assert dict(scaled(replicas, 2, [old, new])) == moves
