"""ExactPacking: the fewest moves after which so many nodes are free, by the numbers of a `Packing`.

A distribution of the pods is either packed, with one move for each pod that keeps one of the chosen nodes from being
free, or changed by a further move of any pod. What takes fewest moves in all comes first, so that the first that is
found is the least, and that there is none is certain once nothing is left.
"""

from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations, count
from math import comb
from typing import Final, final

from reprieve.lab.plan.packing import Moves, Packed, Packing, StepsUsedUpError

Amounts = tuple[int, ...]

_MOST_CHOICES: Final = 5_000
"""Of more sets of nodes not all are looked at."""


@final
class ExactPacking:
    """State: the distributions that were seen, alike ones once."""

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
        if comb(len(self._candidates), self._number) > _MOST_CHOICES:
            raise StepsUsedUpError
        first = tuple(self._packing.where)
        rooms = [tuple(room) for room in self._packing.free.tolist()]
        seen, turn = {self._key(first)}, count()
        leaving = self._fewest_leaving(first)
        queue = [(leaving, 0, next(turn), True, first, rooms, Moves())]
        while queue and queue[0][0] <= most:
            total, made, _, is_new, where, rooms, moves = heappop(queue)
            for nodes in self._choices(where, total - made):
                packed = self._packed(nodes, where, rooms)
                if packed is not None:
                    return Packed(nodes, (*moves, *packed))
            heappush(queue, (total + 1, made, next(turn), False, where, rooms, moves))
            for pod, node in self._movable(where, rooms) if is_new and total < most else ():
                after = (*where[:pod], node, *where[pod + 1 :])
                if (key := self._key(after)) in seen:
                    continue
                seen.add(key)
                leaving = self._fewest_leaving(after)
                if made + 1 + leaving <= most:
                    moved, size = [*rooms], self._sizes[pod]
                    moved[where[pod]] = _sum(rooms[where[pod]], size)
                    moved[node] = _sum(rooms[node], size, -1)
                    entry = (made + 1 + leaving, made + 1, next(turn), True, after, moved, (*moves, (pod, node)))
                    heappush(queue, entry)
        return None

    def _key(self, where: Sequence[int]) -> Hashable:
        on: list[list[int]] = [[] for _ in self._alike]
        for pod, node in enumerate(where):
            on[node].append(self._kinds[pod])
        return tuple(sorted((alike, *sorted(kinds)) for alike, kinds in zip(self._alike, on, strict=True)))

    def _leaving(self, where: Sequence[int]) -> list[list[int]]:
        """Returns the pods that keep each node from being free."""
        pods: list[list[int]] = [[] for _ in self._alike]
        for pod, node in enumerate(where):
            if self._leaves[pod]:
                pods[node].append(pod)
        return pods

    def _fewest_leaving(self, where: Sequence[int]) -> int:
        pods = self._leaving(where)
        return sum(sorted(len(pods[node]) for node in self._candidates)[: self._number])

    def _choices(self, where: Sequence[int], leaving: int) -> Iterator[tuple[int, ...]]:
        """Yields the sets of nodes that are free once so many pods have left; of sets that are alike, one."""
        pods, seen = self._leaving(where), set[Hashable]()
        like = {node: (self._alike[node], *sorted(self._kinds[pod] for pod in pods[node])) for node in self._candidates}
        for nodes in combinations(self._candidates, self._number):
            if sum(len(pods[node]) for node in nodes) == leaving:
                key = tuple(sorted(like[node] for node in nodes))
                if key not in seen:
                    seen.add(key)
                    yield nodes

    def _movable(self, where: Sequence[int], rooms: Sequence[Amounts]) -> Iterator[tuple[int, int]]:
        """Yields the pods, of alike ones on a node the first, and each node that takes them."""
        seen = set()
        for pod, at in enumerate(where):
            if (self._kinds[pod], at) not in seen:
                seen.add((self._kinds[pod], at))
                for node, room in enumerate(rooms):
                    self._packing.take()
                    if node != at and self._takes_pod(pod, node, room):
                        yield pod, node

    def _takes_pod(self, pod: int, node: int, room: Amounts) -> bool:
        return self._takes[self._kinds[pod]][node] and all(map(int.__le__, self._sizes[pod], room))

    def _packed(self, nodes: Sequence[int], where: Sequence[int], rooms: Sequence[Amounts]) -> Moves | None:
        """Returns one move for each pod that keeps these nodes from being free, to the others."""
        pods, weights = self._leaving(where), self._packing.weight_of
        leaving = sorted(
            (pod for node in nodes for pod in pods[node]), key=lambda pod: (-weights[pod], self._kinds[pod])
        )
        others = [node for node in range(len(rooms)) if node not in nodes]
        needed = map(sum, zip(*(self._sizes[pod] for pod in leaving), strict=True))
        left = (
            sum(amount for amount in amounts if amount > 0)
            for amounts in zip(*(rooms[node] for node in others), strict=True)
        )
        if any(amount > there for amount, there in zip(needed, left, strict=False)):
            return None
        targets = list[int]()
        return tuple(zip(leaving, targets, strict=True)) if self._place(leaving, others, [*rooms], targets) else None

    def _place(self, leaving: Sequence[int], others: Sequence[int], rooms: list[Amounts], targets: list[int]) -> bool:
        """Adds the nodes of the further pods to the targets, if they find room together."""
        turn, tried = len(targets), set()
        if turn == len(leaving):
            return True
        pod = leaving[turn]
        # Which of two alike pods gets which node makes no difference.
        is_like_last = turn > 0 and self._kinds[leaving[turn - 1]] == self._kinds[pod]
        for node in others:
            room = rooms[node]
            if (is_like_last and node < targets[-1]) or (self._alike[node], room) in tried:
                continue
            tried.add((self._alike[node], room))
            self._packing.take()
            if self._takes_pod(pod, node, room):
                rooms[node] = _sum(room, self._sizes[pod], -1)
                targets.append(node)
                if self._place(leaving, others, rooms, targets):
                    return True
                targets.pop()
                rooms[node] = room
        return False


def _sum(room: Amounts, size: Amounts, sign: int = 1) -> Amounts:
    return tuple(there + sign * amount for there, amount in zip(room, size, strict=True))
