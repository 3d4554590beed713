"""Parsed affinity terms.

Upstream: kube-scheduler/framework/types.go, AffinityTerm; pkg/scheduler/framework/types.go, PodInfo.Update (v1.36.2).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeVar, final

from extender.engine.snapshot.pod_attributes import AffinityClass, preferred_terms, required_terms
from extender.values.golang.field_errors import aggregate
from extender.values.objects.grouping import Namespace
from extender.values.objects.label_selectors import NOTHING, Selector, SelectorError, selector_of
from extender.values.objects.label_sets import LabelSets, places_of
from extender.values.objects.pod import PodAffinityTerm, WeightedPodAffinityTerm

T = TypeVar("T")

_RESOLVED_KEPT: Final = 64


@final
@dataclass(frozen=True, slots=True)
class Term:
    """Matches pods by `selector`, in one of `namespaces` or in a namespace whose labels match `namespace_selector`."""

    topology_key: str
    """Nodes with the same value of this label form a domain."""
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING

    @property
    def num_values(self) -> int:
        """The number of values that it names."""
        return 1 + len(self.namespaces) + self.selector.num_values + self.namespace_selector.num_values

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """True if the term matches a pod. Upstream: AffinityTerm.Matches."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@final
@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A preferred term; the weight is negative for anti-affinity."""

    weight: int
    term: Term


@final
@dataclass(frozen=True, slots=True, eq=False)
class PodTerms:
    """All terms of a pod but those of an invalid stanza, for which `error` has the reason.

    Two are never equal: they are keys of caches, which compare none.
    """

    affinity: tuple[Term, ...] = ()
    """Required: the pod goes near pods that match all of these."""
    anti_affinity: tuple[Term, ...] = ()
    """Required: the pod goes near no pod that matches one of these."""
    preferred: tuple[WeightedTerm, ...] = ()
    error: str = ""
    select_namespaces: bool = False
    """True if a term selects namespaces by their labels; see `SelectedNamespaces`."""


NO_TERMS: Final = PodTerms()


@lru_cache(maxsize=512)
def compiled_terms(pods: AffinityClass, *, anti: bool) -> tuple[Term, ...]:
    """Returns the class's required affinity or anti-affinity terms. Raises SelectorError if one is invalid."""
    return tuple(_term(written, pods.namespace) for written in required_terms(pods.affinity()[anti]))


@lru_cache(maxsize=256)
def terms_of(pods: AffinityClass) -> PodTerms:
    affinity, anti_affinity = pods.affinity()
    own = pods.namespace
    errors: list[str] = []

    def stanza(name: str, compiled: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        try:
            return tuple(compiled())
        except SelectorError as exc:
            errors.append(f"{name}: {exc}")
            return ()

    def weighted(sign: int, written: Sequence[WeightedPodAffinityTerm]) -> list[WeightedTerm]:
        return [WeightedTerm(sign * preferred.weight, _term(preferred.pod_affinity_term, own)) for preferred in written]

    terms = PodTerms(
        affinity=stanza("requiredAffinityTerms", lambda: compiled_terms(pods, anti=False)),
        anti_affinity=stanza("requiredAntiAffinityTerms", lambda: compiled_terms(pods, anti=True)),
        preferred=stanza("preferredAffinityTerms", lambda: weighted(+1, preferred_terms(affinity)))
        + stanza("preferredAntiAffinityTerms", lambda: weighted(-1, preferred_terms(anti_affinity))),
    )
    each = (*terms.affinity, *terms.anti_affinity, *(weighted.term for weighted in terms.preferred))
    return replace(
        terms, error=aggregate(errors) if errors else "", select_namespaces=any(map(_selects_some_namespaces, each))
    )


def _selects_some_namespaces(term: Term) -> bool:
    return term.namespace_selector.selectable and not term.namespace_selector.is_empty


def _term(written: PodAffinityTerm, own_namespace: str) -> Term:
    is_default = not written.namespaces and written.namespace_selector is None
    return Term(
        topology_key=written.topology_key,
        selector=selector_of(written.label_selector),
        namespaces=frozenset([own_namespace] if is_default else written.namespaces),
        namespace_selector=selector_of(written.namespace_selector),
    )


@final
class SelectedNamespaces:
    """The namespaces that the selectors of terms match. State: these, and the terms resolved since they changed."""

    def __init__(self) -> None:
        self._known: list[Namespace] = []
        self._labels = LabelSets()
        self._resolved: OrderedDict[PodTerms, PodTerms] = OrderedDict()

    def resolved(self, terms: PodTerms, namespaces: Mapping[str, Namespace]) -> PodTerms:
        """Returns the terms of the pod to place, which name the namespaces that they select. No selector is left but
        that of all namespaces.

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
        found = self._resolved.get(terms)
        if found is None:
            found = self._resolved[terms] = replace(
                terms,
                affinity=tuple(map(self._with_selected, terms.affinity)),
                anti_affinity=tuple(map(self._with_selected, terms.anti_affinity)),
                preferred=tuple(WeightedTerm(each.weight, self._with_selected(each.term)) for each in terms.preferred),
            )
            if len(self._resolved) > _RESOLVED_KEPT:
                self._resolved.popitem(last=False)
        return found

    def _with_selected(self, term: Term) -> Term:
        if not _selects_some_namespaces(term):
            return term
        selected = (self._known[place].name for place in places_of(self._labels.selected(term.namespace_selector)))
        return replace(term, namespaces=term.namespaces.union(selected), namespace_selector=NOTHING)
