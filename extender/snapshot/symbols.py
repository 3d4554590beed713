"""Symbol tables: things that recur become small integers."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, final

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
