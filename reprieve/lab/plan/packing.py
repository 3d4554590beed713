"""Packing: which nodes can be emptied, and where their pods go, by numbers alone.

Counted are the requests of pods, what nodes have left, and nodes that never take a pod. All else is for the scheduler,
which plays what comes out: a place that it refuses is noted (`refuse`), and the next packing avoids it.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender.engine.snapshot.axes import Int64s, Mask

Moves = tuple[tuple[int, int], ...]
"""Places of pods, each with the place of the node to which it moves, in their order."""

STEPS: Final = 800_000
"""The number of moves to try: some seconds."""
_STEPS_OF_ARRAYS: Final = 10
"""The steps of a move for which all nodes are searched."""
_DEPTH: Final = 2
"""How often room is made for a pod that makes room for another one."""
_WIDTH: Final = 8
"""The number of nodes on which room is made for a pod that finds none."""


@final
class StepsUsedUpError(Exception):
    """No more moves may be tried."""


@final
@dataclass(frozen=True, slots=True)
class Packed:
    """Nodes that are free after the moves: those that were free before among them."""

    nodes: tuple[int, ...]
    moves: Moves


@final
class _Layout:
    """State: where pods are, what nodes have left, and the moves that led there."""

    def __init__(self, where: list[int], free: Int64s, moves: list[tuple[int, int]]) -> None:
        self.where, self.free, self.moves = where, free, moves

    def copy(self) -> "_Layout":
        return _Layout(self.where.copy(), self.free.copy(), self.moves.copy())

    def move(self, pod: int, node: int, size: Int64s) -> None:
        self.free[self.where[pod]] += size
        self.free[node] -= size
        self.where[pod] = node
        self.moves.append((pod, node))


@final
class Packing:
    """State: the places that were refused, and how many steps are left.

    P pods that may move and N nodes; K resources, the number of pods among them.
    """

    def __init__(
        self, free: Int64s, sizes: Int64s, where: Sequence[int], kinds: Sequence[Hashable], leaves: Mask
    ) -> None:
        """Nothing was refused yet.

        Arguments:
            free: (N, K) what the nodes have left.
            sizes: (P, K) what the pods request.
            where: the place of the node of each pod.
            kinds: equal for pods that are alike.
            leaves: (P,) whether a node is free only without the pod.
        """
        self.free, self.sizes, self.where, self.leaves = free, sizes, where, leaves
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        self.kinds = [numbers[kind] for kind in kinds]
        self.takes: Mask = np.ones((len(numbers), len(free)), np.bool_)
        self._on: list[list[int]] = [[] for _ in range(len(free))]
        for pod, node in enumerate(where):
            self._on[node].append(pod)
        largest = np.maximum(np.abs(free).max(0, initial=1), 1)
        self.weights = 1 / largest
        self.weight_of = sizes @ self.weights
        self.steps = STEPS

    def refuse(self, pod: int, nodes: Mask | int) -> None:
        """Notes that the nodes never take pods like this one."""
        self.takes[self.kinds[pod], nodes] = False

    def keep_apart(self, pod: int) -> None:
        """Notes that no node takes two pods like this one."""
        is_same_kind = np.array([kind == self.kinds[pod] for kind in self.kinds], np.int64)
        self.sizes = np.c_[self.sizes, is_same_kind]
        self.free = np.c_[self.free, 1 - np.bincount(self.where, is_same_kind, len(self.free)).astype(np.int64)]
        self.weights = np.append(self.weights, 0.0)

    def leaving(self, node: int) -> list[int]:
        """Returns the pods that keep the node from being free."""
        return [pod for pod in self._on[node] if self.leaves[pod]]

    def weight(self, node: int) -> float:
        """Returns the room that the pods of `leaving` need."""
        return float(sum(self.weight_of[pod] for pod in self.leaving(node)))

    def most_free(self, candidates: Sequence[int], most_moves: int) -> int:
        """Returns an upper bound of free candidates: their pods must not exceed the moves, nor their rooms together
        what all nodes have left.
        """
        pods = np.cumsum(sorted(len(self.leaving(node)) for node in candidates))
        rooms = np.zeros((len(candidates), self.free.shape[1]), np.int64)
        for row, node in enumerate(candidates):
            rooms[row] = self.free[node] + self.sizes[self.leaving(node)].sum(0)
        fits = (np.sort(rooms, axis=0).cumsum(0) <= np.maximum(self.free, 0).sum(0)).all(1) & (pods <= most_moves)
        return max(np.flatnonzero(fits).tolist(), default=-1) + 1

    def take(self, steps: int = 1) -> None:
        """Counts steps. Raises StepsUsedUpError if there are none left."""
        self.steps -= steps
        if self.steps < 0:
            raise StepsUsedUpError

    # The cheapest nodes first.

    def cheapest_first(self, order: Sequence[int], number: int, most_moves: int) -> Packed:
        """Empties up to `number` of the nodes, in their order."""
        best, low, high = Packed((), ()), 0, min(number, len(order)) + 1
        middle = high - 1
        while high - low > 1:
            if (moves := self._moves_off(order[:middle], most_moves)) is not None:
                best, low = Packed(tuple(order[:middle]), moves), middle
            else:
                high = middle
            middle = (low + high) // 2
        for node in order[low + 1 :]:
            if len(best.nodes) == number or self.steps <= 0:
                break
            nodes = *best.nodes, node
            if (moves := self._moves_off(nodes, most_moves)) is not None:
                best = Packed(nodes, moves)
        return best

    def _moves_off(self, nodes: Collection[int], most_moves: int) -> Moves | None:
        """Returns moves that free the nodes: the largest pods are placed first, where least room remains."""
        layout = _Layout([*self.where], self.free.copy(), [])
        leaving = sorted((pod for node in nodes for pod in self.leaving(node)), key=lambda pod: -self.weight_of[pod])
        if len(leaving) > most_moves:
            return None
        is_open = np.ones(len(self.free), np.bool_)
        is_open[[*nodes]] = False
        if all(self._put(layout, pod, is_open, _DEPTH) for pod in leaving) and len(layout.moves) <= most_moves:
            return tuple(layout.moves)
        return None

    def _put(self, layout: _Layout, pod: int, is_open: Mask, depth: int) -> bool:
        """Moves the pod to an open node, if need be after pods that make room for it there."""
        self.steps -= _STEPS_OF_ARRAYS
        size, takes = self.sizes[pod], is_open & self.takes[self.kinds[pod]]
        takes[layout.where[pod]] = False
        fits = np.flatnonzero(takes & (layout.free >= size).all(1))
        if len(fits):
            room = (layout.free[fits] * (self.weights * (size > 0))).sum(1)
            layout.move(pod, int(fits[room.argmin()]), size)
            return True
        if not depth or self.steps <= 0:
            return False
        self.steps -= 3 * int(takes.sum())
        ways = [
            (len(going), float(self.weight_of[going].sum()), node, going)
            for node in np.flatnonzero(takes).tolist()
            if (going := self._in_the_way(layout, pod, node))
        ]
        for _, _, node, going in sorted(ways)[:_WIDTH]:
            attempt = layout.copy()
            still_open = is_open.copy()
            still_open[node] = False
            if all(self._put(attempt, blocker, still_open, depth - 1) for blocker in going):
                attempt.move(pod, node, size)
                layout.where, layout.free, layout.moves = attempt.where, attempt.free, attempt.moves
                return True
        return False

    def _in_the_way(self, layout: _Layout, pod: int, node: int) -> list[int]:
        """Returns smaller, unmoved pods whose leaving makes room on the node; empty if they do not suffice."""
        lacking = self.sizes[pod] - layout.free[node]
        smaller = [
            blocker
            for blocker in self._on[node]
            if layout.where[blocker] == node and self.weight_of[blocker] < self.weight_of[pod]
        ]
        going: list[int] = []
        for blocker in sorted(smaller, key=lambda blocker: -self.weight_of[blocker]):
            if (lacking <= 0).all():
                break
            if (self.sizes[blocker] * (lacking > 0)).any():
                going.append(blocker)
                lacking = lacking - self.sizes[blocker]
        return going if (lacking <= 0).all() else []
