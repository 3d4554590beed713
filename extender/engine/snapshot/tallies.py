"""Tallies: for a question about pods, the sum of its answers per node, kept up to date as pods come and go.

A question is a weight for each symbol of one attribute (for example 1 if a class of labels matches a selector, 0 if
not). Each distinct symbol is weighed once, and the weights are summed once over all pods. From then on every pod that
comes or goes is one move in the journal of each attribute of which it has a symbol, and a tally applies the moves it
missed when it is next read. No plugin iterates over the pods of the cluster, and a pod costs nothing while no question
is read.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Final, Protocol, TypeVar, final, runtime_checkable

import numpy as np

from extender.engine.snapshot.axes import Codes, Index, Int64s, Mask, read_only
from extender.engine.snapshot.columns import LabelColumn, sums_by_value
from extender.engine.snapshot.pod_attributes import Attribute, PodSymbol
from extender.engine.snapshot.symbols import LabelIndex, SymbolIndex, SymbolTable
from extender.values.objects.label_selectors import Selector

Weight = Callable[[PodSymbol], int]

RelevantCodes = Callable[["Tallies", int], Iterable[int]]
"""Returns, given the first code not weighed yet, the codes from there on that can have a weight other than 0. An index
of the tallies provides it.

It is given the tallies and does not hold them: tallies that held themselves would stay until the garbage collector
found them, and those of a large cluster's copy take a hundred megabytes.
"""

KEPT_PER_ATTRIBUTE = 1024
"""Questions remembered per attribute; the least recently read is dropped first. At 5000 nodes one takes 40 kB."""

KEPT_VALUES = 200_000
"""Values that kept questions of an attribute name: two or three in a term of affinity, in 2 KB."""

KEPT_COLUMNS = 4
"""The most label keys for which the sums of one question by value are remembered."""

FEW_SYMBOLS = 8
"""Up to this many symbols are found by comparing, which takes a fraction of the memory of looking all symbols up."""

JOURNAL_LENGTH = 1024
"""The least number of moves remembered; a tally that missed more is summed again."""

Move = tuple[int, int, int]
"""A pod's code of an attribute, the place of its node, and +1 if it came or -1 if it left."""

_CODE: Final = itemgetter(0)


@runtime_checkable
class NamesValues(Protocol):
    """A part of a question that may be long: a pod may have hundreds of terms."""

    @property
    def num_values(self) -> int:
        """The number of values that it names."""


ColumnSums = tuple[Index, Int64s, Mask, Int64s, Mask]
"""The bins of a column, the sums by value, where they are above zero, and read-only views of these two."""

I = TypeVar("I", bound=SymbolIndex)  # noqa: E741  (an index)


@final
class Tally:
    """The weights of one question, and their sums per node as of the last time it was read."""

    __slots__ = (
        "_by_value",
        "_nonzero",
        "_relevant",
        "_sums",
        "_weight",
        "_weights",
        "moves_read",
        "num_known",
        "num_values",
        "per_node",
    )

    def __init__(self, weight: Weight, relevant: RelevantCodes | None, num_values: int) -> None:
        self.num_values = num_values
        self._weight = weight
        self._relevant = relevant
        self.num_known = 0
        """The number of symbols that were weighed."""
        self._weights: dict[int, int] = {}
        self._nonzero: tuple[Index, Int64s] | None = None
        self._sums: Int64s | None = None
        # Label key -> of its column. One whose nodes changed has other bins.
        self._by_value: OrderedDict[str, ColumnSums] = OrderedDict()
        self.per_node: Int64s = np.zeros(0, np.int64)
        """(N,) the sums, once `Tallies.of` has made them; read-only."""
        self.moves_read = -1
        """The number of journal moves in the sums; -1 without sums."""

    @property
    def weights(self) -> Int64s:
        """(S + 1,) the weight of every symbol, by code; the last entry, which code -1 indexes, is 0."""
        dense = np.zeros(self.num_known + 1, np.int64)
        if self._weights:
            if self._nonzero is None:
                self._nonzero = np.array([*self._weights], np.intp), np.array([*self._weights.values()], np.int64)
            codes, weights = self._nonzero
            # Kept sparse and spread here: of all classes of labels a question weighs a few.
            dense[codes] = weights
        return dense

    def learn(self, tallies: "Tallies", attribute: Attribute) -> None:
        """Weighs the symbols that are new."""
        symbols = tallies.symbols[attribute]
        num_known = self.num_known
        if num_known == len(symbols):
            return
        # To find those that matter among a few new ones takes longer than to weigh them.
        relevant = self._relevant if len(symbols) - num_known > FEW_SYMBOLS else None
        for code in range(num_known, len(symbols)) if relevant is None else relevant(tallies, num_known):
            weight = self._weight(symbols[code])
            if weight:
                self._weights[code] = weight
                self._nonzero = None
        self.num_known = len(symbols)

    def sum_up(self, node: Index, codes: Codes, num_nodes: int, moves_read: int) -> None:
        """Sums the weights of all pods; see `Tallies.of`."""
        sums = np.zeros(num_nodes, np.int64)
        # Not sums[places] += weights: a node occurs once for each of its pods, and assignment would keep the last one.
        if len(self._weights) <= FEW_SYMBOLS:
            for code, weight in self._weights.items():
                places = node.take(np.flatnonzero(codes == code))
                np.add.at(sums, places[places >= 0], np.int64(weight))  # 30 times as fast as with a bool
        else:
            # Most pods have no weight. They are left out first, so that only the few others are gathered and added.
            weights = self.weights
            weighed_pods = np.flatnonzero((weights != 0)[codes] & (node >= 0))
            np.add.at(sums, node.take(weighed_pods), weights[codes.take(weighed_pods)])
        self._sums, self.moves_read = sums, moves_read
        self._by_value.clear()
        self.per_node = read_only(sums)

    def read(self, moves: Sequence[Move]) -> None:
        sums, weights = self._sums, self._weights
        if sums is None:
            raise LookupError("the tally has no sums yet")
        # Nearly all moves are of pods without a weight, so that these are left out by what is fastest.
        for code, node, sign in compress(moves, map(weights.__contains__, map(_CODE, moves))):
            weight = sign * weights[code]
            sums[node] += weight
            for bins, by_value, positive, *_ in self._by_value.values():
                # As in `sums_by_value`: the bin 0 of nodes without the label is the last entry.
                value = bins[node] - 1
                by_value[value] += weight
                positive[value] = by_value[value] > 0
        self.moves_read += len(moves)

    def by_value(self, column: LabelColumn) -> Int64s:
        """(V + 1,) the sums of the nodes by the value of their label, as `sums_by_value` returns them; read-only."""
        return self._kept_by_value(column)[3]

    def positive_by_value(self, column: LabelColumn) -> Mask:
        """(V + 1,) the values of the label for which these sums are above zero; read-only."""
        return self._kept_by_value(column)[4]

    def _kept_by_value(self, column: LabelColumn) -> ColumnSums:
        column_sums = self._by_value.get(column.key)
        if column_sums is None or column_sums[0] is not column.bins:
            sums = sums_by_value(column, self.per_node)
            positive = sums > 0
            column_sums = column.bins, sums, positive, read_only(sums), read_only(positive)
            self._by_value[column.key] = column_sums
            if len(self._by_value) > KEPT_COLUMNS:
                self._by_value.popitem(last=False)
        return column_sums


@final
class Tallies:
    """All tallies of a snapshot. The cache counts pods that come and go; a cycle reads tallies with `of`."""

    __slots__ = ("_indexes", "_journals", "_kept", "_kept_values", "_starts", "symbols")

    def __init__(self) -> None:
        self.symbols: tuple[SymbolTable[PodSymbol], ...] = tuple(SymbolTable() for _ in Attribute)
        self._kept: tuple[OrderedDict[Hashable, Tally], ...] = tuple(OrderedDict() for _ in Attribute)
        self._kept_values = [0 for _ in Attribute]
        self._journals: tuple[list[Move], ...] = tuple([] for _ in Attribute)
        self._starts = [0 for _ in Attribute]
        """The number of moves that were dropped from each journal."""
        self._indexes: dict[tuple[Attribute, type[SymbolIndex]], SymbolIndex] = {}

    def copy(self) -> "Tallies":
        """Returns an independent copy of the symbols without tallies, whose weights may refer to these tables."""
        other = Tallies()
        other.symbols = tuple(table.copy() for table in self.symbols)
        return other

    def of_symbols(self, codes: Sequence[Codes]) -> "Tallies":
        """Returns tallies of some symbols; their new codes are their places in `codes`."""
        other = Tallies()
        table_codes = zip(self.symbols, codes, strict=True)
        other.symbols = tuple(
            SymbolTable(*(table[code] for code in of_table.tolist())) for table, of_table in table_codes
        )
        return other

    def of(
        self,
        attribute: Attribute,
        question: Hashable,
        weight: Weight,
        relevant: RelevantCodes | None,
        node: Index,
        codes: Codes,
        num_nodes: int,
    ) -> Tally:
        """Returns the tally of a question, up to date. Equal questions must have equal weights.

        `node` and `codes` are (P,) the place of each pod's node, -1 for none, and its code of this attribute.
        """
        tally = self.weighed(attribute, question, weight, relevant)
        journal, start = self._journals[attribute], self._starts[attribute]
        end = start + len(journal)
        if tally.moves_read >= start:
            if tally.moves_read < end:
                tally.read(journal[tally.moves_read - start :])
        else:
            tally.sum_up(node, codes, num_nodes, end)
        return tally

    def weighed(
        self, attribute: Attribute, question: Hashable, weight: Weight, relevant: RelevantCodes | None
    ) -> Tally:
        """Returns the tally of a question with every symbol weighed; its sums may be out of date or missing."""
        tallies = self._kept[attribute]
        tally = tallies.get(question)
        if tally is None:
            tally = tallies[question] = Tally(weight, relevant, _num_values(question))
            self._kept_values[attribute] += tally.num_values
            while len(tallies) > 1 and (
                len(tallies) > KEPT_PER_ATTRIBUTE or self._kept_values[attribute] > KEPT_VALUES
            ):
                self._kept_values[attribute] -= tallies.popitem(last=False)[1].num_values
        else:
            tallies.move_to_end(question)
        tally.learn(self, attribute)
        return tally

    def index(self, attribute: Attribute, kind: type[I]) -> I:
        """Returns the index of this kind over all symbols of an attribute, and makes it when it is first needed."""
        index = self._indexes.get((attribute, kind))
        if not isinstance(index, kind):
            index = self._indexes[attribute, kind] = kind()
        symbols = self.symbols[attribute]
        while index.size < len(symbols):
            index.add(symbols[index.size])
        return index

    def count(self, attribute: int, code: int, node: int, sign: int) -> None:
        """Counts a pod with this code of an attribute that came to a node (+1) or left it (-1)."""
        journal = self._journals[attribute]
        journal.append((code, node, sign))
        if len(journal) > 2 * JOURNAL_LENGTH:
            # Half of it at a time, so that a move costs the same on average as appending it.
            del journal[:JOURNAL_LENGTH]
            self._starts[attribute] += JOURNAL_LENGTH

    def forget(self) -> None:
        """Drops all sums, because the nodes were renumbered."""
        for tallies in self._kept:
            tallies.clear()
        self._kept_values = [0 for _ in Attribute]


def classes_relevant_to(selector: Selector) -> RelevantCodes:
    """Returns the label classes that the selector may match, as `relevant` for questions that depend on it."""
    return lambda tallies, first: tallies.index(Attribute.LABELS, LabelIndex).candidates(selector, first)


def _num_values(question: Hashable) -> int:
    def of_part(part: object) -> int:
        if isinstance(part, NamesValues):
            return part.num_values
        return len(part) if isinstance(part, frozenset | tuple) else 1

    return sum(map(of_part, question if isinstance(question, tuple) else (question,)))
