"""Tallies: for a question about pods, the sum of its answers per node, kept up to date as pods come and go.

A question is a weight per symbol of one attribute ("do your labels match this selector? 1 or 0"). It is asked once per distinct
symbol and summed once over the pods; from then on each pod that comes or goes costs one addition, and a cycle that asks again
costs nothing. So no plugin walks over the pods of the cluster.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import final

import numpy as np

from extender.snapshot.axes import Codes, Index, Int64s
from extender.snapshot.pod_attributes import Attribute, PodSymbol
from extender.snapshot.symbols import SymbolTable

Weight = Callable[[PodSymbol], int]

KEPT_PER_ATTRIBUTE = 512
"""Questions remembered per attribute; the longest unasked is forgotten first. A cluster has far fewer distinct selectors."""


@final
class Tally:
    """One question's answers: a weight per symbol, and their sums per node."""

    __slots__ = ("_known", "_weight", "_weights", "attribute", "per_node")

    def __init__(self, attribute: Attribute, weight: Weight) -> None:
        self.attribute = attribute
        self.per_node: Int64s = np.zeros(0, np.int64)
        self._weight = weight
        self._weights: Int64s = np.zeros(0, np.int64)
        self._known = 0

    def weights(self, symbols: SymbolTable[PodSymbol]) -> Int64s:
        """The weight of every symbol known so far, by code; one more at the end for "has none", which weighs 0."""
        if self._known < len(symbols):
            grown = np.zeros(len(symbols) + 1, np.int64)
            grown[: self._known] = self._weights[: self._known]
            for code in range(self._known, len(symbols)):
                grown[code] = self._weight(symbols[code])
            self._weights, self._known = grown, len(symbols)
        elif not self._weights.size:
            self._weights = np.zeros(1, np.int64)
        return self._weights

    def add(self, code: int, node: int, sign: int, symbols: SymbolTable[PodSymbol]) -> None:
        """Count one pod in or out."""
        self.per_node[node] += sign * self.weights(symbols)[code]


@final
class Tallies:
    """All tallies of a snapshot. The writer counts pods in and out; a cycle asks with `of`."""

    __slots__ = ("_kept", "symbols")

    def __init__(self) -> None:
        self.symbols: tuple[SymbolTable[PodSymbol], ...] = tuple(SymbolTable() for _ in Attribute)
        self._kept: tuple[OrderedDict[Hashable, Tally], ...] = tuple(OrderedDict() for _ in Attribute)

    def of(self, attribute: Attribute, question: Hashable, weight: Weight, node: Index, codes: Codes, num_nodes: int) -> Tally:
        """The tally of a question; equal questions must have equal weights.

        Arguments:
            node: (P,) node of each pod, -1 for pods that are nowhere.
            codes: (P,) the pods' codes of this attribute.
        """
        kept = self._kept[attribute]
        tally = kept.get(question)
        if tally is None:
            tally = kept[question] = Tally(attribute, weight)
            tally.per_node = _summed(tally.weights(self.symbols[attribute]), node, codes, num_nodes)
            if len(kept) > KEPT_PER_ATTRIBUTE:
                kept.popitem(last=False)
        else:
            kept.move_to_end(question)
        return tally

    def count(self, codes: tuple[int, ...], node: int, sign: int) -> None:
        """A pod with these codes (one per attribute) came to a node (+1) or left it (-1)."""
        for attribute, code in enumerate(codes):
            if code >= 0:
                symbols = self.symbols[attribute]
                for tally in self._kept[attribute].values():
                    tally.add(code, node, sign, symbols)

    def forget(self) -> None:
        """Drop all sums: the nodes were renumbered."""
        for kept in self._kept:
            kept.clear()


def _summed(weights: Int64s, node: Index, codes: Codes, num_nodes: int) -> Int64s:
    sums = np.zeros(num_nodes, np.int64)
    weighed = weights[codes]
    counted = np.flatnonzero((node >= 0) & (weighed != 0))
    np.add.at(sums, node[counted], weighed[counted])
    return sums
