"""ExistingTerms: the affinity terms of existing pods that match a pod to place.

Pods with equal stanzas are one class. A term is evaluated once per class of existing pods and kind of incoming pod, and only if an index
says that it can match.
"""

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, final

from extender.objects.kept_parses import kept_for_equal
from extender.plugins.inter_pod_affinity.terms import Term, terms_of
from extender.snapshot.pod_attributes import AffinityClass, PodSymbol
from extender.snapshot.symbols import LabelPair, SymbolIndex, narrowest_pairs

_RESULTS_KEPT: Final = 1024

_TermKey = tuple[str | None, LabelPair | None]
"""A namespace (None for any) and a label that a term requires (None if it requires no particular one)."""

REQUIRED_ANTI, REQUIRED, PREFERRED = range(3)
"""The kinds of terms."""


@final
@dataclass(frozen=True, slots=True)
class Incoming:
    """The pod to place, as far as terms look at it. Pods that terms cannot distinguish are equal."""

    namespace: str
    labels: frozenset[LabelPair]
    namespace_labels: frozenset[LabelPair]


@final
@dataclass(frozen=True, slots=True)
class ExistingTerm:
    """A term of a class of pods."""

    kind: int
    term: Term
    weight: int
    """1 if the term is required."""


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
        self._terms: defaultdict[_TermKey, list[tuple[int, Sequence[ExistingTerm]]]] = defaultdict(list)
        self._results: OrderedDict[tuple[Incoming, int], _Result] = OrderedDict()

    def matching(self, incoming: Incoming, required_weight: int) -> MatchingTerms:
        """Returns the matching terms of all classes.

        Arguments:
            required_weight: the weight of a required affinity term in the score (hardPodAffinityWeight).
        """
        key = (incoming, required_weight)
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = _Result()
            if len(self._results) > _RESULTS_KEPT:
                self._results.popitem(last=False)
        else:
            self._results.move_to_end(key)
        if result.size < self.size:
            result.extend(self._matching_from(incoming, result.size), self.size, required_weight)
        return result.terms

    def _matching_from(self, incoming: Incoming, first: int) -> Iterator[tuple[int, ExistingTerm]]:
        """Yields the terms that match the pod, of the classes from `first` on, each with the code of its class."""
        labels, namespace_labels = dict(incoming.labels), dict(incoming.namespace_labels)
        for namespace in (incoming.namespace, None):
            for pair in (*incoming.labels, None):
                classes = self._terms.get((namespace, pair))
                if classes is None:
                    continue
                for code, terms in classes[bisect_left(classes, first, key=itemgetter(0)) :]:
                    for existing in terms:
                        if existing.term.matches(incoming.namespace, labels, namespace_labels):
                            yield code, existing

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if isinstance(symbol, AffinityClass):
            for key, terms in indexed_terms(symbol).items():
                self._terms[key].append((code, terms))


@kept_for_equal(lambda pods: len(pods.encoded))
def indexed_terms(pods: AffinityClass) -> Mapping[_TermKey, Sequence[ExistingTerm]]:
    """Returns the terms of a class by what an incoming pod must have for them to match; those that match no pod are left out."""
    terms = terms_of(pods)
    found: defaultdict[_TermKey, list[ExistingTerm]] = defaultdict(list)
    for existing in (
        *(ExistingTerm(REQUIRED_ANTI, term, 1) for term in terms.anti_affinity),
        *(ExistingTerm(REQUIRED, term, 1) for term in terms.affinity),
        *(ExistingTerm(PREFERRED, weighted.term, weighted.weight) for weighted in terms.preferred),
    ):
        term = existing.term
        if not term.selector.selectable:
            continue
        namespaces: frozenset[str | None] = frozenset([None]) if term.namespace_selector.selectable else frozenset(term.namespaces)
        pairs: Sequence[LabelPair | None] = narrowest_pairs(term.selector) or (None,)
        for namespace in namespaces:
            for pair in pairs:
                found[namespace, pair].append(existing)
    return found


@final
class _Result:
    """The matching terms for one incoming pod, of the classes up to `size`."""

    __slots__ = ("_anti_affinity", "_counts", "_weights", "size", "terms")

    def __init__(self) -> None:
        self.size = 0
        self.terms = MatchingTerms()
        self._anti_affinity: _Numbers = defaultdict(dict)
        self._weights: _Numbers = defaultdict(dict)
        self._counts: _Numbers = defaultdict(dict)

    def extend(self, terms: Iterator[tuple[int, ExistingTerm]], size: int, required_weight: int) -> None:
        """Adds the matching terms of the classes from `self.size` to `size`."""
        found = False
        for code, existing in terms:
            found = True
            key = existing.term.topology_key
            if existing.kind == REQUIRED_ANTI:
                _add(self._anti_affinity[key], code, 1)
                continue
            weight = required_weight if existing.kind == REQUIRED else existing.weight
            if existing.kind == PREFERRED or required_weight > 0:
                _add(self._weights[key], code, weight)
                _add(self._counts[key], code, 1)
        self.size = size
        if found:
            self.terms = MatchingTerms(_classes(self._anti_affinity), _classes(self._weights), _classes(self._counts))


_Numbers = defaultdict[str, dict[int, int]]


def _add(numbers: dict[int, int], code: int, number: int) -> None:
    numbers[code] = numbers.get(code, 0) + number


def _classes(numbers: _Numbers) -> tuple[ClassNumbers, ...]:
    return tuple(ClassNumbers(key, tuple(sorted(of_key.items()))) for key, of_key in numbers.items())
