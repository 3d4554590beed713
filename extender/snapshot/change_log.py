"""ChangeLog: which nodes changed between two generations, for results per node that are kept between cycles."""

from collections import deque
from typing import final

KEPT_GENERATIONS = 4096
"""Older changes are forgotten: `since` answers None for them, which means that every node may have changed."""


@final
class ChangeLog:
    """The places of the nodes that changed, by generation. The cache writes it; `since` reads it."""

    __slots__ = ("_complete_since", "_generations", "_now")

    def __init__(self) -> None:
        self._generations: deque[tuple[int, tuple[int, ...]]] = deque()
        self._now: list[int] = []
        self._complete_since = 0

    def changed(self, place: int) -> None:
        """Notes that the node at this place, or the pods on it, changed in the current generation."""
        self._now.append(place)

    def all_changed(self) -> None:
        """Notes that the nodes were renumbered, which voids everything that was remembered by place."""
        self._generations.clear()
        self._now.clear()
        self._complete_since = -1

    def close(self, generation: int) -> None:
        """Ends the current generation: the changes noted so far belong to it."""
        if self._complete_since < 0:
            self._complete_since = generation
        if not self._now:
            return
        self._generations.append((generation, tuple(self._now)))
        self._now.clear()
        if len(self._generations) > KEPT_GENERATIONS:
            self._complete_since = self._generations.popleft()[0]

    def since(self, generation: int) -> list[int] | None:
        """Returns the places that changed after this generation, each once; None if the log does not reach back that far."""
        if generation < self._complete_since:
            return None
        places: set[int] = set()
        for closed, changed in reversed(self._generations):
            if closed <= generation:
                break
            places.update(changed)
        return sorted(places)
