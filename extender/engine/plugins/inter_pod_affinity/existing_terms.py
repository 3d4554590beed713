"""ExistingTerms: the affinity terms of existing pods that match a pod to place.

Pods with equal stanzas are one class. A term is evaluated once per class of existing pods and kind of incoming pod, and
only if an index says that it can match.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, final

import msgspec

from extender.engine.plugins.inter_pod_affinity.terms import Term, WantedLabel, terms_of, wanted_labels
from extender.engine.snapshot.pod_attributes import AffinityClass, PodSymbol
from extender.engine.snapshot.symbols import LabelPair, SymbolIndex
from extender.values.caches import cached_by_size
from extender.values.objects.label_selectors import Selector

TermKey = tuple[str | None, WantedLabel | None]
"""A namespace (None for any) and a label that a term requires (None if it requires no particular one)."""


@final
@dataclass(slots=True)
class TermNumbers:
    """The number of a class's terms over one topology key, by kind."""

    required_anti: int = 0
    required: int = 0
    preferred: int = 0
    preferred_weight: int = 0
    """The sum of the weights of the preferred terms."""


@final
class AlikeTerms(msgspec.Struct, frozen=True):
    """Terms that match the same pods, over different topology keys."""

    term: Term
    """One of them; its topology key does not count."""
    by_key: Mapping[str, TermNumbers]


@cached_by_size(256, lambda pods: len(pods.encoded))
def indexed_terms(pods: AffinityClass) -> Mapping[TermKey, Sequence[AlikeTerms]]:
    """Returns the terms of a class that can match a pod, indexed by a namespace and label that the pod must have."""
    terms = terms_of(pods)
    by_selection: dict[tuple[Selector, frozenset[str], Selector], dict[str, TermNumbers]] = {}

    def numbers(term: Term) -> TermNumbers:
        by_key = by_selection.setdefault((term.selector, term.namespaces, term.namespace_selector), {})
        return by_key.setdefault(term.topology_key, TermNumbers())

    for term in terms.anti_affinity:
        numbers(term).required_anti += 1
    for term in terms.affinity:
        numbers(term).required += 1
    for weighted in terms.preferred:
        of_term = numbers(weighted.term)
        of_term.preferred += 1
        of_term.preferred_weight += weighted.weight
    index: defaultdict[TermKey, list[AlikeTerms]] = defaultdict(list)
    for (selector, of_names, namespace_selector), by_key in by_selection.items():
        if not selector.selectable:
            continue
        alike_terms = AlikeTerms(Term("", selector, of_names, namespace_selector), by_key)
        namespaces: frozenset[str | None] = frozenset([None]) if namespace_selector.selectable else frozenset(of_names)
        for namespace in namespaces:
            for label in wanted_labels(selector) or (None,):
                index[namespace, label].append(alike_terms)
    return index


_RESULTS_KEPT: Final = 1024


@final
class Incoming(msgspec.Struct, frozen=True):
    """The properties of the pod to place that terms look at. Pods that terms cannot distinguish are equal."""

    namespace: str
    labels: frozenset[LabelPair]
    namespace_labels: frozenset[LabelPair]


@final
class ClassNumbers(msgspec.Struct, frozen=True):
    """A number for each class of pods, for one topology key: the weights of a tally question."""

    topology_key: str
    numbers: tuple[tuple[int, int], ...]
    """(code, number), ascending by code."""


@final
class MatchingTerms(msgspec.Struct, frozen=True):
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
        self._terms: defaultdict[TermKey, list[tuple[int, Sequence[AlikeTerms]]]] = defaultdict(list)
        self._results: OrderedDict[tuple[Incoming, int], _Result] = OrderedDict()
        self._keys: tuple[Set[str], int] = frozenset(), 0

    def matching(self, incoming: Incoming, required_weight: int, keys: Set[str]) -> MatchingTerms:
        """Returns the matching terms of all classes.

        `required_weight` is that of a required affinity term in the score (hardPodAffinityWeight). Only terms over
        `keys` matter, a set to which keys are only added.
        """
        # Results leave out topology keys that no node had then. The set only grows, so that its length tells whether it
        # is the same.
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
        # Classes never change and are only appended: what was found for the earlier ones stays true, and only the new
        # ones are looked at.
        if result.size < self.size:
            new_terms = _matching(incoming, self._candidates(incoming, result.size))
            result.extend(new_terms, self.size, required_weight, keys)
        return result.terms

    def _candidates(self, incoming: Incoming, first: int) -> Sequence[tuple[int, Sequence[AlikeTerms]]]:
        """Returns the terms that may match the pod, of the classes from `first` on, with the code of each class."""
        labels: list[WantedLabel | None] = [*incoming.labels, *((key, None) for key, _ in incoming.labels), None]
        candidates: list[tuple[int, Sequence[AlikeTerms]]] = []
        for key in ((namespace, label) for namespace in (incoming.namespace, None) for label in labels):
            classes = self._terms.get(key)
            if classes is not None:
                # Codes ascend, so that the classes that are new to the result are at the end.
                candidates += classes[bisect_left(classes, first, key=itemgetter(0)) :]
        return candidates

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, AffinityClass):
            for key, terms in indexed_terms(symbol).items():
                self._terms[key].append((code, terms))


def _matching(
    incoming: Incoming, candidates: Iterable[tuple[int, Sequence[AlikeTerms]]]
) -> Iterator[tuple[int, Mapping[str, TermNumbers]]]:
    labels, namespace_labels = dict(incoming.labels), dict(incoming.namespace_labels)
    for code, terms in candidates:
        for alike_terms in terms:
            if alike_terms.term.matches(incoming.namespace, labels, namespace_labels):
                yield code, alike_terms.by_key


_Numbers = defaultdict[str, Counter[int]]


@final
@dataclass(slots=True, eq=False)
class _Result:
    """The matching terms for one incoming pod, of the classes up to `size`."""

    size: int = 0
    terms: MatchingTerms = field(default_factory=MatchingTerms)
    _anti_affinity: _Numbers = field(default_factory=lambda: defaultdict(Counter))
    _weights: _Numbers = field(default_factory=lambda: defaultdict(Counter))
    _counts: _Numbers = field(default_factory=lambda: defaultdict(Counter))

    def extend(
        self, terms: Iterable[tuple[int, Mapping[str, TermNumbers]]], size: int, required_weight: int, keys: Set[str]
    ) -> None:
        """Adds the matching terms of the classes from `self.size` to `size`."""
        has_grown = False
        for code, matching in terms:
            for key, numbers in matching.items():
                if key not in keys:
                    continue
                has_grown = True
                if numbers.required_anti:
                    self._anti_affinity[key][code] += numbers.required_anti
                required = numbers.required if required_weight > 0 else 0
                if required or numbers.preferred:
                    self._weights[key][code] += required * required_weight + numbers.preferred_weight
                    self._counts[key][code] += required + numbers.preferred
        if has_grown:
            self.terms = MatchingTerms(_classes(self._anti_affinity), _classes(self._weights), _classes(self._counts))
        self.size = size


def _classes(numbers: _Numbers) -> tuple[ClassNumbers, ...]:
    return tuple(ClassNumbers(key, tuple(sorted(of_key.items()))) for key, of_key in numbers.items())
