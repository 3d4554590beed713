"""Symbol tables: recurring values (labels, taints, namespaces, ...) as small integers, and indexes over them.

A large cluster has many label classes (each StatefulSet pod and each Job pod is a class of its own), and a given
selector concerns few of them. The indexes find the classes that a selector can concern, so that it is not evaluated on
all.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar, final

from extender.engine.snapshot.pod_attributes import HostPort, LabelClass, PodSymbol, VolumeClass
from extender.values.caches import cached_by_size
from extender.values.objects.label_selectors import Operator, Selector

S = TypeVar("S", bound=Hashable)

ABSENT = -1


@final
class SymbolTable(Generic[S]):
    """A growing bijection of symbols and the codes 0, 1, 2, ...; a code never changes its meaning."""

    __slots__ = ("_codes", "_symbols")

    def __init__(self, *first: S) -> None:
        self._symbols: list[S] = list(first)
        self._codes: dict[S, int] = {symbol: code for code, symbol in enumerate(first)}

    @staticmethod
    def numbered(codes: dict[S, int]) -> "SymbolTable[S]":
        """Returns the table of these symbols, whose codes are 0, 1, 2, ... in their order."""
        table: SymbolTable[S] = SymbolTable()
        table._symbols, table._codes = [*codes], codes
        return table

    def intern(self, symbol: S) -> int:
        code = self._codes.get(symbol)
        if code is None:
            code = self._codes[symbol] = len(self._symbols)
            self._symbols.append(symbol)
        return code

    def code_of(self, symbol: S) -> int:
        """Returns the symbol's code, or ABSENT."""
        return self._codes.get(symbol, ABSENT)

    def copy(self) -> "SymbolTable[S]":
        other: SymbolTable[S] = SymbolTable()
        other._symbols, other._codes = self._symbols.copy(), self._codes.copy()
        return other

    def __getitem__(self, code: int) -> S:
        return self._symbols[code]

    def __len__(self) -> int:
        return len(self._symbols)

    def __iter__(self) -> Iterator[S]:
        return iter(self._symbols)


LabelPair = tuple[str, str]

_REQUIRE_A_VALUE: Final = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)


class SymbolIndex(ABC):
    """An index over the symbols of one attribute; `Tallies.index` adds each once, in order of codes."""

    size: int = 0
    """The number of symbols added, which is the code of the next one."""

    @final
    def add(self, symbol: PodSymbol) -> None:
        self._index(self.size, symbol)
        self.size += 1

    @abstractmethod
    def _index(self, code: int, symbol: PodSymbol) -> None:
        """Indexes a symbol."""


@final
class LabelIndex(SymbolIndex):
    """Label -> the codes of the classes that have it."""

    def __init__(self) -> None:
        self._codes: defaultdict[LabelPair, list[int]] = defaultdict(list)

    def candidates(self, selector: Selector, first: int = 0) -> Iterable[int]:
        """Returns the codes, from `first` on, of classes that the selector may match, each once."""
        if not selector.selectable:
            return ()
        pairs = narrowest_pairs(selector)
        return range(first, self.size) if pairs is None else self.with_any(pairs, first)

    def with_any(self, labels: Iterable[LabelPair], first: int = 0) -> set[int]:
        """Returns the codes, from `first` on, of the classes that have any of these labels."""
        matching_codes = set[int]()
        for pair in labels:
            codes = self._codes.get(pair)
            if codes is not None:
                matching_codes.update(codes[bisect_left(codes, first) :])
        return matching_codes

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, LabelClass):
            for pair in symbol.labels:
                self._codes[pair].append(code)


@cached_by_size(1024, lambda selector: 64 * selector.num_values)  # texts have at most 63 characters
def narrowest_pairs(selector: Selector) -> frozenset[LabelPair] | None:
    """Returns the smallest set of labels of which each match has exactly one; None if no value is required."""
    requiring = [requirement for requirement in selector.requirements if requirement.operator in _REQUIRE_A_VALUE]
    if not requiring:
        return None
    narrowest = min(requiring, key=lambda requirement: len(requirement.values))
    return frozenset((narrowest.key, value) for value in narrowest.values)


@final
class HostPortIndex(SymbolIndex):
    """(protocol, number) -> the host ports that any pod has of it, each with its address."""

    def __init__(self) -> None:
        self._known: defaultdict[tuple[str, int], dict[HostPort, None]] = defaultdict(dict)

    def like(self, port: HostPort) -> Iterable[HostPort]:
        return self._known.get(port[1:], ())

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, tuple):
            for port in symbol:
                self._known[port[1:]][port] = None


@final
class VolumeIndex(SymbolIndex):
    """Claim name -> the codes of volume classes that use it in any namespace; and the classes with disks."""

    def __init__(self) -> None:
        self._users: defaultdict[str, list[int]] = defaultdict(list)
        self._with_disks: list[int] = []

    def users(self, claims: Iterable[str], first: int = 0) -> Sequence[int]:
        """Returns the codes, from `first` on, of the classes that use one of these claims, each once."""
        lists = [
            codes[bisect_left(codes, first) :] for claim in claims if (codes := self._users.get(claim)) is not None
        ]
        return sorted({code for codes in lists for code in codes})

    def with_disks(self, first: int = 0) -> Sequence[int]:
        """Returns the codes, from `first` on, of the classes with in-line disks."""
        return self._with_disks[bisect_left(self._with_disks, first) :]

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if not isinstance(symbol, VolumeClass):
            return
        for claim in dict.fromkeys(symbol.claims):
            self._users[claim].append(code)
        if symbol.encoded_disks:
            self._with_disks.append(code)
