"""ChangeLog: which nodes changed between two generations, for results per node that are kept between cycles."""

from array import array
from bisect import bisect_right
from typing import final

import numpy as np

from extender.engine.snapshot.axes import Index

KEPT_GENERATIONS = 4096
"""At least as many generations are remembered. Older changes are forgotten: `since` answers None for them, which means
that every node may have changed.
"""

FEW_PLACES = 32
"""As many places are sorted as a list, which takes less time than the first step of numpy."""


@final
class ChangeLog:
    """The places of the nodes that changed, by generation. The cache writes it; `since` reads it."""

    __slots__ = ("_complete_since", "_generations", "_now", "_places", "_starts", "newest")

    def __init__(self) -> None:
        self.newest = 0
        """The last generation in which anything changed."""
        # The places that changed in all remembered generations, one after the other, and where those of each generation
        # start.
        self._places = array("q")
        self._generations: list[int] = []
        self._starts: list[int] = []
        self._now: list[int] = []
        self._complete_since = 0

    def changed(self, place: int) -> None:
        """Notes that the node at this place, or the pods on it, changed in the current generation."""
        self._now.append(place)

    def all_changed(self) -> None:
        """Notes that the nodes were renumbered, which voids everything that was remembered by place."""
        del self._places[:]
        for kept in (self._generations, self._starts, self._now):
            kept.clear()
        self._complete_since = -1

    def close(self, generation: int) -> None:
        """Ends the current generation: the changes noted so far belong to it."""
        if self._complete_since < 0:
            self._complete_since = self.newest = generation
        if not self._now:
            return
        self.newest = generation
        self._generations.append(generation)
        self._starts.append(len(self._places))
        self._places.extend(self._now)
        self._now.clear()
        if len(self._generations) > 2 * KEPT_GENERATIONS:
            self._forget(KEPT_GENERATIONS)

    def _forget(self, count: int) -> None:
        self._complete_since, num_places = self._generations[count - 1], self._starts[count]
        del self._generations[:count], self._places[:num_places]
        self._starts = [start - num_places for start in self._starts[count:]]

    def since(self, generation: int) -> Index | None:
        """Returns the places that changed after this generation, each once, ascending; None if the log does not reach
        back that far.
        """
        if generation < self._complete_since:
            return None
        first = bisect_right(self._generations, generation)
        start = self._starts[first] if first < len(self._generations) else len(self._places)
        newer = self._places[start:]
        if len(newer) <= FEW_PLACES:
            return np.array(sorted({*newer}), np.intp)
        places = np.array(newer, np.intp)
        places.sort()
        is_first = np.ones(len(places), np.bool_)
        np.not_equal(places[1:], places[:-1], out=is_first[1:])
        return places[is_first]
