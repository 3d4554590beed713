"""Many sets of labels, all matched at once with a selector, in integers with a bit per set."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Final, final

from extender.values.objects.label_selectors import Selector

LabelPair = tuple[str, str]

_FEW: Final = 8
"""As many bits of an integer are set or looked for one by one."""


@final
class LabelSets:
    """Sets of labels at the places of the bits of a result. State: these, and the bits that were asked for."""

    def __init__(self, keys: Set[str] | None = None) -> None:
        """Begins without sets; `keys`, if known, are those of the selectors: a pod may have thousands of others."""
        self._keys: Final = keys
        self._size = 0
        self._places: Final[defaultdict[str, defaultdict[str, list[int]]]] = defaultdict(lambda: defaultdict(list))
        self._bits: Final[dict[tuple[str, str | None], int]] = {}
        """Of labels that many sets have. The value is None for those with any."""

    def __len__(self) -> int:
        return self._size

    def add(self, labels: Iterable[LabelPair]) -> int:
        place, keys, places = self._size, self._keys, self._places
        for key, value in labels:
            if keys is None or key in keys:
                places[key][value].append(place)
        self._size += 1
        self._bits.clear()
        return place

    def selected(self, selector: Selector) -> int:
        matches = (1 << self._size) - 1 if selector.selectable else 0
        for requirement in selector.requirements:
            key = requirement.key
            places: Mapping[str, list[int]] = self._places.get(key, {})
            is_usual, unlike, without_label = requirement.among(places)
            fulfilling = 0
            for value in unlike:
                fulfilling |= self._bits_of(key, value, places[value])
            if is_usual or without_label:
                with_key = self._with_key(key)
                if is_usual:
                    fulfilling = with_key & ~fulfilling
                if without_label:
                    fulfilling |= ~with_key
            matches &= fulfilling
        return matches

    def _with_key(self, key: str) -> int:
        bits = self._bits.get((key, None))
        if bits is None:
            bits = self._bits[key, None] = (
                as_bits([*chain.from_iterable(self._places[key].values())]) if key in self._places else 0
            )
        return bits

    def _bits_of(self, key: str, value: str, places: Sequence[int]) -> int:
        if len(places) <= _FEW:
            return as_bits(places)
        bits = self._bits.get((key, value))
        if bits is None:
            bits = self._bits[key, value] = as_bits(places)
        return bits


def as_bits(places: Sequence[int]) -> int:
    if len(places) == 1:
        return 1 << places[0]
    packed = bytearray(max(places, default=0) // 8 + 1)
    for place in places:
        packed[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(packed, "little")


def places_of(bits: int) -> list[int]:
    """Returns the places of the bits that are set, ascending."""
    if bits.bit_count() > _FEW:
        return [place for place, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]
    places = []
    while bits:
        places.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return places
