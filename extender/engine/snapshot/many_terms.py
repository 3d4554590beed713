"""Thousands of terms about nodes, matched with all nodes at once in array operations.

What a term demands of a label is met by a few values, or by all of an interval of numbers but a few. With the values of
the label in the order of their numbers, these are places at which being met begins or ends, which are marked for all
terms and spread over the values by one operation. A term is a bit, so that its demands on several labels are joined for
64 terms at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn, NodeColumns
from extender.engine.snapshot.symbols import ABSENT, SymbolTable
from extender.values.golang.int64 import MAX_INT64, MIN_INT64, parse_int64
from extender.values.objects.kept_parses import kept_for_equal
from extender.values.objects.label_selectors import Operator, Requirement
from extender.values.objects.node_selectors import (
    NAME_FIELD,
    FieldRequirement,
    ParsedNodeSelector,
    ParsedTerm,
    PreferredTerms,
)

MANY: Final = 16
"""The number of values from which on terms are matched here."""

_BYTES_OF_A_VALUE: Final = 64
_NAME: Final = ""
"""Stands for the node's name among the keys of labels, none of which is empty."""
_NODES_AT_ONCE: Final = 512
"""What is computed about so few nodes stays in the processor's cache."""
_NO_NUMBER: Final = 1, 0
"""An empty interval."""
_ALONE: Final = -1
"""In place of a bit, for terms that demand something of one label only."""
_SIGN: Final = 31
"""The place of the sign in a weight, which is an int32."""

Words = npt.NDArray[np.uint64]


@final
@dataclass(slots=True)
class _Demand:
    """What a term demands of one label."""

    values: frozenset[str] | None = None
    """Those that may meet it; None for all but `excluded`."""
    excluded: set[str] = field(default_factory=set)
    least: int = MIN_INT64
    most: int = MAX_INT64
    is_about_numbers: bool = False
    """True if only values that spell a number from `least` to `most` meet it."""
    is_met_by_absence: bool = True

    def add(self, requirement: Requirement) -> None:
        operator, named = requirement.operator, requirement.values
        self.is_met_by_absence &= operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
        if operator is Operator.NOT_IN:
            self.excluded.update(named)
        elif operator is Operator.IN:
            self._restrict(named)
        elif operator is Operator.DOES_NOT_EXIST:
            self._restrict(())
        elif operator is not Operator.EXISTS:
            limit = parse_int64(named[0]) if len(named) == 1 else None
            self.is_about_numbers = True
            if limit is None:
                self._restrict(())
            elif operator is Operator.GREATER_THAN:
                self.least = max(self.least, limit + 1)
            else:
                self.most = min(self.most, limit - 1)

    def add_field(self, requirement: FieldRequirement) -> None:
        """Adds a demand on the node's name, or on a field that is always empty. A node without a name has no fields,
        and meets it.
        """
        if requirement.field == NAME_FIELD and requirement.negated:
            self.excluded.add(requirement.value)
        elif requirement.field == NAME_FIELD:
            self._restrict((requirement.value,))
        elif not requirement.matches_name("?"):
            self._restrict(())

    def _restrict(self, values: Sequence[str]) -> None:
        self.values = frozenset(values) if self.values is None else self.values.intersection(values)

    @property
    def interval(self) -> tuple[int, int]:
        """The least and the greatest number that meet it; empty if what meets it is named."""
        return (self.least, self.most) if self.values is None and self.least <= self.most else _NO_NUMBER

    @property
    def named(self) -> Iterable[str]:
        """The values that meet it though they are in no interval, or that do not meet it though they are in the
        interval.
        """
        if self.values is not None:
            return filter(self._is_met_by, self.values)
        return () if self.interval == _NO_NUMBER else self.excluded

    def _is_met_by(self, value: str) -> bool:
        number = parse_int64(value) if self.is_about_numbers else self.least
        return value not in self.excluded and number is not None and self.least <= number <= self.most


def _demands(term: ParsedTerm) -> dict[str, _Demand]:
    found: defaultdict[str, _Demand] = defaultdict(_Demand)
    for requirement in term.expressions:
        found[requirement.key].add(requirement)
    for of_field in term.fields:
        found[_NAME].add_field(of_field)
    return found


class _Values(NamedTuple):
    """The V values of a label, or the V names of nodes, in places of which the first are those of numbers,
    ascending.
    """

    of_node: Index
    """(N,) the place of each node's value; V for nodes without one."""
    number: int
    """V."""
    numbers: Int64s
    named: Index
    """(Q,) the places of the values that the terms name; V for those that no node has."""


@final
class ManyTerms:
    """Terms with weights, as arrays. T of them demand something of several labels, and each of these is a bit of W
    words; the others are weighed value by value. There are D demands, which are in the order of their K labels and name
    Q values.
    """

    def __init__(self, terms: Iterable[tuple[int, ParsedTerm]]) -> None:
        of_terms = [(weight, _demands(term)) for weight, term in terms if not term.errors]
        by_key: defaultdict[str, list[tuple[_Demand, int, int]]] = defaultdict(list)
        joined: list[int] = []
        for weight, demands in of_terms:
            is_joined = len(demands) > 1
            for key, demand in demands.items():
                by_key[key].append((demand, 0, len(joined)) if is_joined else (demand, weight, _ALONE))
            if is_joined:
                joined.append(weight)
        found = [each for of_key in by_key.values() for each in of_key]
        names: dict[str, int] = {}
        named = [
            (place, names.setdefault(name, len(names)))
            for place, (demand, _, _) in enumerate(found)
            for name in demand.named
        ]
        self._keys: Final = tuple(by_key)
        self._names: Final = names
        self._of_all: Final = sum(weight for weight, demands in of_terms if not demands)
        """The weights of the terms that demand nothing."""
        self._first: Final = np.array([0, *map(len, by_key.values())], np.intp).cumsum()
        """(K + 1,) where the demands on each label begin."""
        self._is_met_by_absence: Final = np.array([demand.is_met_by_absence for demand, _, _ in found], np.bool_)
        self._is_about_numbers: Final = np.array([demand.is_about_numbers for demand, _, _ in found], np.bool_)
        self._interval: Final = np.array([demand.interval for demand, _, _ in found], np.int64).reshape(-1, 2).T
        self._weight: Final = np.array([weight for _, weight, _ in found], np.int64)
        """(D,) the weights of terms that demand nothing else; 0 for others."""
        self._bit: Final = np.array([bit for _, _, bit in found], np.intp)
        """(D,) the bits of the other terms."""
        self._demand, self._name = np.array(named, np.intp).reshape(-1, 2).T
        """(M,) the demands that name a value, and that value, in the order of the demands."""
        self._num_joined: Final = len(joined)
        digits = np.array(joined, np.int64) >> np.arange(_SIGN + 1)[:, np.newaxis] & 1
        self._digits: Final = [
            (-1 << place if place == _SIGN else 1 << place, _words(has_digit != 0))
            for place, has_digit in enumerate(digits)
            if has_digit.any()
        ]
        """For each binary digit of the weights of T terms what it is worth, and the terms that have it."""

    def weights(self, nodes: NodeColumns) -> Int64s:
        """(N,) the sum of the weights of the terms that match the node."""
        has_key = np.fromiter(
            (key == _NAME or key in nodes.label_keys for key in self._keys), np.bool_, len(self._keys)
        )
        is_missing = np.repeat(~has_key, np.diff(self._first))
        total = np.full(len(nodes), self._of_all + self._weight[is_missing & self._is_met_by_absence].sum(), np.int64)
        may_match = np.ones(self._num_joined, np.bool_)
        may_match[self._bit[is_missing & ~self._is_met_by_absence & (self._bit != _ALONE)]] = False
        joined: list[tuple[Index, Words]] = []
        for place in np.flatnonzero(has_key).tolist():
            key = self._keys[place]
            values = (
                _values_of_name(nodes, self._names) if key == _NAME else _values_of_label(nodes.label(key), self._names)
            )
            by_value, met = self._of_key(place, values)
            total += by_value[values.of_node]
            if met is not None:
                joined.append((values.of_node, met))
        if may_match.any():
            self._add_joined(joined, _words(may_match), total)
        return total

    def _of_key(self, place: int, values: _Values) -> tuple[Int64s, Words | None]:
        """Returns (V + 1,) the weights of the terms about this label alone that each of its values matches, and (V + 1,
        W) the other terms but those of which it does not meet what they demand of this label. The last entries are for
        nodes without the label.
        """
        first, end = self._first[place : place + 2].tolist()
        weight, absent = self._weight[first:end], self._is_met_by_absence[first:end]
        least, most = self._interval[:, first:end]
        is_about_numbers, is_empty = self._is_about_numbers[first:end], least > most
        begins = np.where(is_about_numbers, values.numbers.searchsorted(least, "left"), 0)
        ends = np.where(is_about_numbers, values.numbers.searchsorted(most, "right"), values.number)
        ends = np.where(is_empty, begins, ends)
        naming = slice(*self._demand.searchsorted([first, end]).tolist())
        demand, named = self._demand[naming] - first, values.named[self._name[naming]]
        is_exception = (named < values.number) & (
            is_empty[demand] | ((begins[demand] <= named) & (named < ends[demand]))
        )
        demand, named = demand[is_exception], named[is_exception]
        # Where being met begins or ends, and for which demand. With the last value, all has ended.
        at = np.concatenate((begins, ends, named, named + 1))
        of_demand = np.concatenate((np.tile(np.arange(end - first), 2), demand, demand))
        steps = np.concatenate(
            (weight, -weight, np.where(is_empty, weight, -weight)[demand], np.where(is_empty, -weight, weight)[demand])
        )
        changes = np.zeros(values.number + 1, np.int64)
        np.add.at(changes, at, steps)
        by_value = changes.cumsum()
        by_value[-1] = weight[absent].sum()
        return by_value, self._flags_met(self._bit[first:end], absent, at, of_demand, values.number)

    def _flags_met(self, bit: Index, absent: Mask, at: Index, of_demand: Index, num_values: int) -> Words | None:
        """Returns the second part of `_of_key`; None if no term demands something of another label as well.

        Arguments:
            bit: (E,) the places of the terms.
            absent: (E,) the demands that are met without the label.
            at: where being met begins or ends.
            of_demand: for which demand.
        """
        is_joined = bit != _ALONE
        if not is_joined.any():
            return None
        num_words = -(-self._num_joined // 64)
        word, flag = bit // 64, np.left_shift(np.uint64(1), (bit % 64).astype(np.uint64))
        flag[~is_joined] = 0
        flips = np.zeros((num_values + 1, num_words), np.uint64)
        np.bitwise_xor.at(flips.reshape(-1), at * num_words + word[of_demand], flag[of_demand])
        met = np.bitwise_xor.accumulate(flips, axis=0)
        np.bitwise_or.at(met[-1], word[absent], flag[absent])
        concerned = np.zeros(num_words, np.uint64)
        np.bitwise_or.at(concerned, word, flag)
        met |= ~concerned
        return met

    def _add_joined(self, joined: Sequence[tuple[Index, Words]], may_match: Words, total: Int64s) -> None:
        for begin in range(0, len(total), _NODES_AT_ONCE):
            at = slice(begin, begin + _NODES_AT_ONCE)
            matching = np.repeat(may_match[np.newaxis], len(total[at]), axis=0)
            for of_node, met in joined:
                matching &= met.take(of_node[at], axis=0)
            for value, terms in self._digits:
                total[at] += np.bitwise_count(matching & terms).sum(axis=1, dtype=np.int64) * value


def _values_of_label(column: LabelColumn, names: Mapping[str, int]) -> _Values:
    number, (numeric, numbers) = len(column.values), column.integers
    is_numeric = np.zeros(number, np.bool_)
    is_numeric[numeric] = True
    place = np.empty(number + 1, np.intp)
    place[np.concatenate((numeric, np.flatnonzero(~is_numeric)))] = np.arange(number)
    place[ABSENT] = number
    return _Values(place[column.codes], number, numbers, place[_codes(names, column.values.code_of, column.values)])


def _values_of_name(nodes: NodeColumns, names: Mapping[str, int]) -> _Values:
    number, index = len(nodes), nodes.index
    place = np.append(np.arange(number), number)
    codes = _codes(names, lambda name: index.get(name, ABSENT), index)
    of_node = place[:-1].copy()
    if "" in index:
        of_node[index[""]] = number
    return _Values(of_node, number, np.zeros(0, np.int64), place[codes])


def _codes(
    names: Mapping[str, int], code_of: Callable[[str], int], values: SymbolTable[str] | Mapping[str, int]
) -> Index:
    """(Q,) the codes of named values; ABSENT where there is none.

    Arguments:
        values: all that have codes, in the order of these.
    """
    if len(names) <= len(values):
        return np.fromiter(map(code_of, names), np.intp, len(names))
    codes = np.full(len(names), ABSENT, np.intp)
    for code, value in enumerate(values):
        at = names.get(value)
        if at is not None:
            codes[at] = code
    return codes


def _words(mask: Mask) -> Words:
    """(W,) the mask, in words of 64 bits."""
    packed = np.packbits(mask, bitorder="little")
    return np.append(packed, np.zeros(-len(packed) % 8, np.uint8)).view("<u8").astype(np.uint64)


@kept_for_equal(lambda terms: terms.num_values * _BYTES_OF_A_VALUE)
def many_terms(terms: ParsedNodeSelector | PreferredTerms) -> ManyTerms:
    """Returns these terms, which are kept while they are in use or among the last ones."""
    if isinstance(terms, PreferredTerms):
        return ManyTerms((each.weight, each.term) for each in terms.terms)
    return ManyTerms((1, term) for term in terms.terms)
