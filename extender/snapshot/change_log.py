"""ChangeLog: which nodes changed between two generations, for whoever remembers an answer per node."""

from collections import deque
from typing import final

KEPT_GENERATIONS = 4096
"""Who asks for older changes is told that everything may have changed."""


@final
class ChangeLog:
    """The places that changed, generation by generation. The writer fills it; readers ask with `since`."""

    __slots__ = ("_complete_since", "_generations", "_now")

    def __init__(self) -> None:
        self._generations: deque[tuple[int, tuple[int, ...]]] = deque()
        self._now: list[int] = []
        self._complete_since = 0

    def changed(self, place: int) -> None:
        """The node at this place, or the pods on it, are no longer as in the last generation."""
        self._now.append(place)

    def all_changed(self) -> None:
        """The nodes were numbered anew: what was remembered of a place is void."""
        self._generations.clear()
        self._now.clear()
        self._complete_since = -1

    def close(self, generation: int) -> None:
        """What was noted belongs to this generation."""
        if self._complete_since < 0:
            self._complete_since = generation
        if not self._now:
            return
        self._generations.append((generation, tuple(self._now)))
        self._now.clear()
        if len(self._generations) > KEPT_GENERATIONS:
            self._complete_since = self._generations.popleft()[0]

    def since(self, generation: int) -> list[int] | None:
        """The places that changed after this generation, each once; None when that is not known any more."""
        if generation < self._complete_since:
            return None
        places: set[int] = set()
        for closed, changed in reversed(self._generations):
            if closed <= generation:
                break
            places.update(changed)
        return sorted(places)
