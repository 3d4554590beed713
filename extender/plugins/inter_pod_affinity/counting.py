"""The questions that this plugin asks about pods, in the form in which tallies take them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from extender.objects.label_selectors import Selector
from extender.plugins.inter_pod_affinity.existing_terms import Classes
from extender.plugins.inter_pod_affinity.terms import Term, WeightedTerm
from extender.snapshot import Attribute, Snapshot
from extender.snapshot.pod_attributes import LabelClass, PodSymbol
from extender.snapshot.tallies import RelevantCodes, Weight

_PLUGIN: Final = "InterPodAffinity"
_NO_LABELS: Final[Mapping[str, str]] = {}


@final
class Question(NamedTuple):
    """The arguments of `Snapshot.tally`, `Rows.tally` and `Rows.tally_change`."""

    attribute: Attribute
    question: tuple[object, ...]
    weight: Weight
    relevant: RelevantCodes


def meant_by_all(snapshot: Snapshot, terms: Sequence[Term]) -> Question:
    """How many pods all of these terms of a pod to be placed mean."""

    def weight(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and all(means(term, symbol.namespace, dict(symbol.labels)) for term in terms)

    return Question(Attribute.LABELS, (_PLUGIN, "all", *terms), weight, snapshot.tallies.classes_relevant_to(terms[0].selector))


def meant_by_each(snapshot: Snapshot, terms: Sequence[WeightedTerm]) -> Question:
    """The weights of these terms of a pod to be placed, each times the number of pods it means."""

    def weight(symbol: PodSymbol) -> int:
        if not isinstance(symbol, LabelClass):
            return 0
        labels = dict(symbol.labels)
        return sum(weighted.weight for weighted in terms if means(weighted.term, symbol.namespace, labels))

    return Question(Attribute.LABELS, (_PLUGIN, "each", *terms), weight, _any_of(snapshot, [weighted.term.selector for weighted in terms]))


def said_by(snapshot: Snapshot, classes: Classes) -> Question:
    """The numbers of these classes, each times the number of its pods."""
    symbols, numbers = snapshot.tallies.symbols[Attribute.AFFINITY], classes.numbers
    number_of = dict(numbers)

    def weight(symbol: PodSymbol) -> int:
        return number_of.get(symbols.code_of(symbol), 0)

    return Question(Attribute.AFFINITY, (_PLUGIN, "said", numbers), weight, lambda first: [code for code, _ in numbers if code >= first])


def means(term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a term of a pod to be placed means a pod. It has looked up its namespaces; see `KnownNamespaces`."""
    return term.matches(namespace, labels, _NO_LABELS)


def _any_of(snapshot: Snapshot, selectors: Sequence[Selector]) -> RelevantCodes:
    if len(selectors) == 1:
        return snapshot.tallies.classes_relevant_to(selectors[0])
    each = [snapshot.tallies.classes_relevant_to(selector) for selector in selectors]

    def relevant(first: int) -> Iterable[int]:
        return {code for of_one in each for code in of_one(first)}

    return relevant
