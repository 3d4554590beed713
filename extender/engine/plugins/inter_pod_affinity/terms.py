"""Parsed affinity terms.

Upstream: kube-scheduler/framework/types.go, AffinityTerm; pkg/scheduler/framework/types.go, PodInfo.Update (v1.36.2).
"""

import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Final, TypeVar, final
from weakref import WeakValueDictionary

from extender.engine import framework as fwk
from extender.engine.snapshot.pod_attributes import AffinityClass, preferred_terms, required_terms
from extender.values.golang.field_errors import aggregate
from extender.values.objects.grouping import Namespace
from extender.values.objects.kept_parses import HeldParses, kept_for_equal
from extender.values.objects.label_selectors import NOTHING, Operator, Selector, SelectorError, selector_of
from extender.values.objects.pod import PodAffinityTerm, WeightedPodAffinityTerm

T = TypeVar("T")

_MANY_VALUES: Final = 256
_RESOLVED_KEPT: Final = 64
_RESOLVED_VALUES_KEPT: Final = 2**18


@final
@dataclass(frozen=True, slots=True)
class Term:
    """Matches pods by `selector`, in one of `namespaces` or in a namespace whose labels match `namespace_selector`."""

    topology_key: str
    """Nodes with the same value of this label form a domain."""
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    selected: Set[str] = frozenset()
    """The namespaces that this selector matches, of the terms of a pod to place; see `SelectedNamespaces`."""

    @property
    def num_values(self) -> int:
        """The number of values that it names."""
        return 1 + len(self.namespaces) + self.selector.num_values + self.namespace_selector.num_values

    def names(self, namespace: str) -> bool:
        """True if it is one of the namespaces that the term names or selects."""
        return namespace in self.namespaces or namespace in self.selected

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """True if the term matches a pod. Upstream: AffinityTerm.Matches."""
        if not self.names(namespace) and not self.namespace_selector.matches(namespace_labels):
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
    """All terms of a pod. The terms of an invalid stanza are missing, and `error` has the reason.

    Two are never equal: they are keys of caches, and comparing thousands of terms takes long.
    """

    affinity: tuple[Term, ...] = ()
    """Required: the pod goes near pods that match all of these."""
    anti_affinity: tuple[Term, ...] = ()
    """Required: the pod goes near no pod that matches one of these."""
    preferred: tuple[WeightedTerm, ...] = ()
    error: str = ""
    select_namespaces: bool = False
    """True if a term selects namespaces by their labels; see `SelectedNamespaces`."""
    num_values: int = field(init=False)
    """The number of values that all terms name."""

    def __post_init__(self) -> None:
        each = (*self.affinity, *self.anti_affinity, *(weighted.term for weighted in self.preferred))
        object.__setattr__(self, "num_values", sum(term.num_values for term in each))


NO_TERMS: Final = PodTerms()


@kept_for_equal(lambda pods: len(pods.encoded))
def required_affinity_terms(pods: AffinityClass) -> tuple[Term, ...]:
    """Returns the required affinity terms of this class.

    Raises:
        SelectorError: a term is invalid.
    """
    affinity, _ = pods.affinity()
    return tuple(_term(written, pods.namespace) for written in required_terms(affinity))


@kept_for_equal(lambda pods: len(pods.encoded))
def required_anti_affinity_terms(pods: AffinityClass) -> tuple[Term, ...]:
    """Returns the required anti-affinity terms of this class.

    Raises:
        SelectorError: a term is invalid.
    """
    _, anti_affinity = pods.affinity()
    return tuple(_term(written, pods.namespace) for written in required_terms(anti_affinity))


@kept_for_equal(lambda pods: len(pods.encoded))
def terms_of(pods: AffinityClass) -> PodTerms:
    """Returns the terms of this class, as in the specs of its pods."""
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
        affinity=stanza("requiredAffinityTerms", lambda: required_affinity_terms(pods)),
        anti_affinity=stanza("requiredAntiAffinityTerms", lambda: required_anti_affinity_terms(pods)),
        preferred=stanza("preferredAffinityTerms", lambda: weighted(+1, preferred_terms(affinity)))
        + stanza("preferredAntiAffinityTerms", lambda: weighted(-1, preferred_terms(anti_affinity))),
    )
    each = (*terms.affinity, *terms.anti_affinity, *(weighted.term for weighted in terms.preferred))
    return replace(
        terms, error=aggregate(errors) if errors else "", select_namespaces=any(map(_selects_some_namespaces, each))
    )


def _selects_some_namespaces(term: Term) -> bool:
    """False if the term selects no namespaces, or all."""
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
class NamespacesAt(Set[str]):
    """Some of many namespaces, as the bits at their places. Thousands of selectors may each select hundreds."""

    __slots__ = ("_bits", "_places")

    def __init__(self, bits: int, places: Mapping[str, int]) -> None:
        self._bits: Final = bits
        self._places: Final = places

    def __contains__(self, name: object) -> bool:
        place = self._places.get(name) if isinstance(name, str) else None
        return place is not None and bool(self._bits >> place & 1)

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if self._bits >> place & 1)

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamespacesAt) and self._places is other._places and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)


@final
class NamespaceIndex:
    """Namespaces by their labels. State: what selectors were found to match."""

    def __init__(self, namespaces: Sequence[Namespace]) -> None:
        self._places: Final = {namespace.name: place for place, namespace in enumerate(namespaces)}
        self._all: Final = (1 << len(namespaces)) - 1
        # The namespaces with a label, and with any value of a key (None).
        self._having: Final[defaultdict[tuple[str, str | None], int]] = defaultdict(int)
        for place, namespace in enumerate(namespaces):
            for key, value in namespace.labels.items():
                self._having[key, value] |= 1 << place
                self._having[key, None] |= 1 << place

    def resolved(self, terms: PodTerms) -> PodTerms:
        """Returns the terms with the namespaces that their selectors match."""
        # Of a few terms the names are kept, so that their questions are the same when other namespaces come.
        kept: Callable[[Set[str]], Set[str]] = (
            frozenset if terms.num_values <= _MANY_VALUES else lambda selected: selected
        )

        def with_selected(term: Term) -> Term:
            if not _selects_some_namespaces(term):
                return term
            return replace(term, selected=kept(NamespacesAt(self._selected_by(term.namespace_selector), self._places)))

        return replace(
            terms,
            affinity=tuple(map(with_selected, terms.affinity)),
            anti_affinity=tuple(map(with_selected, terms.anti_affinity)),
            preferred=tuple(WeightedTerm(each.weight, with_selected(each.term)) for each in terms.preferred),
        )

    def _selected_by(self, selector: Selector) -> int:
        selected, having = self._all, self._having
        for requirement in selector.requirements:
            key = requirement.key
            if requirement.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
                named = having.get((key, None), 0)
            else:
                named = reduce(operator.or_, (having.get((key, value), 0) for value in requirement.values), 0)
            excludes = requirement.matches_value(
                None
            )  # what selects objects without the label selects all but those named
            selected &= ~named if excludes else named
        return selected


@final
class SelectedNamespaces:
    """Caches the namespaces that selectors match, for as long as the namespaces do not change."""

    def __init__(self) -> None:
        self._known: list[Namespace] = []
        self._index = NamespaceIndex([])
        self._resolved: OrderedDict[PodTerms, _Resolved] = OrderedDict()
        self._in_thread: WeakValueDictionary[PodTerms, _Resolved] = WeakValueDictionary()

    def resolved(
        self, terms: PodTerms, namespaces: Mapping[str, Namespace], prepare: Callable[[PodTerms], object] | None = None
    ) -> PodTerms:
        """Returns the terms of the pod to place, with the namespaces that their selectors match besides those they
        name.

        The selector stays, and is later evaluated against no labels: one that only excludes (NotIn, DoesNotExist) thus
        matches every namespace. So does upstream, which clears the selector only in a copy of the term.

        Arguments:
            prepare: works out what else is needed of many terms, in a thread; None to do everything at once.

        Raises:
            LongWork: there are many terms, and `prepare` is given.

        Upstream: framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty (v1.36.2).
        """
        if not terms.select_namespaces:
            return terms
        listed = [*namespaces.values()]
        # Comparing identical objects is fast, so that this costs little while the namespaces do not change.
        if listed != self._known:
            self._known, self._index = listed, NamespaceIndex(listed)
            self._resolved.clear()
        found = self._resolved.get(terms)
        if found is None:
            found = self._in_thread.get(terms)
            if found is None or found.index is not self._index:
                found = _Resolved(self._index)
            if found.terms is None and prepare is not None and terms.num_values > _MANY_VALUES:
                self._in_thread[terms] = found  # several cycles may wait for it
                raise fwk.LongWork(partial(found.resolve, terms, prepare))
            if found.terms is None:
                found.terms = self._index.resolved(terms)
            self._keep(terms, found)
        return found.terms or terms

    def _keep(self, terms: PodTerms, found: "_Resolved") -> None:
        self._resolved[terms] = found
        num_values = sum(each.num_values for each in self._resolved)
        while len(self._resolved) > 1 and (len(self._resolved) > _RESOLVED_KEPT or num_values > _RESOLVED_VALUES_KEPT):
            num_values -= self._resolved.popitem(last=False)[0].num_values


@final
class _Resolved:
    """The terms of a pod with the namespaces that they select."""

    __slots__ = ("__weakref__", "_parses", "index", "terms")

    def __init__(self, index: NamespaceIndex) -> None:
        self.index: Final = index
        self.terms: PodTerms | None = None
        """None until they are resolved."""
        self._parses = HeldParses()

    def resolve(self, terms: PodTerms, prepare: Callable[[PodTerms], object], is_wanted: Callable[[], bool]) -> None:
        """Resolves the terms unless that was done for another cycle, and holds what was prepared for them."""
        if self.terms is None and is_wanted():
            resolved = self.index.resolved(terms)
            with self._parses.held():
                prepare(resolved)
            self.terms = resolved
