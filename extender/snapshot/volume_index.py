"""VolumeIndex: which volume classes a claim or a disk can concern."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import final

from extender.snapshot.pod_attributes import PodSymbol, VolumeClass
from extender.snapshot.symbols import SymbolIndex


@final
class VolumeIndex(SymbolIndex):
    """Claim name -> the codes of the classes that use a claim of this name by a `persistentVolumeClaim` volume; and those with disks."""

    def __init__(self) -> None:
        self._users: defaultdict[str, list[int]] = defaultdict(list)
        self._with_disks: list[int] = []

    def users(self, claims: Iterable[str], first: int = 0) -> Sequence[int]:
        """The codes, from `first` on, of the classes that use one of these claims, in whatever namespace; each once."""
        lists = [codes[bisect_left(codes, first) :] for claim in claims if (codes := self._users.get(claim)) is not None]
        return sorted({code for codes in lists for code in codes})

    def with_disks(self, first: int = 0) -> Sequence[int]:
        """The codes, from `first` on, of the classes that have disks."""
        return self._with_disks[bisect_left(self._with_disks, first) :]

    def _take_in(self, code: int, symbol: PodSymbol) -> None:
        if not isinstance(symbol, VolumeClass):
            return
        for claim in dict.fromkeys(symbol.claims):
            self._users[claim].append(code)
        if symbol.encoded_disks:
            self._with_disks.append(code)
