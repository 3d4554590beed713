"""ExistingTerms: the affinity terms of existing pods that match a pod to place.

Pods with equal stanzas are one class. A term is evaluated once per class of existing pods and kind of incoming pod, and
only if an index says that it can match.
"""

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import Final, final
from weakref import WeakValueDictionary

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity.class_terms import MatchingNumbers, TermKey, TermsOfClass, indexed_terms
from extender.engine.plugins.inter_pod_affinity.term_weights import WantedLabel
from extender.engine.plugins.long_symbols import LONG
from extender.engine.snapshot.pod_attributes import AffinityClass, PodSymbol
from extender.engine.snapshot.symbols import LabelPair, SymbolIndex

_RESULTS_KEPT: Final = 1024
_MOST_STEPS: Final = 5_000
"""More comparisons of terms with a pod are made in a thread: each takes about a microsecond."""


@final
@dataclass(frozen=True, slots=True)
class Incoming:
    """The pod to place, as far as terms look at it. Pods that terms cannot distinguish are equal."""

    namespace: str
    labels: frozenset[LabelPair]
    namespace_labels: frozenset[LabelPair]


@final
@dataclass(frozen=True, slots=True)
class ClassNumbers:
    """A number for each class of pods, for one topology key: the weights of a tally question."""

    topology_key: str
    numbers: tuple[tuple[int, int], ...]
    """(code, number), ascending by code."""


@final
@dataclass(frozen=True, slots=True)
class MatchingTerms:
    """The terms of existing pods that match an incoming pod, by topology key."""

    anti_affinity: tuple[ClassNumbers, ...] = ()
    """The number of matching required anti-affinity terms."""
    weights: tuple[ClassNumbers, ...] = ()
    """The sum of the weights that matching terms add to the score."""
    counts: tuple[ClassNumbers, ...] = ()
    """The number of those terms, since their weights may cancel out."""


@final
class ExistingTerms(SymbolIndex):
    """The terms of all classes, indexed by namespace and label; and the results so far."""

    def __init__(self) -> None:
        # The codes of classes, ascending, with the terms that they have under the key.
        self._terms: defaultdict[TermKey, list[tuple[int, Sequence[TermsOfClass]]]] = defaultdict(list)
        # The same of long classes, each with all its keys: entering thousands of them one by one would take long.
        self._of_long: list[tuple[int, Mapping[TermKey, Sequence[TermsOfClass]]]] = []
        self._results: OrderedDict[tuple[Incoming, int], _Result] = OrderedDict()
        self._in_thread: WeakValueDictionary[_Result, _Result] = WeakValueDictionary()
        self._keys: tuple[Set[str], int] = frozenset(), 0

    def matching(
        self, incoming: Incoming, required_weight: int, keys: Set[str], *, may_defer: bool = False
    ) -> MatchingTerms:
        """Returns the matching terms of all classes.

        Arguments:
            required_weight: the weight of a required affinity term in the score (hardPodAffinityWeight).
            keys: the topology keys that matter; a set to which keys are only added.
            may_defer: whether LongWork may be raised.

        Raises:
            LongWork: many terms are to be compared with the pod.
        """
        if self._keys[0] is not keys or self._keys[1] != len(keys):
            self._keys = keys, len(keys)
            self._results.clear()
        key = (incoming, required_weight)
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = _Result()
            if len(self._results) > _RESULTS_KEPT:
                self._results.popitem(last=False)
        else:
            self._results.move_to_end(key)
        if result.size < self.size:
            further = self._in_thread.get(result)
            if further is not None and further.size > result.size:
                result = self._results[key] = further
            found = self._candidates(incoming, result.size)
            if may_defer and sum(len(terms) for _, terms in found) > _MOST_STEPS:
                if further is None or result is further:
                    further = self._in_thread[result] = result.copy()  # several cycles may wait for it
                what = incoming, found, result.size, self.size, required_weight, frozenset(keys)
                raise fwk.LongWork(partial(further.extend_if_wanted, *what))
            result.extend(_matching(incoming, found), self.size, required_weight, keys)
        return result.terms

    def _candidates(self, incoming: Incoming, first: int) -> Sequence[tuple[int, Sequence[TermsOfClass]]]:
        """Returns the terms that may match the pod, of the classes from `first` on, each with the code of its class."""
        wanted: list[WantedLabel | None] = [*incoming.labels, *((key, None) for key, _ in incoming.labels), None]
        candidates: list[tuple[int, Sequence[TermsOfClass]]] = []
        of_long = self._of_long[bisect_left(self._of_long, first, key=itemgetter(0)) :]
        for key in ((namespace, label) for namespace in (incoming.namespace, None) for label in wanted):
            classes = self._terms.get(key)
            if classes is not None:
                candidates += classes[bisect_left(classes, first, key=itemgetter(0)) :]
            candidates += [(code, terms) for code, by_key in of_long if (terms := by_key.get(key)) is not None]
        return candidates

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, AffinityClass):
            found = indexed_terms(symbol)
            if len(symbol.encoded) > LONG:
                self._of_long.append((code, found))
                return
            for key, terms in found.items():
                self._terms[key].append((code, terms))


def _matching(
    incoming: Incoming, candidates: Iterable[tuple[int, Sequence[TermsOfClass]]]
) -> Iterator[tuple[int, MatchingNumbers]]:
    """Yields the terms that match the pod, each with the code of its class."""
    labels, namespace_labels = dict(incoming.labels), dict(incoming.namespace_labels)
    for code, terms in candidates:
        for alike in terms:
            matching = alike.matching(incoming.namespace, labels, namespace_labels)
            if matching is not None:
                yield code, matching


@final
class _Result:
    """The matching terms for one incoming pod, of the classes up to `size`."""

    __slots__ = ("__weakref__", "_anti_affinity", "_counts", "_weights", "size", "terms")

    def __init__(self) -> None:
        self.size = 0
        self.terms = MatchingTerms()
        self._anti_affinity: _Numbers = defaultdict(dict)
        self._weights: _Numbers = defaultdict(dict)
        self._counts: _Numbers = defaultdict(dict)

    def copy(self) -> "_Result":
        """Returns an independent copy."""
        other = _Result()
        other.size, other.terms = self.size, self.terms
        for of_other, own in (
            (other._anti_affinity, self._anti_affinity),
            (other._weights, self._weights),
            (other._counts, self._counts),
        ):
            of_other.update((key, numbers.copy()) for key, numbers in own.items())
        return other

    def extend_if_wanted(
        self,
        incoming: Incoming,
        candidates: Sequence[tuple[int, Sequence[TermsOfClass]]],
        first: int,
        size: int,
        required_weight: int,
        keys: Set[str],
        is_wanted: Callable[[], bool],
    ) -> None:
        """Does as `extend`, unless it was done for another cycle or is no longer wanted."""
        if self.size == first:
            found = [*takewhile(lambda _: is_wanted(), _matching(incoming, candidates))]
            if is_wanted():
                self.extend(found, size, required_weight, keys)

    def extend(
        self, terms: Iterable[tuple[int, MatchingNumbers]], size: int, required_weight: int, keys: Set[str]
    ) -> None:
        """Adds the matching terms of the classes from `self.size` to `size`."""
        found = False
        for code, matching in terms:
            for key, numbers in matching.over(keys):
                found = True
                if numbers.required_anti:
                    _add(self._anti_affinity[key], code, numbers.required_anti)
                required = numbers.required if required_weight > 0 else 0
                if required or numbers.preferred:
                    _add(self._weights[key], code, required * required_weight + numbers.preferred_weight)
                    _add(self._counts[key], code, required + numbers.preferred)
        if found:
            self.terms = MatchingTerms(_classes(self._anti_affinity), _classes(self._weights), _classes(self._counts))
        self.size = size


_Numbers = defaultdict[str, dict[int, int]]


def _add(numbers: dict[int, int], code: int, number: int) -> None:
    numbers[code] = numbers.get(code, 0) + number


def _classes(numbers: _Numbers) -> tuple[ClassNumbers, ...]:
    return tuple(ClassNumbers(key, tuple(sorted(of_key.items()))) for key, of_key in numbers.items())
