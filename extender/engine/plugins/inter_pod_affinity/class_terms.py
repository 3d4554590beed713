"""The affinity terms of one class of existing pods, taken together as far as they match the same pods, and indexed."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, final

from extender.engine.plugins.inter_pod_affinity.term_weights import WantedLabel, excluded_labels, wanted_labels
from extender.engine.plugins.inter_pod_affinity.terms import Term, terms_of
from extender.engine.snapshot.pod_attributes import AffinityClass
from extender.values.objects.kept_parses import kept_for_equal
from extender.values.objects.label_selectors import Selector

MANY_EXCLUDING: Final = 64
"""More terms of a class that only exclude labels are matched together."""

TermKey = tuple[str | None, WantedLabel | None]
"""A namespace (None for any) and a label that a term requires (None if it requires no particular one)."""


@final
@dataclass(slots=True)
class TermNumbers:
    """How many terms of a class there are over one topology key, by their kinds."""

    required_anti: int = 0
    required: int = 0
    preferred: int = 0
    preferred_weight: int = 0
    """The sum of the weights of the preferred terms."""

    def add(self, other: "TermNumbers", sign: int) -> None:
        self.required_anti += sign * other.required_anti
        self.required += sign * other.required
        self.preferred += sign * other.preferred
        self.preferred_weight += sign * other.preferred_weight


@final
@dataclass(frozen=True, slots=True)
class MatchingNumbers:
    """The numbers of terms that match a pod, by topology key. There may be thousands of keys."""

    by_key: Mapping[str, TermNumbers]
    less: Sequence[Mapping[str, TermNumbers]] = ()
    """Numbers of terms that do not match, to be subtracted."""

    def over(self, keys: Set[str]) -> Iterator[tuple[str, TermNumbers]]:
        """Yields those over one of these topology keys."""
        by_key = self.by_key
        for key in by_key if len(by_key) < len(keys) else keys:
            if key in by_key and key in keys:
                numbers = by_key[key]
                if self.less:
                    numbers = TermNumbers()
                    numbers.add(by_key[key], +1)
                    for each in self.less:
                        if key in each:
                            numbers.add(each[key], -1)
                yield key, numbers


class TermsOfClass(ABC):
    """Terms of a class of pods that are matched together."""

    @abstractmethod
    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> MatchingNumbers | None:
        """Returns the numbers of those that match a pod; None if none does."""


@final
class AlikeTerms(TermsOfClass):
    """Terms that match the same pods. There may be thousands, over different topology keys."""

    __slots__ = ("_numbers", "term")

    def __init__(self, term: Term, by_key: Mapping[str, TermNumbers]) -> None:
        """Takes terms together.

        Arguments:
            term: one of them; its topology key does not count.
        """
        self.term: Final = term
        self._numbers = MatchingNumbers(by_key)

    @property
    def by_key(self) -> Mapping[str, TermNumbers]:
        return self._numbers.by_key

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> MatchingNumbers | None:
        return self._numbers if self.term.matches(namespace, labels, namespace_labels) else None


@final
class ExcludingTerms(TermsOfClass):
    """Terms that match all pods of the namespaces that they are asked about but those with a label that they
    exclude.
    """

    __slots__ = ("_by_key", "_excluding")

    def __init__(self, terms: Sequence[AlikeTerms]) -> None:
        self._by_key: defaultdict[str, TermNumbers] = defaultdict(TermNumbers)
        self._excluding: defaultdict[WantedLabel, list[AlikeTerms]] = defaultdict(list)
        for alike in terms:
            for key, numbers in alike.by_key.items():
                self._by_key[key].add(numbers, +1)
            for label in excluded_labels(alike.term.selector):
                self._excluding[label].append(alike)

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> MatchingNumbers:
        found = (self._excluding.get(label, ()) for pair in labels.items() for label in (pair, (pair[0], None)))
        unlike = {
            id(alike): alike.by_key
            for of_label in found
            for alike in of_label
            if not alike.term.selector.matches(labels)
        }
        return MatchingNumbers(self._by_key, [*unlike.values()])


@kept_for_equal(lambda pods: len(pods.encoded))
def indexed_terms(pods: AffinityClass) -> Mapping[TermKey, Sequence[TermsOfClass]]:
    """Returns the terms of a class by what an incoming pod must have for them to match; those that match no pod are
    left out.
    """
    terms = terms_of(pods)
    alike: dict[tuple[Selector, frozenset[str], Selector], dict[str, TermNumbers]] = {}

    def numbers(term: Term) -> TermNumbers:
        by_key = alike.setdefault((term.selector, term.namespaces, term.namespace_selector), {})
        return by_key.setdefault(term.topology_key, TermNumbers())

    for term in terms.anti_affinity:
        numbers(term).required_anti += 1
    for term in terms.affinity:
        numbers(term).required += 1
    for weighted in terms.preferred:
        of_term = numbers(weighted.term)
        of_term.preferred += 1
        of_term.preferred_weight += weighted.weight
    found: defaultdict[TermKey, list[TermsOfClass]] = defaultdict(list)
    excluding: defaultdict[str | None, list[AlikeTerms]] = defaultdict(list)
    for (selector, of_names, namespace_selector), by_key in alike.items():
        if not selector.selectable:
            continue
        each = AlikeTerms(Term("", selector, of_names, namespace_selector), by_key)
        namespaces: frozenset[str | None] = frozenset([None]) if namespace_selector.selectable else frozenset(of_names)
        wanted = wanted_labels(selector)
        if wanted is None and (namespace_selector.is_empty or not namespace_selector.selectable):
            for namespace in namespaces:
                excluding[namespace].append(each)
            continue
        labels: Sequence[WantedLabel | None] = wanted or (None,)
        for namespace in namespaces:
            for label in labels:
                found[namespace, label].append(each)
    for namespace, of_namespace in excluding.items():
        found[namespace, None] += [ExcludingTerms(of_namespace)] if len(of_namespace) > MANY_EXCLUDING else of_namespace
    return found
