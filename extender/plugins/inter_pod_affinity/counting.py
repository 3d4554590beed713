"""The tally questions of InterPodAffinity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from extender.objects.label_selectors import Selector
from extender.plugins.inter_pod_affinity.existing_terms import ClassNumbers
from extender.plugins.inter_pod_affinity.terms import Term, WeightedTerm
from extender.snapshot import Attribute, Snapshot
from extender.snapshot.pod_attributes import LabelClass, PodSymbol
from extender.snapshot.tallies import RelevantCodes, Tallies, Weight, classes_relevant_to

_PLUGIN: Final = "InterPodAffinity"
_NO_LABELS: Final[Mapping[str, str]] = {}


@final
class Question(NamedTuple):
    """The arguments of `Snapshot.tally`, `Rows.tally` and `Rows.tally_change`."""

    attribute: Attribute
    question: tuple[object, ...]
    weight: Weight
    relevant: RelevantCodes


def pods_matching_all(terms: Sequence[Term]) -> Question:
    """Returns the question how many pods match all of these terms of the pod to place."""

    def weight(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and all(is_match(term, symbol.namespace, dict(symbol.labels)) for term in terms)

    return Question(Attribute.LABELS, (_PLUGIN, "all", *terms), weight, classes_relevant_to(terms[0].selector))


def weights_of_matches(terms: Sequence[WeightedTerm]) -> Question:
    """Returns the question for the weights of these terms of the pod to place, each times the number of pods that it matches."""

    def weight(symbol: PodSymbol) -> int:
        if not isinstance(symbol, LabelClass):
            return 0
        labels = dict(symbol.labels)
        return sum(weighted.weight for weighted in terms if is_match(weighted.term, symbol.namespace, labels))

    return Question(Attribute.LABELS, (_PLUGIN, "each", *terms), weight, _any_of([weighted.term.selector for weighted in terms]))


def numbers_of_classes(snapshot: Snapshot, classes: ClassNumbers) -> Question:
    """Returns the question for the numbers of these classes, each times the number of its pods."""
    symbols, numbers = snapshot.tallies.symbols[Attribute.AFFINITY], classes.numbers
    number_of = dict(numbers)

    def weight(symbol: PodSymbol) -> int:
        return number_of.get(symbols.code_of(symbol), 0)

    def relevant(_: Tallies, first: int) -> Iterable[int]:
        return [code for code, _ in numbers if code >= first]

    return Question(Attribute.AFFINITY, (_PLUGIN, "classes", numbers), weight, relevant)


def is_match(term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
    """True if a term of the pod to place matches a pod. Its namespace selector must be resolved; see `SelectedNamespaces`."""
    return term.matches(namespace, labels, _NO_LABELS)


def _any_of(selectors: Sequence[Selector]) -> RelevantCodes:
    if len(selectors) == 1:
        return classes_relevant_to(selectors[0])
    each = [classes_relevant_to(selector) for selector in selectors]

    def relevant(tallies: Tallies, first: int) -> Iterable[int]:
        return {code for of_one in each for code in of_one(tallies, first)}

    return relevant
