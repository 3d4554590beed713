"""ExactPacking: the fewest moves after which so many nodes are free, by the numbers of a `Packing`.

Each pod that keeps one of these nodes from being free has to leave it by at least one move: with the moves made, that
is a lower bound. The distribution of the lowest bound is tried next (A*), so that the first result is the best, and an
empty queue proves that there is none.
"""

from collections.abc import Container, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from math import comb
from typing import Final, final

from reprieve.lab.plan.packing import Moves, Packed, Packing, StepsUsedUpError

Amounts = tuple[int, ...]

_MOST_CHOICES: Final = 5_000
"""With more sets of nodes to free, the search would not end."""
_SIZE_OF_A_STEP: Final = 64
"""The pods and nodes of a distribution that count as one step."""


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
        self._node_kinds = [
            hash((*room, *takes, node in of_candidates))
            for node, (room, takes) in enumerate(zip(emptied.tolist(), packing.takes.T.tolist(), strict=True))
        ]
        """Node -> its kind: equal for nodes that are alike without their movable pods."""

    def fewest_moves(self, max_moves: int) -> Packed | None:
        """Returns the packing of fewest moves within the limit; None without one. Raises StepsUsedUpError."""
        first, rooms = tuple(self._packing.where), [tuple(room) for room in self._packing.free.tolist()]
        to_go = self._fewest_leaving(first)
        if to_go <= max_moves and comb(len(self._candidates), self._number) > _MOST_CHOICES:
            raise StepsUsedUpError
        turn, number_of, moves = count(), {self._key(first): 0}, Moves()
        cost = 1 + (len(first) + len(rooms)) // _SIZE_OF_A_STEP
        queue = [(to_go, to_go, next(turn), True, first, rooms, moves)]
        while queue and queue[0][0] <= max_moves:
            total, to_go, _, is_new, where, rooms, moves = heappop(queue)
            leaving = self._leaving(where)
            if not to_go:
                return Packed(tuple(node for _, node in leaving[: self._number]), moves)
            if is_new:  # at first only the moves that may bring it nearer, by which the total stays
                heappush(queue, (total + 1, to_go, next(turn), False, where, rooms, moves))
            near = {node for pods, node in leaving if pods <= leaving[self._number - 1][0]}
            number = len(moves) + 1
            for pod, node in self._movable(where, rooms, near if is_new else range(len(rooms))):
                self._packing.take(cost)
                after = (*where[:pod], node, *where[pod + 1 :])
                if number_of.get(key := self._key(after), number + 1) <= number:
                    continue
                to_go = self._fewest_leaving(after)
                if is_new and number + to_go > total:
                    continue
                number_of[key] = number
                rooms_after, size = [*rooms], self._sizes[pod]
                rooms_after[where[pod]] = tuple(map(int.__add__, rooms[where[pod]], size))
                rooms_after[node] = tuple(map(int.__sub__, rooms[node], size))
                heappush(queue, (number + to_go, to_go, next(turn), True, after, rooms_after, (*moves, (pod, node))))
        return None

    def _key(self, where: Sequence[int]) -> Hashable:
        on: list[list[int]] = [[] for _ in self._node_kinds]
        for pod, node in enumerate(where):
            on[node].append(self._kinds[pod])
        return tuple(sorted((kind, *sorted(kinds)) for kind, kinds in zip(self._node_kinds, on, strict=True)))

    def _leaving(self, where: Sequence[int]) -> list[tuple[int, int]]:
        """Returns (number of pods that keep it from being free, candidate), in their order."""
        leaving = [0] * len(self._node_kinds)
        for pod, node in enumerate(where):
            leaving[node] += self._leaves[pod]
        return sorted((leaving[node], node) for node in self._candidates)

    def _fewest_leaving(self, where: Sequence[int]) -> int:
        return sum(pods for pods, _ in self._leaving(where)[: self._number])

    def _movable(
        self, where: Sequence[int], rooms: Sequence[Amounts], near: Container[int]
    ) -> Iterator[tuple[int, int]]:
        """Yields one pod of each kind on the nodes of `near`, with each node that takes it."""
        visited = set()
        for pod, origin in enumerate(where):
            kind, size = self._kinds[pod], self._sizes[pod]
            if origin in near and (kind, origin) not in visited:
                visited.add((kind, origin))
                for node, room in enumerate(rooms):
                    self._packing.take()
                    if node != origin and self._takes[kind][node] and all(map(int.__le__, size, room)):
                        yield pod, node
