"""The change log returns what changed since a generation, or None when it does not reach back that far."""

from hypothesis import given, strategies as st

from extender.engine.snapshot.snapshot import KEPT_GENERATIONS, ChangeLog
from tests.kit.tables import cases


def log_of(*generations: set[int] | None) -> ChangeLog:
    """Generation 1, 2, ... with the places that changed in it; None when the nodes were renumbered."""
    log = ChangeLog()
    for generation, places in enumerate(generations, start=1):
        if places is None:
            log.all_changed()
        else:
            for place in places:
                log.changed(place)
        log.close(generation)
    return log


def listed(log: ChangeLog, since: int) -> list[int] | None:
    places = log.since(since)
    return None if places is None else places.tolist()


@cases(
    "generations, since, places",
    ("nothing since now", [{1}, {2}], 2, []),
    ("everything after", [{1}, {2}, {3}], 1, [2, 3]),
    ("each place once, in order", [{5, 3}, {3}], 0, [3, 5]),
    ("generations without changes", [{1}, set(), set()], 1, []),
    ("renumbered since: everything may have changed", [{1}, None, {2}], 1, None),
    ("renumbered before: places mean what they meant", [{1}, None, {2}], 2, [2]),
    ("never asked before", [{1}], -1, None),
    ("many places, each once", [{7}, {*range(50)}, {3, 60}], 0, [*range(50), 60]),
)
def test_places_changed_since_a_generation_are_listed_once_in_order(
    generations: list[set[int] | None], since: int, places: list[int] | None
) -> None:
    assert listed(log_of(*generations), since) == places


def test_changes_noted_before_renumbering_are_void() -> None:
    """A place noted in the same generation, before the nodes were numbered again, is no place of the new order."""
    log = ChangeLog()
    log.changed(7)
    log.all_changed()
    log.changed(0)
    log.close(1)

    assert log.since(0) is None
    assert listed(log, 1) == []


def test_a_limited_number_of_generations_is_kept() -> None:
    """Who comes back after too long is told to look at everything; who comes back in time misses nothing."""
    log = ChangeLog()
    for generation in range(1, 2 * KEPT_GENERATIONS + 2):
        log.changed(generation)
        log.close(generation)

    assert log.since(KEPT_GENERATIONS - 1) is None
    assert listed(log, KEPT_GENERATIONS) == list(range(KEPT_GENERATIONS + 1, 2 * KEPT_GENERATIONS + 2))


@given(st.lists(st.one_of(st.none(), st.sets(st.integers(0, 4))), max_size=20), st.integers(-1, 20))
def test_no_change_is_left_out(generations: list[set[int] | None], since: int) -> None:
    """The answer is the union of what changed after that generation, unless a renumbering came between."""
    later = generations[max(since, 0) :]
    since = min(since, len(generations))

    places = listed(log_of(*generations), since)

    if since < 0 or None in later:
        assert places is None
    else:
        assert places == sorted(set().union(*(changed for changed in later if changed is not None)))


@given(st.lists(st.one_of(st.none(), st.sets(st.integers(0, 4))), max_size=20))
def test_newest_generation_has_no_changes_and_the_one_before_has_some(generations: list[set[int] | None]) -> None:
    log = log_of(*generations)
    assert listed(log, log.newest) == []
    if log.newest:
        assert listed(log, log.newest - 1) != []
