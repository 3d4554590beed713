"""TermWeights: which of many terms match a class of pods, without comparing it with each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from extender.engine.plugins.inter_pod_affinity.terms import WeightedTerm
from extender.engine.snapshot.symbols import LabelPair, narrowest_pairs
from extender.values.objects.label_selectors import Operator, Selector

WantedLabel = tuple[str, str | None]
"""A label, None in place of its value for any value."""

_EXCLUDE_VALUES: Final = (Operator.NOT_IN, Operator.NOT_EQUALS)
_NO_LABELS: Final[Mapping[str, str]] = {}


def wanted_labels(selector: Selector) -> Sequence[WantedLabel] | None:
    """Returns a small set of labels of which everything the selector matches has one; None if it requires none."""
    pairs = narrowest_pairs(selector)
    if pairs is not None:
        return [*pairs]
    return next(([(each.key, None)] for each in selector.requirements if not _excludes(each.operator)), None)


def excluded_labels(selector: Selector) -> Iterator[WantedLabel]:
    """Yields labels for a selector without wanted labels; it matches what has none of them, and maybe more."""
    for requirement in selector.requirements:
        for value in (None,) if requirement.operator is Operator.DOES_NOT_EXIST else requirement.values:
            yield requirement.key, value


def _all_wanted(selectors: Iterable[Selector]) -> frozenset[LabelPair] | None:
    found = set[LabelPair]()
    for selector in selectors:
        pairs = narrowest_pairs(selector) if selector.selectable else frozenset[LabelPair]()
        if pairs is None:
            return None
        found |= pairs
    return frozenset(found)


def _excludes(operator: Operator) -> bool:
    return operator in _EXCLUDE_VALUES or operator is Operator.DOES_NOT_EXIST


@final
class TermWeights:
    """The weights of terms of the pod to place, summed for the pods that they match. The terms' namespaces must be
    resolved; see `SelectedNamespaces`.

    A term that wants a label is compared only with pods that have it. One that only excludes labels matches all pods of
    its namespaces but those with a label that it excludes, and is found by that label.
    """

    __slots__ = ("_everywhere", "_excluding", "_in_namespace", "_terms", "_wanting", "wanted")

    def __init__(self, terms: Sequence[WeightedTerm]) -> None:
        self._terms = terms
        self._everywhere = 0
        self._in_namespace: Counter[str] = Counter()
        # The places of the terms, by the labels that they want or exclude.
        self._wanting: defaultdict[WantedLabel, list[int]] = defaultdict(list)
        self._excluding: defaultdict[WantedLabel, list[int]] = defaultdict(list)
        for place, weighted in enumerate(terms):
            if weighted.term.selector.selectable:
                self._add(place, weighted)
        self.wanted: Final = _all_wanted(weighted.term.selector for weighted in terms)
        """Labels: each pod with a weight other than 0 has one of them; None if there are no such labels."""

    def _add(self, place: int, weighted: WeightedTerm) -> None:
        term, weight = weighted.term, weighted.weight
        wanted = wanted_labels(term.selector)
        if wanted is not None:
            for label in wanted:
                self._wanting[label].append(place)
            return
        if term.namespace_selector.selectable:
            # Such a term matches nearly every pod there is. All pods get its weight, and `of` takes it back from those
            # with a label that it excludes.
            self._everywhere += weight
        else:
            self._in_namespace.update(dict.fromkeys(term.namespaces, weight))
        for label in excluded_labels(term.selector):
            self._excluding[label].append(place)

    def of(self, namespace: str, labels: Mapping[str, str]) -> int:
        """Returns the sum of the weights of the terms that match a pod."""
        terms, total = self._terms, self._everywhere + self._in_namespace.get(namespace, 0)
        excluding: set[int] = set()
        for key, value in labels.items():
            for label in ((key, value), (key, None)):
                for place in self._wanting.get(label, ()):
                    if terms[place].term.matches(namespace, labels, _NO_LABELS):
                        total += terms[place].weight
                excluding.update(self._excluding.get(label, ()))
        # A set, because a pod may have several labels that one term excludes: its weight is taken back once.
        for place in excluding:
            term = terms[place].term
            is_counted = namespace in term.namespaces or term.namespace_selector.selectable
            if is_counted and not term.selector.matches(labels):
                total -= terms[place].weight
        return total
