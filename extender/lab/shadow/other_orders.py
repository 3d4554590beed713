"""Other orders: the states that a scheduler may have seen, where it is not known what it knew when it decided."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Final, TypeVar

from extender.engine.cache.cluster import Cluster
from extender.lab.shadow.changes import SeenChange

Found = TypeVar("Found")

MAX_STATES: Final = 60
"""The number of states that are tried"""


async def in_another_order(
    cluster: Cluster,
    earlier: Sequence[SeenChange],
    later: Sequence[SeenChange],
    looks: Callable[[], Awaitable[Found | None]],
) -> Found | None:
    """Returns what `looks` finds in the first state in which it finds something, of those that the scheduler may have
    seen.

    The cluster is the same again afterwards.

    A scheduler knows of its own decisions at once: placements that are seen later may have been decided before. Of what
    others changed it hears late. And where two of its writes overtook each other, a placement that was seen earlier was
    decided later.

    Arguments:
        earlier: changes that were taken in before, the last one first.
        later: placements that are going to be seen, the next one first.
    """
    by_others = _by_others(earlier)
    nearest = sorted(product(range(len(by_others) + 1), range(len(later) + 1)), key=sum)[1:]
    states = [(earlier[:undone], later[:0]) for undone in range(1, len(earlier) + 1)]
    states += [(by_others[:unseen], later[:decided]) for unseen, decided in nearest]
    for undone, done in states[:MAX_STATES]:
        with _instead(cluster, undone, done):
            found = await looks()
        if found is not None:
            return found
    return None


def _by_others(earlier: Sequence[SeenChange]) -> list[SeenChange]:
    """Returns the changes that the scheduler did not make itself, the last one first. What was changed again cannot be
    taken back alone.
    """
    found: list[SeenChange] = []
    kept: set[tuple[str, str, str]] = set()
    for change in earlier:
        if change.is_placement or change.key in kept:
            kept.add(change.key)
        else:
            found.append(change)
    return found


@contextmanager
def _instead(cluster: Cluster, undone: Sequence[SeenChange], done: Sequence[SeenChange]) -> Iterator[None]:
    """Takes changes back, and others in, until the end of the block."""
    for change in undone:
        cluster.changed(change.new, change.old)
    for change in done:
        cluster.changed(change.old, change.new)
    try:
        yield
    finally:
        for change in reversed(done):
            cluster.changed(change.new, change.old)
        for change in reversed(undone):
            cluster.changed(change.old, change.new)
