"""Affinity terms, compiled: which pods they mean, and where near is.

Upstream: kube-scheduler/framework/types.go, AffinityTerm; pkg/scheduler/framework/types.go, PodInfo.Update (v1.36.2).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeVar, final

from extender.golang.field_errors import aggregate
from extender.objects.grouping import Namespace
from extender.objects.label_selectors import NOTHING, Selector, SelectorError, selector_of
from extender.objects.pod import PodAffinityTerm, WeightedPodAffinityTerm
from extender.snapshot.pod_attributes import AffinityClass, preferred_terms, required_terms

T = TypeVar("T")

_COMPILED_KEPT: Final = 1024
_NAMESPACE_SELECTORS_KEPT: Final = 1024


@final
@dataclass(frozen=True, slots=True)
class Term:
    """Pods that `selector` selects, in one of `namespaces` or in a namespace whose labels `namespace_selector` selects."""

    topology_key: str
    """Nodes with the same value of this label are one place."""
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether it means a pod. Upstream: AffinityTerm.Matches."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@final
@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term as a wish; one of anti-affinity weighs less than nothing."""

    weight: int
    term: Term


@final
@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod. Those of a stanza that cannot be used are missing, and `error` says why."""

    affinity: tuple[Term, ...] = ()
    """Required: all pods that all of these mean must be near."""
    anti_affinity: tuple[Term, ...] = ()
    """Required: no pod that one of these means may be near."""
    preferred: tuple[WeightedTerm, ...] = ()
    error: str = ""


NO_TERMS: Final = PodTerms()


@lru_cache(maxsize=_COMPILED_KEPT)
def required_affinity_terms(pods: AffinityClass) -> tuple[Term, ...]:
    """What pods of this class must be near to.

    Raises:
        SelectorError: a term cannot be used.
    """
    affinity, _ = pods.affinity()
    return tuple(_term(written, pods.namespace) for written in required_terms(affinity))


@lru_cache(maxsize=_COMPILED_KEPT)
def required_anti_affinity_terms(pods: AffinityClass) -> tuple[Term, ...]:
    """What pods of this class must be away from.

    Raises:
        SelectorError: a term cannot be used.
    """
    _, anti_affinity = pods.affinity()
    return tuple(_term(written, pods.namespace) for written in required_terms(anti_affinity))


@lru_cache(maxsize=_COMPILED_KEPT)
def terms_of(pods: AffinityClass) -> PodTerms:
    """The terms of pods of this class, as they stand in their specs."""
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
        return [WeightedTerm(sign * wish.weight, _term(wish.pod_affinity_term, own)) for wish in written]

    terms = PodTerms(
        affinity=stanza("requiredAffinityTerms", lambda: required_affinity_terms(pods)),
        anti_affinity=stanza("requiredAntiAffinityTerms", lambda: required_anti_affinity_terms(pods)),
        preferred=stanza("preferredAffinityTerms", lambda: weighted(+1, preferred_terms(affinity)))
        + stanza("preferredAntiAffinityTerms", lambda: weighted(-1, preferred_terms(anti_affinity))),
    )
    return replace(terms, error=aggregate(errors)) if errors else terms


def _term(written: PodAffinityTerm, own_namespace: str) -> Term:
    is_unsaid = not written.namespaces and written.namespace_selector is None
    return Term(
        topology_key=written.topology_key,
        selector=selector_of(written.label_selector),
        namespaces=frozenset([own_namespace] if is_unsaid else written.namespaces),
        namespace_selector=selector_of(written.namespace_selector),
    )


@final
class KnownNamespaces:
    """The namespaces that a selector selects. State: the answers so far, and the namespaces they hold for."""

    def __init__(self) -> None:
        self._known: list[Namespace] = []
        self._selected: dict[Selector, frozenset[str]] = {}

    def looked_up(self, term: Term, namespaces: Mapping[str, Namespace]) -> Term:
        """The term of a pod that is to be placed, the namespaces it selects now among those it names.

        Its selector stays, and is later held against no labels at all: one that only excludes (NotIn, DoesNotExist) thus means every
        namespace. That is upstream's doing, which clears the selector in a copy of the term.

        Upstream: framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty (v1.36.2).
        """
        selector = term.namespace_selector
        if selector.is_empty or not selector.selectable:
            return term
        return replace(term, namespaces=term.namespaces | self._selected_by(selector, namespaces))

    def _selected_by(self, selector: Selector, namespaces: Mapping[str, Namespace]) -> frozenset[str]:
        listed = [*namespaces.values()]
        # The comparison stops at identity, object by object: it costs next to nothing while nothing has changed.
        if listed != self._known or len(self._selected) >= _NAMESPACE_SELECTORS_KEPT:
            self._known, self._selected = listed, {}
        names = self._selected.get(selector)
        if names is None:
            names = self._selected[selector] = frozenset(
                name for name, namespace in namespaces.items() if selector.matches(namespace.metadata.labels)
            )
        return names
