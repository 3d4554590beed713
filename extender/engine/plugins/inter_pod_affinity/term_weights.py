"""TermWeights: which of thousands of terms match a class of pods, without comparing it with each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, final

from extender.engine.plugins.inter_pod_affinity.terms import Term, WeightedTerm
from extender.engine.snapshot.pod_attributes import LabelClass
from extender.engine.snapshot.symbols import LabelPair, narrowest_pairs
from extender.values.objects.label_selectors import LONG, Operator, Selector

WantedLabel = tuple[str, str | None]
"""A label, None in place of its value for any value."""

MOST_KNOWN: Final = 10_000
"""Classes of pods whose sums are kept beyond those that are asked about. A cycle counts a class once; later ones need
its sum no more.
"""

_FEW_ALIKE: Final = 64
_EXCLUDE_VALUES: Final = (Operator.NOT_IN, Operator.NOT_EQUALS)
_NO_LABELS: Final[Mapping[str, str]] = {}


def wanted_labels(selector: Selector) -> Sequence[WantedLabel] | None:
    """Returns a small set of labels of which everything the selector matches has one; None if it requires none."""
    pairs = narrowest_pairs(selector)
    if pairs is not None:
        # All are about one key. Of many values none is listed: the selector looks them up faster.
        return [*pairs] if len(pairs) < LONG else [(key, None) for key, _ in islice(pairs, 1)]
    return next(([(each.key, None)] for each in selector.requirements if not _excludes(each.operator)), None)


def excluded_labels(selector: Selector) -> Iterator[WantedLabel]:
    """Yields labels for a selector without wanted labels, which matches what has none of them, and may match what
    has.
    """
    for requirement in selector.requirements:
        # Of many values none is listed, as in `wanted_labels`.
        is_any = requirement.operator is Operator.DOES_NOT_EXIST or len(requirement.values) >= LONG
        for value in (None,) if is_any else requirement.values:
            yield requirement.key, value


def _all_wanted(selectors: Iterable[Selector]) -> Sequence[frozenset[LabelPair]] | None:
    short, long = set[LabelPair](), dict[Selector, frozenset[LabelPair]]()
    for selector in selectors:
        pairs = narrowest_pairs(selector) if selector.selectable else frozenset[LabelPair]()
        if pairs is None:
            return None
        if len(pairs) < LONG:
            short |= pairs
        else:
            long[selector] = pairs
    return [frozenset(short), *long.values()]


def _excludes(operator: Operator) -> bool:
    return operator in _EXCLUDE_VALUES or operator is Operator.DOES_NOT_EXIST


def is_match(term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
    """True if a term of the pod to place matches a pod. Its namespace selector must be resolved; see
    `SelectedNamespaces`.
    """
    return term.matches(namespace, labels, _NO_LABELS)


@final
class TermWeights:
    """The weights of terms of the pod to place, summed for the pods that they match.

    A term that wants a label is compared only with pods that have it. One that only excludes labels matches all pods of
    its namespaces but those with a label that it excludes, and is found by that label.
    """

    __slots__ = ("_everywhere", "_excluding", "_in_namespace", "_known", "_most_alike", "_terms", "_wanting", "wanted")

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
        """Sets of labels: each pod with a weight other than 0 has a label of any of them; None if there are no such
        labels.
        """
        self._most_alike: Final = max(map(len, chain(self._wanting.values(), self._excluding.values())), default=0)
        self._known: dict[LabelClass, int] = {}

    def _add(self, place: int, weighted: WeightedTerm) -> None:
        term, weight = weighted.term, weighted.weight
        wanted = wanted_labels(term.selector)
        if wanted is not None:
            for label in wanted:
                self._wanting[label].append(place)
            return
        if term.namespace_selector.matches(_NO_LABELS):
            self._everywhere += weight
        else:
            self._in_namespace.update(dict.fromkeys(chain(term.namespaces, term.selected), weight))
        for label in excluded_labels(term.selector):
            self._excluding[label].append(place)

    def of_class(self, pods: LabelClass) -> int:
        """Returns the sum for the pods of a class, which is kept if terms are alike: each of these is compared with the
        pods.
        """
        if not self.are_alike:
            return self.of(pods.namespace, pods.labels_by_key())
        known = self._known.get(pods)
        if known is None:
            known = self._known[pods] = self.of(pods.namespace, pods.labels_by_key())
        return known

    @property
    def are_alike(self) -> bool:
        """True if many terms want one label."""
        return self._most_alike > _FEW_ALIKE

    def steps_for(self, classes: Sequence[LabelClass]) -> int:
        """Returns how many comparisons it takes at most to find the sums for these classes. Of the others not all sums
        are kept.
        """
        if len(self._known) > MOST_KNOWN + len(classes):
            self._known = {pods: self._known[pods] for pods in classes if pods in self._known}
        return sum(len(pods.labels) for pods in classes if pods not in self._known) * self._most_alike

    def of(self, namespace: str, labels: Mapping[str, str]) -> int:
        """Returns the sum of the weights of the terms that match a pod."""
        terms, total = self._terms, self._everywhere + self._in_namespace.get(namespace, 0)
        excluding: set[int] = set()
        for key, value in labels.items():
            for label in ((key, value), (key, None)):
                for place in self._wanting.get(label, ()):
                    if is_match(terms[place].term, namespace, labels):
                        total += terms[place].weight
                excluding.update(self._excluding.get(label, ()))
        for place in excluding:
            term = terms[place].term
            is_counted = term.names(namespace) or term.namespace_selector.matches(_NO_LABELS)
            if is_counted and not term.selector.matches(labels):
                total -= terms[place].weight
        return total
