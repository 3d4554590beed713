"""ExactPacking: the fewest moves after which so many nodes are free, by the numbers of a `Packing`.

Each pod that keeps one of these nodes from being free has to leave it, which is one move at least. Of all distributions
the one is looked at next to which fewest moves led, these counted, so that the first that is found is the least, and
that there is none is certain once nothing is left.
"""

from collections.abc import Container, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from math import comb
from typing import Final, final

from reprieve.lab.plan.packing import Moves, Packed, Packing, StepsUsedUpError

Amounts = tuple[int, ...]

_MOST_CHOICES: Final = 5_000
"""Where there are more sets of nodes that might be free, the search would not come to its end."""
_SIZE_OF_A_STEP: Final = 64
"""A distribution counts as one step for as many pods and nodes."""


@final
class ExactPacking:
    """State: none but the packing's steps."""

    def __init__(self, packing: Packing, candidates: Sequence[int], number: int) -> None:
        """So many of the candidates are to be free."""
        self._packing, self._candidates, self._number = packing, candidates, number
        self._kinds, self._sizes = packing.kinds, [tuple(size) for size in packing.sizes.tolist()]
        self._leaves, self._takes = packing.leaves.tolist(), packing.takes.tolist()
        emptied, of_candidates = packing.free.copy(), set(candidates)
        for pod, node in enumerate(packing.where):
            emptied[node] += packing.sizes[pod]
        self._alike = [
            hash((*room, *takes, node in of_candidates))
            for node, (room, takes) in enumerate(zip(emptied.tolist(), packing.takes.T.tolist(), strict=True))
        ]
        """Equal for nodes that are alike once all pods that may move have left them."""

    def fewest_moves(self, most: int) -> Packed | None:
        """Returns the fewest moves, at most so many; None if there are none. Raises StepsUsedUpError."""
        first, rooms = tuple(self._packing.where), [tuple(room) for room in self._packing.free.tolist()]
        left = self._fewest_leaving(first)
        if left <= most and comb(len(self._candidates), self._number) > _MOST_CHOICES:
            raise StepsUsedUpError
        turn, number_of, moves = count(), {self._key(first): 0}, Moves()
        cost = 1 + (len(first) + len(rooms)) // _SIZE_OF_A_STEP
        queue = [(left, left, next(turn), True, first, rooms, moves)]
        while queue and queue[0][0] <= most:
            total, left, _, is_new, where, rooms, moves = heappop(queue)
            leaving = self._leaving(where)
            if not left:
                return Packed(tuple(node for _, node in leaving[: self._number]), moves)
            if is_new:  # at first only the moves that may bring it nearer, by which the total stays
                heappush(queue, (total + 1, left, next(turn), False, where, rooms, moves))
            near = {node for pods, node in leaving if pods <= leaving[self._number - 1][0]}
            number = len(moves) + 1
            for pod, node in self._movable(where, rooms, near if is_new else range(len(rooms))):
                self._packing.take(cost)
                after = (*where[:pod], node, *where[pod + 1 :])
                if number_of.get(key := self._key(after), number + 1) <= number:
                    continue
                left = self._fewest_leaving(after)
                if is_new and number + left > total:
                    continue
                number_of[key] = number
                rooms_after, size = [*rooms], self._sizes[pod]
                rooms_after[where[pod]] = tuple(map(int.__add__, rooms[where[pod]], size))
                rooms_after[node] = tuple(map(int.__sub__, rooms[node], size))
                heappush(queue, (number + left, left, next(turn), True, after, rooms_after, (*moves, (pod, node))))
        return None

    def _key(self, where: Sequence[int]) -> Hashable:
        on: list[list[int]] = [[] for _ in self._alike]
        for pod, node in enumerate(where):
            on[node].append(self._kinds[pod])
        return tuple(sorted((alike, *sorted(kinds)) for alike, kinds in zip(self._alike, on, strict=True)))

    def _leaving(self, where: Sequence[int]) -> list[tuple[int, int]]:
        """Returns how many pods keep each candidate from being free, and the candidate, those with fewest first."""
        leaving = [0] * len(self._alike)
        for pod, node in enumerate(where):
            leaving[node] += self._leaves[pod]
        return sorted((leaving[node], node) for node in self._candidates)

    def _fewest_leaving(self, where: Sequence[int]) -> int:
        return sum(pods for pods, _ in self._leaving(where)[: self._number])

    def _movable(
        self, where: Sequence[int], rooms: Sequence[Amounts], near: Container[int]
    ) -> Iterator[tuple[int, int]]:
        """Yields the pods on these nodes, of alike ones on a node the first, and each node that takes them."""
        seen = set()
        for pod, at in enumerate(where):
            kind, size = self._kinds[pod], self._sizes[pod]
            if at in near and (kind, at) not in seen:
                seen.add((kind, at))
                for node, room in enumerate(rooms):
                    self._packing.take()
                    if node != at and self._takes[kind][node] and all(map(int.__le__, size, room)):
                        yield pod, node
