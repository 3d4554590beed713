"""What the pods that run say about a pod that is to be placed: their terms that mean it.

Pods with equal stanzas are one class. A pod is held against a term once a class, and only against terms that could mean it.
"""

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from extender.plugins.inter_pod_affinity.terms import Term, terms_of
from extender.snapshot.pod_attributes import AffinityClass, PodSymbol
from extender.snapshot.symbols import LabelPair, SymbolIndex, narrowest_pairs

_ANSWERS_KEPT: Final = 1024

REQUIRED_ANTI, REQUIRED, PREFERRED = range(3)
"""What a term is."""


@final
@dataclass(frozen=True, slots=True)
class Incoming:
    """A pod that is to be placed, as terms see it. Pods that terms cannot tell apart are equal."""

    namespace: str
    labels: frozenset[LabelPair]
    namespace_labels: frozenset[LabelPair]


@final
@dataclass(frozen=True, slots=True)
class Existing:
    """A term of a class of pods."""

    code: int
    kind: int
    term: Term
    weight: int
    """1 if the term is required."""


@final
@dataclass(frozen=True, slots=True)
class Classes:
    """Numbers per class of pods, for one topology key: what a tally sums up."""

    topology_key: str
    numbers: tuple[tuple[int, int], ...]
    """(code, number), ascending by code."""


@final
@dataclass(frozen=True, slots=True)
class Said:
    """All that classes of pods say about an incoming pod, by topology key."""

    anti_affinity: tuple[Classes, ...] = ()
    """How many of their required anti-affinity terms mean it."""
    wishes: tuple[Classes, ...] = ()
    """What their terms that mean it add to the score."""
    wishers: tuple[Classes, ...] = ()
    """How many terms those are: their weights may add up to nothing."""


@final
class ExistingTerms(SymbolIndex):
    """The terms of all classes, by what they demand of a pod; and the answers given so far."""

    def __init__(self) -> None:
        # Under the namespace and a label that the term demands, None where it demands none in particular; ascending by code.
        self._terms: defaultdict[tuple[str | None, LabelPair | None], list[Existing]] = defaultdict(list)
        self._answers: OrderedDict[tuple[Incoming, int], _Answer] = OrderedDict()

    def about(self, incoming: Incoming, required_weight: int) -> Said:
        """What all classes say.

        Arguments:
            required_weight: what a required affinity term counts as a wish.
        """
        key = (incoming, required_weight)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _Answer()
            if len(self._answers) > _ANSWERS_KEPT:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        if answer.size < self.size:
            answer.extend(self._meaning(incoming, answer.size), self.size, required_weight)
        return answer.said

    def _meaning(self, incoming: Incoming, first: int) -> Iterator[Existing]:
        """The terms that mean the pod, of the classes from `first` on."""
        labels, namespace_labels = dict(incoming.labels), dict(incoming.namespace_labels)
        for namespace in (incoming.namespace, None):
            for pair in (*incoming.labels, None):
                terms = self._terms.get((namespace, pair))
                if terms is None:
                    continue
                for existing in terms[bisect_left(terms, first, key=_code) :]:
                    if existing.term.matches(incoming.namespace, labels, namespace_labels):
                        yield existing

    def _index(self, code: int, symbol: PodSymbol) -> None:
        if not isinstance(symbol, AffinityClass):
            return
        terms = terms_of(symbol)
        for term in terms.anti_affinity:
            self._file(Existing(code, REQUIRED_ANTI, term, 1))
        for term in terms.affinity:
            self._file(Existing(code, REQUIRED, term, 1))
        for weighted in terms.preferred:
            self._file(Existing(code, PREFERRED, weighted.term, weighted.weight))

    def _file(self, existing: Existing) -> None:
        term = existing.term
        if not term.selector.selectable:
            return
        namespaces: frozenset[str | None] = frozenset([None]) if term.namespace_selector.selectable else frozenset(term.namespaces)
        pairs: Sequence[LabelPair | None] = narrowest_pairs(term.selector) or (None,)
        for namespace in namespaces:
            for pair in pairs:
                self._terms[namespace, pair].append(existing)


@final
class _Answer:
    """What the classes up to `size` say about one incoming pod."""

    __slots__ = ("_anti_affinity", "_wishers", "_wishes", "said", "size")

    def __init__(self) -> None:
        self.size = 0
        self.said = Said()
        self._anti_affinity: _Numbers = defaultdict(dict)
        self._wishes: _Numbers = defaultdict(dict)
        self._wishers: _Numbers = defaultdict(dict)

    def extend(self, terms: Iterator[Existing], size: int, required_weight: int) -> None:
        """Take in the terms of the classes from `self.size` to `size` that mean the pod."""
        found = False
        for existing in terms:
            found = True
            key, code = existing.term.topology_key, existing.code
            if existing.kind == REQUIRED_ANTI:
                _add(self._anti_affinity[key], code, 1)
                continue
            weight = required_weight if existing.kind == REQUIRED else existing.weight
            if existing.kind == PREFERRED or required_weight > 0:
                _add(self._wishes[key], code, weight)
                _add(self._wishers[key], code, 1)
        self.size = size
        if found:
            self.said = Said(_classes(self._anti_affinity), _classes(self._wishes), _classes(self._wishers))


_Numbers = defaultdict[str, dict[int, int]]


def _add(numbers: dict[int, int], code: int, number: int) -> None:
    numbers[code] = numbers.get(code, 0) + number


def _classes(numbers: _Numbers) -> tuple[Classes, ...]:
    return tuple(Classes(key, tuple(sorted(of_key.items()))) for key, of_key in numbers.items())


def _code(existing: Existing) -> int:
    return existing.code
