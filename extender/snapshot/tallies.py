"""Tallies: for a question about pods, the sum of its answers per node, kept up to date as pods come and go.

A question is a weight per symbol of one attribute ("do your labels match this selector? 1 or 0"). It is asked once per distinct
symbol and summed once over the pods. From then on every pod that comes or goes is one line in a journal, and a tally reads what it
has missed when it is asked again. So no plugin walks over the pods of the cluster, and pods cost nothing while nobody asks about them.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar, final

import numpy as np

from extender.objects.label_selectors import Selector
from extender.snapshot.axes import Codes, Index, Int64s
from extender.snapshot.pod_attributes import Attribute, PodSymbol
from extender.snapshot.symbols import LabelIndex, SymbolIndex, SymbolTable

Weight = Callable[[PodSymbol], int]

Among = Callable[[int], Iterable[int]]
"""From the first code that was not looked at yet: the codes that may weigh anything. A short cut, where something is known of them."""

KEPT_PER_ATTRIBUTE = 1024
"""Questions remembered per attribute; the longest unasked is forgotten first. At 5000 nodes one takes 40 kB."""

JOURNAL_LENGTH = 1024
"""Moves that are remembered at least. A tally that missed more is summed anew, which takes numpy about as long as reading them."""

Move = tuple[tuple[int, ...], int, int]
"""A pod's codes (one per attribute), its node, and +1 for coming or -1 for leaving."""

I = TypeVar("I", bound=SymbolIndex)  # noqa: E741  (an index)


@final
class Tally:
    """One question's answers: which symbols weigh anything, and the sums per node as of the last time it was asked."""

    __slots__ = ("_among", "_known", "_nonzero", "_sums", "_weight", "_weights", "moves_read", "per_node")

    def __init__(self, weight: Weight, among: Among | None) -> None:
        self._weight = weight
        self._among = among
        self._known = 0
        self._weights: dict[int, int] = {}
        self._nonzero: tuple[Index, Int64s] | None = None
        self._sums: Int64s | None = None
        self.per_node: Int64s = np.zeros(0, np.int64)
        """(N,) the sums, once `Tallies.of` has made them; read-only."""
        self.moves_read = 0
        """How far into the journal the sums go."""

    @property
    def has_sums(self) -> bool:
        """False as long as only its weights were asked for."""
        return self._sums is not None

    @property
    def is_zero(self) -> bool:
        """True if no symbol weighs anything, so that all sums are zero."""
        return not self._weights

    @property
    def weights(self) -> Int64s:
        """(S + 1,) the weight of every symbol, by code; code -1, "has none", reads the 0 at the end."""
        dense = np.zeros(self._known + 1, np.int64)
        if self._weights:
            if self._nonzero is None:
                self._nonzero = np.array([*self._weights], np.intp), np.array([*self._weights.values()], np.int64)
            codes, weights = self._nonzero
            dense[codes] = weights
        return dense

    def learn(self, symbols: SymbolTable[PodSymbol]) -> None:
        """Weigh the symbols that are new."""
        known = self._known
        if known == len(symbols):
            return
        for code in range(known, len(symbols)) if self._among is None else self._among(known):
            weight = self._weight(symbols[code])
            if weight:
                self._weights[code] = weight
                self._nonzero = None
        self._known = len(symbols)

    def sum_up(self, node: Index, codes: Codes, num_nodes: int, moves_read: int) -> None:
        """Sum over all pods; see `Tallies.of`."""
        sums = np.zeros(num_nodes, np.int64)
        if self._weights:
            weighed = self.weights[codes]
            counted = np.flatnonzero((node >= 0) & (weighed != 0))
            np.add.at(sums, node[counted], weighed[counted])
        self._sums, self.moves_read = sums, moves_read
        self.per_node = sums.view()
        self.per_node.flags.writeable = False

    def read(self, moves: Iterable[Move], attribute: Attribute) -> None:
        """Count in and out the pods that moved."""
        sums, weights = self._sums, self._weights
        if sums is None:
            raise LookupError("nothing was summed up yet")
        for codes, node, sign in moves:
            self.moves_read += 1
            weight = weights.get(codes[attribute])
            if weight is not None:
                sums[node] += sign * weight


@final
class Tallies:
    """All tallies of a snapshot. The writer notes which pods move; a cycle asks with `of`."""

    __slots__ = ("_indexes", "_journal", "_journal_start", "_kept", "symbols")

    def __init__(self) -> None:
        self.symbols: tuple[SymbolTable[PodSymbol], ...] = tuple(SymbolTable() for _ in Attribute)
        self._kept: tuple[OrderedDict[Hashable, Tally], ...] = tuple(OrderedDict() for _ in Attribute)
        self._journal: list[Move] = []
        self._journal_start = 0
        self._indexes: dict[tuple[Attribute, type[SymbolIndex]], SymbolIndex] = {}

    def copy(self) -> "Tallies":
        """The same codes, to be added to by themselves. Who asks there asks for the first time: a weight may know of these tables."""
        other = Tallies()
        other.symbols = tuple(table.copy() for table in self.symbols)
        return other

    def of(
        self, attribute: Attribute, question: Hashable, weight: Weight, among: Among | None, node: Index, codes: Codes, num_nodes: int
    ) -> Tally:
        """The tally of a question, up to date. Equal questions must have equal weights.

        Arguments:
            among: see `Among`; None to weigh every symbol.
            node: (P,) node of each pod, -1 for pods that are nowhere.
            codes: (P,) the pods' codes of this attribute.
        """
        tally = self.weighed(attribute, question, weight, among)
        end = self._journal_start + len(self._journal)
        if tally.has_sums and tally.moves_read >= self._journal_start:
            if tally.moves_read < end:
                tally.read(self._journal[tally.moves_read - self._journal_start :], attribute)
        else:
            tally.sum_up(node, codes, num_nodes, end)
        return tally

    def weighed(self, attribute: Attribute, question: Hashable, weight: Weight, among: Among | None) -> Tally:
        """The tally of a question with a weight for every symbol there is; its sums may be out of date, or missing."""
        kept = self._kept[attribute]
        tally = kept.get(question)
        if tally is None:
            tally = kept[question] = Tally(weight, among)
            if len(kept) > KEPT_PER_ATTRIBUTE:
                kept.popitem(last=False)
        else:
            kept.move_to_end(question)
        tally.learn(self.symbols[attribute])
        return tally

    def index(self, attribute: Attribute, kind: type[I]) -> I:
        """The index of this kind over the symbols of an attribute, fed with all there are; made when it is first asked for."""
        index = self._indexes.get((attribute, kind))
        if not isinstance(index, kind):
            index = self._indexes[attribute, kind] = kind()
        symbols = self.symbols[attribute]
        while index.size < len(symbols):
            index.add(symbols[index.size])
        return index

    def labelled_for(self, selector: Selector) -> Among:
        """The classes of labels that the selector may select: `among` for questions that it is part of."""
        return lambda first: self.index(Attribute.LABELS, LabelIndex).candidates(selector, first)

    def count(self, codes: tuple[int, ...], node: int, sign: int) -> None:
        """A pod with these codes (one per attribute) came to a node (+1) or left it (-1)."""
        self._journal.append((codes, node, sign))
        if len(self._journal) > 2 * JOURNAL_LENGTH:
            del self._journal[:JOURNAL_LENGTH]
            self._journal_start += JOURNAL_LENGTH

    def forget(self) -> None:
        """Drop all sums: the nodes were renumbered."""
        for kept in self._kept:
            kept.clear()
