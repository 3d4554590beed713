"""Parsed affinity terms, and an index that finds the terms that match a class of pods.

Upstream: kube-scheduler/framework/types.go, AffinityTerm; pkg/scheduler/framework/types.go, PodInfo.Update.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, final
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from extender.engine.snapshot.pod_attributes import AffinityClass, preferred_terms, required_terms
from extender.engine.snapshot.symbols import LabelPair, narrowest_pairs
from extender.values.caches import cached_by_size
from extender.values.golang.field_errors import aggregate
from extender.values.objects.grouping import Namespace
from extender.values.objects.label_selectors import NOTHING, Operator, Selector, SelectorError, selector_of
from extender.values.objects.label_sets import LabelSets, places_of
from extender.values.objects.pod import PodAffinityTerm, WeightedPodAffinityTerm

T = TypeVar("T")


@final
class Term(msgspec.Struct, frozen=True):
    """Matches pods by `selector`, in one of `namespaces` or in a namespace whose labels match `namespace_selector`."""

    topology_key: str
    """Nodes with the same value of this label form a domain."""
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING

    @property
    def num_values(self) -> int:
        return 1 + len(self.namespaces) + self.selector.num_values + self.namespace_selector.num_values

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """True if the term matches a pod. Upstream: AffinityTerm.Matches."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@final
class WeightedTerm(msgspec.Struct, frozen=True):
    """A preferred term; the weight is negative for anti-affinity."""

    weight: int
    term: Term


@final
class PodTerms(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """All terms of a pod; `error` has the reasons of invalid stanzas. Compared by identity: they are cache keys."""

    affinity: tuple[Term, ...] = ()
    """Required: the pod goes near pods that match all of these."""
    anti_affinity: tuple[Term, ...] = ()
    """Required: the pod goes near no pod that matches one of these."""
    preferred: tuple[WeightedTerm, ...] = ()
    error: str = ""
    select_namespaces: bool = False
    """True if a term selects namespaces by their labels; see `SelectedNamespaces`."""


NO_TERMS: Final = PodTerms()


def _size(pods: AffinityClass) -> int:
    return len(pods.encoded)


@cached_by_size(512, _size)
def compiled_terms(pods: AffinityClass, *, anti: bool) -> tuple[Term, ...]:
    """Returns the class's required affinity or anti-affinity terms. Raises SelectorError if one is invalid."""
    return tuple(_term(term, pods.namespace) for term in required_terms(pods.affinity()[anti]))


@cached_by_size(256, _size)
def terms_of(pods: AffinityClass) -> PodTerms:
    affinity, anti_affinity = pods.affinity()
    namespace = pods.namespace
    errors: list[str] = []

    def stanza(name: str, compiled: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        try:
            return tuple(compiled())
        except SelectorError as exc:
            errors.append(f"{name}: {exc}")
            return ()

    def weighted(sign: int, preferences: Sequence[WeightedPodAffinityTerm]) -> list[WeightedTerm]:
        return [
            WeightedTerm(sign * preferred.weight, _term(preferred.pod_affinity_term, namespace))
            for preferred in preferences
        ]

    terms = PodTerms(
        affinity=stanza("requiredAffinityTerms", lambda: compiled_terms(pods, anti=False)),
        anti_affinity=stanza("requiredAntiAffinityTerms", lambda: compiled_terms(pods, anti=True)),
        preferred=stanza("preferredAffinityTerms", lambda: weighted(+1, preferred_terms(affinity)))
        + stanza("preferredAntiAffinityTerms", lambda: weighted(-1, preferred_terms(anti_affinity))),
    )
    all_terms = (*terms.affinity, *terms.anti_affinity, *(weighted.term for weighted in terms.preferred))
    return replace(
        terms,
        error=aggregate(errors) if errors else "",
        select_namespaces=any(map(_selects_some_namespaces, all_terms)),
    )


def _selects_some_namespaces(term: Term) -> bool:
    return term.namespace_selector.selectable and not term.namespace_selector.is_empty


def _term(affinity_term: PodAffinityTerm, own_namespace: str) -> Term:
    is_default = not affinity_term.namespaces and affinity_term.namespace_selector is None
    return Term(
        topology_key=affinity_term.topology_key,
        selector=selector_of(affinity_term.label_selector),
        namespaces=frozenset([own_namespace] if is_default else affinity_term.namespaces),
        namespace_selector=selector_of(affinity_term.namespace_selector),
    )


@final
class SelectedNamespaces:
    """Resolves namespace selectors. State: the namespaces, and the terms resolved since they changed."""

    def __init__(self) -> None:
        self._known: list[Namespace] = []
        self._labels = LabelSets()
        self._resolved: WeakKeyDictionary[PodTerms, PodTerms] = WeakKeyDictionary()

    def resolved(self, terms: PodTerms, namespaces: Mapping[str, Namespace]) -> PodTerms:
        """Returns the terms of the pod to place with the namespaces that they select, by name. Only the selector of all
        namespaces may remain.

        Upstream: framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty. That of v1.36.2
        clears the selector in a copy of the term, so that one which only excludes (NotIn, DoesNotExist) matches every
        namespace.
        """
        if not terms.select_namespaces:
            return terms
        listed = [*namespaces.values()]
        # Comparing identical objects is fast, so that this costs little while the namespaces do not change.
        if listed != self._known:
            self._known, self._labels = listed, LabelSets()
            for namespace in listed:
                self._labels.add(namespace.labels.items())
            self._resolved.clear()
        resolved = self._resolved.get(terms)
        if resolved is None:
            resolved = self._resolved[terms] = replace(
                terms,
                affinity=tuple(map(self._with_selected, terms.affinity)),
                anti_affinity=tuple(map(self._with_selected, terms.anti_affinity)),
                preferred=tuple(
                    WeightedTerm(weighted.weight, self._with_selected(weighted.term)) for weighted in terms.preferred
                ),
            )
        return resolved

    def _with_selected(self, term: Term) -> Term:
        if not _selects_some_namespaces(term):
            return term
        selected = (self._known[place].name for place in places_of(self._labels.selected(term.namespace_selector)))
        return replace(term, namespaces=term.namespaces.union(selected), namespace_selector=NOTHING)


WantedLabel = tuple[str, str | None]
"""A label, None in place of its value for any value."""

_EXCLUDE_VALUES: Final = (Operator.NOT_IN, Operator.NOT_EQUALS)
_NO_LABELS: Final[Mapping[str, str]] = {}


def wanted_labels(selector: Selector) -> Sequence[WantedLabel] | None:
    """Returns a small set of labels; whatever the selector matches has one of them. None if it requires no label."""
    pairs = narrowest_pairs(selector)
    if pairs is not None:
        return [*pairs]
    return next(
        (
            [(requirement.key, None)]
            for requirement in selector.requirements
            if not (requirement.operator in _EXCLUDE_VALUES or requirement.operator is Operator.DOES_NOT_EXIST)
        ),
        None,
    )


def excluded_labels(selector: Selector) -> Iterator[WantedLabel]:
    """Yields labels for a selector without wanted ones: it matches all objects without them, and maybe more."""
    for requirement in selector.requirements:
        for value in (None,) if requirement.operator is Operator.DOES_NOT_EXIST else requirement.values:
            yield requirement.key, value


def _all_wanted(selectors: Iterable[Selector]) -> frozenset[LabelPair] | None:
    labels = set[LabelPair]()
    for selector in selectors:
        pairs = narrowest_pairs(selector) if selector.selectable else frozenset[LabelPair]()
        if pairs is None:
            return None
        labels |= pairs
    return frozenset(labels)


@final
class TermWeights:
    """The weights of terms of the pod to place, summed for the pods that they match. The terms' namespaces must be
    resolved; see `SelectedNamespaces`.

    A term that wants a label is compared only with pods that have it. A term that only excludes labels matches all pods
    of its namespaces without these labels, and is indexed by them.
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
        """Every pod with a weight other than 0 has one of these labels; None if there is no such set."""

    def _add(self, place: int, weighted: WeightedTerm) -> None:
        term, weight = weighted.term, weighted.weight
        labels = wanted_labels(term.selector)
        if labels is not None:
            for label in labels:
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
