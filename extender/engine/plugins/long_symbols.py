"""LongSymbols: has what follows from long symbols of pods worked out in a thread, before a cycle needs it."""

from collections.abc import Callable, Sequence
from typing import Final, final
from weakref import WeakValueDictionary

from extender.engine import framework as fwk
from extender.engine.snapshot.pod_attributes import PodSymbol
from extender.values.objects.kept_parses import HeldParses

LONG: Final = 16 * 1024
"""Bytes. A longer symbol, or more that are new together, are read in a thread."""


@final
class LongSymbols:
    """State: the symbols that were read, until what was found is used."""

    def __init__(self, length: Callable[[PodSymbol], int], read: Callable[[PodSymbol], object]) -> None:
        """Takes two functions of a symbol.

        Arguments:
            length: returns its bytes; 0 for one that need not be read.
            read: works out what is needed, which is kept for equal symbols.
        """
        self._length = length
        self._do_read = read
        self._read: WeakValueDictionary[PodSymbol, HeldParses] = WeakValueDictionary()

    def check(self, symbols: Sequence[PodSymbol]) -> None:
        """Returns once these symbols were read.

        Raises:
            LongWork: they are long, and were not yet.
        """
        lengths = [(each, length) for each in symbols if (length := self._length(each))]
        if sum(length for _, length in lengths) <= LONG or all(each in self._read for each, _ in lengths):
            return
        parses = HeldParses()

        def read(is_wanted: Callable[[], bool]) -> None:
            with parses.held():
                for symbol, _ in lengths:
                    if not is_wanted():
                        return
                    self._do_read(symbol)
                    self._read[symbol] = parses

        raise fwk.LongWork(read)
