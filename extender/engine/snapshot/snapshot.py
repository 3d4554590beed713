"""Snapshot: the cluster at one generation, the only thing that a decision may read; ChangeLog: the nodes that changed
between two generations; Account: a plugin's own numbers of nodes and pods.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import final

import msgspec
import numpy as np

from extender.engine.snapshot.axes import Index, Int64s
from extender.engine.snapshot.columns import NodeColumns, PodColumns
from extender.engine.snapshot.pod_attributes import Attribute
from extender.engine.snapshot.symbols import SymbolTable
from extender.engine.snapshot.tallies import RelevantCodes, Tallies, Tally, Weight
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

KEPT_GENERATIONS = 4096
"""The least number of generations that are remembered. For older ones `since` answers None: every node may have
changed.
"""

FEW_PLACES = 32
"""Up to this many places are sorted as a list, which takes less time than the first step of numpy."""


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
        """Notes that the nodes were renumbered, and forgets everything by place."""
        del self._places[:]
        for history in (self._generations, self._starts, self._now):
            history.clear()
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
        """Returns the places that changed after this generation, ascending; None if the log begins later."""
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


@final
class Snapshot(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """Nodes, pods and the other objects of the cluster, as columns.

    It is read-only, and valid until the cache's next `update_snapshot()`, which writes the columns in place: take one
    at the start of a cycle, decide, and drop it. (Upstream has the same rule for its nodeInfoSnapshot.)
    """

    generation: int
    changes: ChangeLog
    """The nodes that changed, they or the pods on them, by generation."""
    node_changes: ChangeLog
    """The nodes that changed themselves, by generation."""
    nodes: NodeColumns
    pods: PodColumns
    resources: SymbolTable[str]
    """Names along axis K: cpu, memory, ephemeral-storage, then the scalar resources that pods request and nodes offer,
    in order of appearance. Others are not on the axis; `Rows.allocatable_of` and `Rows.requested_of` find them.
    """
    tallies: Tallies
    all_nodes: Index
    """(N,) 0, 1, 2, ...: the places of all nodes."""
    objects: ClusterObjects
    """The objects that are neither nodes nor pods: claims, volumes, budgets, services, namespaces and others."""

    def at(self, generation: int) -> "Snapshot":
        """Returns the same columns at another generation."""
        return replaced(self, generation=generation)

    @property
    def num_resources(self) -> int:
        """The length of axis K. A resource with a code beyond it was first seen after the snapshot was taken."""
        num_resources: int = self.nodes.allocatable.shape[1]
        return num_resources

    def tally(
        self, attribute: Attribute, question: Hashable, weight: Weight, relevant: RelevantCodes | None = None
    ) -> Tally:
        """Returns the sums per node of a question about pods; see `tallies`. `Rows.tally` adds the hypothesis."""
        return self.tallies.of(
            attribute, question, weight, relevant, self.pods.node, self.pods.codes[attribute], len(self.nodes)
        )

    def pod_at(self, slot: int) -> Pod:
        pod = self.pods.objects[slot]
        if pod is None:
            raise LookupError(f"pod slot {slot} is free")
        return pod


_KEPT_CLUSTERS = 4
"""A service evaluates its cluster, and the same one with the nodes of its caller."""


@final
class Account:
    """Numbers of every node and pod, each from the object alone; `Rows.left` is nodes' less their pods'.

    State: (log, generation, sums) of the last clusters; nodes that changed since are summed again.
    """

    def __init__(
        self, width: int, of_node: Callable[[Node], Sequence[int]], of_pod: Callable[[Pod], Sequence[int]]
    ) -> None:
        self._width, self._of_node, self._of_pod = width, of_node, of_pod
        self._kept: list[tuple[object, int, Int64s]] = []

    def left(self, snapshot: Snapshot) -> Int64s:
        """(N, W) the numbers of the nodes, less those of their pods."""
        log, num_nodes = snapshot.changes, len(snapshot.nodes)
        _, generation, remaining = next(
            (cached for cached in self._kept if cached[0] is log), (log, -1, np.zeros((0, 0), np.int64))
        )
        if generation != snapshot.generation:
            changed = log.since(generation) if remaining.shape[1] == num_nodes else None
            if changed is None:
                changed, remaining = snapshot.all_nodes, np.zeros((self._width, num_nodes), np.int64)
            for place in changed.tolist():
                amounts = self.of_pods(snapshot, snapshot.pods.on_node[place]).sum(0)
                remaining[:, place] = np.array(self._of_node(snapshot.nodes.objects[place]), np.int64) - amounts
            other_clusters = [cached for cached in self._kept if cached[0] is not log]
            self._kept = [(log, snapshot.generation, remaining), *other_clusters][:_KEPT_CLUSTERS]
        return remaining.T

    def of_pods(self, snapshot: Snapshot, slots: Sequence[int]) -> Int64s:
        """(C, W) the numbers of pods."""
        amounts = [self._of_pod(snapshot.pod_at(slot)) for slot in slots]
        return np.array(amounts, np.int64).reshape(len(amounts), self._width)
