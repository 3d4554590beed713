"""The tally questions of InterPodAffinity."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final
from weakref import WeakKeyDictionary

import msgspec

from extender.engine.plugins.inter_pod_affinity.existing_terms import ClassNumbers
from extender.engine.plugins.inter_pod_affinity.terms import PodTerms, Term, TermWeights, WeightedTerm
from extender.engine.snapshot import Attribute, Snapshot
from extender.engine.snapshot.pod_attributes import LabelClass, PodSymbol
from extender.engine.snapshot.symbols import LabelIndex
from extender.engine.snapshot.tallies import RelevantCodes, Tallies, Weight, classes_relevant_to

_PLUGIN: Final = "InterPodAffinity"


@final
class TallyQuestion(NamedTuple):
    """The arguments of `Snapshot.tally`, `Rows.tally` and `Rows.tally_change`."""

    attribute: Attribute
    question: tuple[object, ...]
    weight: Weight
    relevant: RelevantCodes


@final
class TermsOfQuestion:
    """Terms as part of a cache key, with their hash computed once."""

    __slots__ = ("_hash", "_terms", "num_values")

    def __init__(self, terms: Sequence[Term | WeightedTerm]) -> None:
        self._terms = tuple(terms)
        self._hash = hash(self._terms)
        self.num_values = sum(
            (term.term if isinstance(term, WeightedTerm) else term).num_values for term in self._terms
        )

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TermsOfQuestion) and self._hash == other._hash and self._terms == other._terms


@final
class WeightOfTerms(msgspec.Struct, frozen=True, eq=False):
    """The weight of a symbol in a question about terms of the pod to place: the sum for those that match its pods."""

    weights: TermWeights
    number: int | None = None
    """If it is given, pods whose sum is this number have the weight 1, and others 0."""

    def __call__(self, symbol: PodSymbol) -> int:
        if not isinstance(symbol, LabelClass):
            return 0
        weight = self.weights.of(symbol.namespace, symbol.labels_by_key())
        # True is the weight 1.
        return weight if self.number is None else weight == self.number


def all_match(terms: Iterable[Term]) -> WeightOfTerms:
    """Returns a weight of 1 for pods that match all terms; equal terms are evaluated once."""
    # Terms that differ only in their topology key match the same pods. Each counts 1, so that a pod matches all of them
    # just when its sum is their number.
    unlike = {(term.selector, term.namespaces, term.namespace_selector): WeightedTerm(1, term) for term in terms}
    return WeightOfTerms(TermWeights([*unlike.values()]), len(unlike))


def pods_matching_all(terms: Sequence[Term], weight: WeightOfTerms) -> TallyQuestion:
    return TallyQuestion(
        Attribute.LABELS, (_PLUGIN, "all", TermsOfQuestion(terms)), weight, classes_relevant_to(terms[0].selector)
    )


def weights_of_matches(terms: Sequence[WeightedTerm]) -> TallyQuestion:
    """Returns the question for the weights of the pod's terms, each times the number of pods that it matches."""
    weights = TermWeights(terms)

    def relevant(tallies: Tallies, first: int) -> Iterable[int]:
        index = tallies.index(Attribute.LABELS, LabelIndex)
        return range(first, index.size) if weights.wanted is None else index.with_any(weights.wanted, first)

    return TallyQuestion(Attribute.LABELS, (_PLUGIN, "each", TermsOfQuestion(terms)), WeightOfTerms(weights), relevant)


def questions_by_key(terms: Iterable[WeightedTerm]) -> Mapping[str, TallyQuestion]:
    """Returns for each topology key of the terms the question of `weights_of_matches`."""
    of_key: defaultdict[str, list[WeightedTerm]] = defaultdict(list)
    for weighted in terms:
        of_key[weighted.term.topology_key].append(weighted)
    return {key: weights_of_matches(weighted_terms) for key, weighted_terms in of_key.items()}


@final
class TermQuestions:
    """The questions about the terms of a pod to place."""

    __slots__ = ("affinity", "affinity_keys", "all_affinity", "anti_affinity", "counts", "preferred")

    def __init__(self, terms: PodTerms) -> None:
        self.all_affinity: Final = all_match(terms.affinity)
        self.affinity: Final = pods_matching_all(terms.affinity, self.all_affinity) if terms.affinity else None
        """The number of pods that match all required affinity terms; None without any."""
        self.affinity_keys: Final = tuple(dict.fromkeys(term.topology_key for term in terms.affinity))
        self.anti_affinity: Final = questions_by_key(WeightedTerm(1, term) for term in terms.anti_affinity)
        """The numbers of required anti-affinity terms that pods match."""
        self.preferred: Final = questions_by_key(terms.preferred)
        self.counts: Final = questions_by_key(WeightedTerm(1, weighted.term) for weighted in terms.preferred)
        """The numbers of preferred terms that match."""


_QUESTIONS: Final[WeakKeyDictionary[PodTerms, TermQuestions]] = WeakKeyDictionary()


def questions_of(terms: PodTerms) -> TermQuestions:
    """Returns the questions about the terms, whose namespaces must be resolved; see `SelectedNamespaces`."""
    questions = _QUESTIONS.get(terms)
    if questions is None:
        questions = _QUESTIONS[terms] = TermQuestions(terms)
    return questions


def numbers_of_classes(snapshot: Snapshot, classes: ClassNumbers) -> TallyQuestion:
    """Returns the question for the numbers of these classes, each times the number of its pods."""
    symbols, numbers = snapshot.tallies.symbols[Attribute.AFFINITY], classes.numbers
    number_of = dict(numbers)

    def weight(symbol: PodSymbol) -> int:
        return number_of.get(symbols.code_of(symbol), 0)

    def relevant(_: Tallies, first: int) -> Iterable[int]:
        # Classes that came later are no part of the question: another one, with other numbers, is asked when there are
        # any.
        return [code for code, _ in numbers if code >= first]

    return TallyQuestion(Attribute.AFFINITY, (_PLUGIN, "classes", numbers), weight, relevant)
