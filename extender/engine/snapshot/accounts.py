"""Accounts: what nodes have and pods take, in numbers that only a plugin knows, such as the memory of each card."""

from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.snapshot import Snapshot
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

_KEPT_CLUSTERS = 4
"""A service asks about its cluster, and about the same one with the nodes of its caller."""


@final
class Account:
    """Numbers of every node and pod, each from the object alone; `Rows.left` is nodes' less their pods'.

    State: (log, generation, sums) of the last clusters; what has changed since is summed again.
    """

    def __init__(
        self, width: int, of_node: Callable[[Node], Sequence[int]], of_pod: Callable[[Pod], Sequence[int]]
    ) -> None:
        self._width, self._of_node, self._of_pod = width, of_node, of_pod
        self._kept: list[tuple[object, int, Int64s]] = []

    def left(self, snapshot: Snapshot) -> Int64s:
        """(N, W) what the nodes have, less what their pods take."""
        log, num_nodes = snapshot.changes, len(snapshot.nodes)
        _, generation, left = next(
            (each for each in self._kept if each[0] is log), (log, -1, np.zeros((0, 0), np.int64))
        )
        if generation != snapshot.generation:
            changed = log.since(generation) if left.shape[1] == num_nodes else None
            if changed is None:
                changed, left = snapshot.all_nodes, np.zeros((self._width, num_nodes), np.int64)
            for place in changed.tolist():
                taken = self.of_pods(snapshot, snapshot.pods.on_node[place]).sum(0)
                left[:, place] = np.array(self._of_node(snapshot.nodes.objects[place]), np.int64) - taken
            others = [each for each in self._kept if each[0] is not log]
            self._kept = [(log, snapshot.generation, left), *others][:_KEPT_CLUSTERS]
        return left.T

    def of_pods(self, snapshot: Snapshot, slots: Sequence[int]) -> Int64s:
        """(C, W) what pods take."""
        taken = [self._of_pod(snapshot.pod_at(slot)) for slot in slots]
        return np.array(taken, np.int64).reshape(len(taken), self._width)
