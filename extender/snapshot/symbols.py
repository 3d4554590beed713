"""Symbol tables: recurring values (labels, taints, namespaces …) as small integers, and indexes over them.

A large cluster has many classes of labels (the pods of each StatefulSet and of each Job are a class of their own), and nearly all of them
have nothing to do with a given selector. The indexes find the classes that a selector can concern, so that it is not evaluated on all.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Generic, TypeVar, final

from extender.objects.label_selectors import Operator, Selector
from extender.snapshot.pod_attributes import LabelClass, PodSymbol

S = TypeVar("S", bound=Hashable)

ABSENT = -1


@final
class SymbolTable(Generic[S]):
    """A growing bijection of symbols and the codes 0, 1, 2, ...; a code never changes its meaning."""

    __slots__ = ("_codes", "_symbols")

    def __init__(self, *first: S) -> None:
        self._symbols: list[S] = list(first)
        self._codes: dict[S, int] = {symbol: code for code, symbol in enumerate(first)}

    def intern(self, symbol: S) -> int:
        """The symbol's code, a new one if it was never seen."""
        code = self._codes.get(symbol)
        if code is None:
            code = self._codes[symbol] = len(self._symbols)
            self._symbols.append(symbol)
        return code

    def code_of(self, symbol: S) -> int:
        """The symbol's code, or ABSENT."""
        return self._codes.get(symbol, ABSENT)

    def copy(self) -> "SymbolTable[S]":
        """The same codes, to be added to by itself."""
        other: SymbolTable[S] = SymbolTable()
        other._symbols = self._symbols.copy()
        other._codes = self._codes.copy()
        return other

    def __getitem__(self, code: int) -> S:
        return self._symbols[code]

    def __len__(self) -> int:
        return len(self._symbols)

    def __iter__(self) -> Iterator[S]:
        return iter(self._symbols)


LabelPair = tuple[str, str]

_INCLUDES: Final = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)


class SymbolIndex(ABC):
    """What is known about all symbols of one attribute. `Tallies.index` feeds it with each once, in the order of their codes."""

    size: int = 0
    """How many symbols it has been fed with: the code of the next one."""

    @final
    def add(self, symbol: PodSymbol) -> None:
        """Take in the next symbol."""
        self._take_in(self.size, symbol)
        self.size += 1

    @abstractmethod
    def _take_in(self, code: int, symbol: PodSymbol) -> None:
        """Note what there is to know about the symbol."""


@final
class LabelIndex(SymbolIndex):
    """Label -> the codes of the classes that have it."""

    def __init__(self) -> None:
        self._codes: defaultdict[LabelPair, list[int]] = defaultdict(list)

    def candidates(self, selector: Selector, first: int = 0) -> Iterable[int]:
        """The codes, from `first` on, of all classes that the selector may select, each once; not all of them need be selected."""
        if not selector.selectable:
            return ()
        pairs = narrowest_pairs(selector)
        if pairs is None:
            return range(first, self.size)
        # A class has one value per key, so that no class is found twice.
        return chain.from_iterable(codes[bisect_left(codes, first) :] for pair in pairs if (codes := self._codes.get(pair)) is not None)

    def _take_in(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, LabelClass):
            for pair in symbol.labels:
                self._codes[pair].append(code)


def narrowest_pairs(selector: Selector) -> Sequence[LabelPair] | None:
    """Labels of which everything that the selector selects has exactly one; as few as can be. None if it demands no such thing."""
    demands = [requirement for requirement in selector.requirements if requirement.operator in _INCLUDES]
    if not demands:
        return None
    narrowest = min(demands, key=lambda requirement: len(requirement.values))
    return [(narrowest.key, value) for value in dict.fromkeys(narrowest.values)]
