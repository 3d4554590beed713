"""The affinity terms of one class of existing pods, taken together as far as they match the same pods, and indexed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from extender.engine.plugins.inter_pod_affinity.term_weights import WantedLabel, wanted_labels
from extender.engine.plugins.inter_pod_affinity.terms import Term, terms_of
from extender.engine.snapshot.pod_attributes import AffinityClass
from extender.values.objects.label_selectors import Selector

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


@final
@dataclass(frozen=True, slots=True)
class AlikeTerms:
    """Terms that match the same pods, over different topology keys."""

    term: Term
    """One of them; its topology key does not count."""
    by_key: Mapping[str, TermNumbers]
    """Their numbers by topology key."""


@lru_cache(maxsize=256)
def indexed_terms(pods: AffinityClass) -> Mapping[TermKey, Sequence[AlikeTerms]]:
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
    found: defaultdict[TermKey, list[AlikeTerms]] = defaultdict(list)
    for (selector, of_names, namespace_selector), by_key in alike.items():
        if not selector.selectable:
            continue
        each = AlikeTerms(Term("", selector, of_names, namespace_selector), by_key)
        namespaces: frozenset[str | None] = frozenset([None]) if namespace_selector.selectable else frozenset(of_names)
        for namespace in namespaces:
            for label in wanted_labels(selector) or (None,):
                found[namespace, label].append(each)
    return found
