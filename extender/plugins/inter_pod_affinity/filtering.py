"""Required affinity and anti-affinity, both ways, with each row's own pod changes.

Upstream: framework/plugins/interpodaffinity/filtering.go (v1.36.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.plugins.inter_pod_affinity.counting import Question, means, meant_by_all, meant_by_each, said_by
from extender.plugins.inter_pod_affinity.existing_terms import Said
from extender.plugins.inter_pod_affinity.terms import PodTerms, Term, WeightedTerm
from extender.snapshot.axes import Int64s, Mask
from extender.snapshot.columns import LabelColumn, sums_by_value

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


@final
@dataclass(frozen=True, slots=True)
class Places:
    """Pods counted by the value of a topology key, V of them."""

    question: Question
    column: LabelColumn
    counts: Int64s
    """(V + 1,) pods on the nodes with each value; the place after the last, for nodes without the label, holds 0."""

    @property
    def are_empty(self) -> bool:
        """True if there is no pod to be found at any value."""
        return not self.counts.any()


@final
@dataclass(frozen=True, slots=True)
class Required:
    """What the cluster has to say for and against a pod."""

    affinity: tuple[Places, ...]
    """Pods that all affinity terms of the pod mean, by each of the topology keys of these terms."""
    suits_itself: bool
    """All affinity terms mean the pod itself: it may be the first of its kind."""
    anti_affinity: tuple[Places, ...]
    """Pods that an anti-affinity term of the pod means, by the topology key of the term."""
    existing: tuple[Places, ...]
    """Pods with an anti-affinity term that means the pod, by the topology key of the term."""

    @property
    def is_irrelevant(self) -> bool:
        """True if no node can be refused for any of it."""
        return not self.affinity and not self.anti_affinity and all(places.are_empty for places in self.existing)


def look_around(snapshot: fwk.Snapshot, pod: fwk.Pod, terms: PodTerms, said: Said) -> Required:
    """Count the pods that matter.

    Arguments:
        terms: those of the pod, their namespaces looked up.
        said: what other pods say about it.

    Upstream: filtering.go, PreFilter.
    """
    anti_terms: dict[str, list[WeightedTerm]] = {}
    for term in terms.anti_affinity:
        anti_terms.setdefault(term.topology_key, []).append(WeightedTerm(1, term))
    return Required(
        affinity=_near_all(snapshot, terms.affinity),
        suits_itself=all(means(term, pod.namespace, pod.labels) for term in terms.affinity),
        anti_affinity=tuple(_places(snapshot, key, meant_by_each(snapshot, of_key)) for key, of_key in anti_terms.items()),
        existing=tuple(_places(snapshot, classes.topology_key, said_by(snapshot, classes)) for classes in said.anti_affinity),
    )


def _near_all(snapshot: fwk.Snapshot, terms: Sequence[Term]) -> tuple[Places, ...]:
    if not terms:
        return ()
    question = meant_by_all(snapshot, terms)
    return tuple(_places(snapshot, key, question) for key in dict.fromkeys(term.topology_key for term in terms))


def _places(snapshot: fwk.Snapshot, topology_key: str, question: Question) -> Places:
    column = snapshot.nodes.label(topology_key)
    counts = sums_by_value(column, snapshot.tally(*question).per_node)
    counts[-1] = 0
    return Places(question, column, counts)


def verdicts(rows: fwk.Rows, required: Required) -> fwk.Verdicts:
    """What is missing near a row refuses it for good, what is in the way there for now.

    Upstream: filtering.go, Filter.
    """
    checks: list[fwk.Verdicts] = []
    if required.affinity:
        lonely = _lonely(rows, required)
        if lonely.any():
            checks.append(fwk.reject(lonely, AFFINITY, unresolvable=True))
    for all_places, reason in ((required.anti_affinity, ANTI_AFFINITY), (required.existing, EXISTING_ANTI_AFFINITY)):
        for places in all_places:
            if places.are_empty and not rows.is_hypothetical:
                continue
            in_the_way = _after(rows, places, _before(rows, places)) > 0
            if in_the_way.any():
                checks.append(fwk.reject(in_the_way, reason))
    return fwk.first_of(checks) if checks else fwk.accept(len(rows))


def _lonely(rows: fwk.Rows, required: Required) -> Mask:
    """(R,) rows that are not near the pods that the affinity terms mean.

    Where there is no such pod anywhere, a pod that suits itself may go to every row that has all the topology keys.

    Upstream: filtering.go, satisfyPodAffinity.
    """
    without_key = np.zeros(len(rows), np.bool_)
    nobody_near = np.zeros(len(rows), np.bool_)
    occupied: Int64s = np.zeros(len(rows), np.int64)  # places with such a pod, over all topology keys
    for places in required.affinity:
        without_key |= rows.codes_of_nodes(places.column.codes) < 0
        before = _before(rows, places)
        after = _after(rows, places, before)
        nobody_near |= after <= 0
        if required.suits_itself:
            occupied += int(np.count_nonzero(places.counts))
            if after is not before:
                occupied += (after != 0).astype(np.int64) - (before != 0)
    if required.suits_itself:
        nobody_near &= occupied != 0
    return without_key | nobody_near


def _before(rows: fwk.Rows, places: Places) -> Int64s:
    """(R,) the pods at the row's value, as the cluster is."""
    counts: Int64s = places.counts[rows.codes_of_nodes(places.column.codes)]
    return counts


def _after(rows: fwk.Rows, places: Places, before: Int64s) -> Int64s:
    """(R,) the same with the pods that have come to the row and without those that have left it; `before` itself if there are none."""
    moved = rows.tally_change(*places.question)
    if moved is None:
        return before
    return before + moved * (rows.codes_of_nodes(places.column.codes) >= 0)
