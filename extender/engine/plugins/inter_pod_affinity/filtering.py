"""Filter: required affinity and anti-affinity, of the pod and of existing pods, with each row's own pod changes.

Upstream: framework/plugins/interpodaffinity/filtering.go.
"""

from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity.counting import (
    TallyQuestion,
    TermQuestions,
    numbers_of_classes,
    questions_of,
)
from extender.engine.plugins.inter_pod_affinity.existing_terms import MatchingTerms
from extender.engine.plugins.inter_pod_affinity.terms import PodTerms
from extender.engine.snapshot.axes import Int64s, Mask, any_of
from extender.engine.snapshot.columns import LabelColumn
from extender.engine.snapshot.pod_attributes import label_class

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


@final
class TopologyCounts(msgspec.Struct, frozen=True):
    """Pods counted by the V values of a topology key."""

    question: TallyQuestion
    column: LabelColumn
    counts: Int64s
    """(V + 1,) pods on the nodes with each value; the last entry, for nodes without the label, is 0."""
    occupied: Mask
    """(V + 1,) the values with any pods."""

    @property
    def are_empty(self) -> bool:
        """True if no value has any pods."""
        return not any_of(self.occupied)


@final
class Required(msgspec.Struct, frozen=True):
    """The pods in the cluster that matter to the required terms. Upstream: filtering.go, preFilterState."""

    affinity: tuple[TopologyCounts, ...]
    """Pods that match all affinity terms of the pod, for each topology key of these terms."""
    matches_itself: bool
    """True if all affinity terms match the pod itself, so that it may be the first such pod."""
    anti_affinity: tuple[TopologyCounts, ...]
    """Pods that match an anti-affinity term of the pod, by the topology key of the term."""
    existing: tuple[TopologyCounts, ...]
    """Pods with an anti-affinity term that matches the pod, by the topology key of the term."""
    has_terms: bool
    """True if the pod has required terms of its own, whether or not any node has their topology keys."""

    @property
    def is_irrelevant(self) -> bool:
        """True if no node can be refused."""
        return not self.has_terms and all(by_value.are_empty for by_value in self.existing)


def count_pods(snapshot: fwk.Snapshot, pod: fwk.Pod, terms: PodTerms, existing: MatchingTerms) -> Required:
    """Counts the pods that matter to the pod's resolved terms and to the matching ones of existing pods (PreFilter).

    Anti-affinity over a topology key that no node has is left out: it keeps no pods apart.
    """
    keys = snapshot.nodes.label_keys
    questions = questions_of(terms)
    return Required(
        affinity=_affinity_counts(snapshot, questions),
        matches_itself=bool(terms.affinity and questions.all_affinity(label_class(pod))),
        anti_affinity=tuple(
            _counts(snapshot, key, question) for key, question in questions.anti_affinity.items() if key in keys
        ),
        existing=tuple(
            _counts(snapshot, classes.topology_key, numbers_of_classes(snapshot, classes))
            for classes in existing.anti_affinity
            if classes.topology_key in keys
        ),
        has_terms=bool(terms.affinity or terms.anti_affinity),
    )


def _affinity_counts(snapshot: fwk.Snapshot, questions: TermQuestions) -> tuple[TopologyCounts, ...]:
    question, topology_keys = questions.affinity, questions.affinity_keys
    if question is None:
        return ()
    # A key that no node has refuses all nodes, whatever the other terms say.
    on_no_node = next((key for key in topology_keys if key not in snapshot.nodes.label_keys), None)
    return tuple(_counts(snapshot, key, question) for key in (topology_keys if on_no_node is None else (on_no_node,)))


def _counts(snapshot: fwk.Snapshot, topology_key: str, question: TallyQuestion) -> TopologyCounts:
    column = snapshot.nodes.label(topology_key)
    tally = snapshot.tally(*question)
    counts, occupied = tally.by_value(column), tally.positive_by_value(column)
    # Nodes without the label are no domain: pods there are near nobody. The sums belong to the tally, hence the copies.
    if counts[-1]:
        counts, occupied = counts.copy(), occupied.copy()
        counts[-1], occupied[-1] = 0, False
    return TopologyCounts(question, column, counts, occupied)


def verdicts(rows: fwk.Rows, required: Required) -> fwk.Verdicts:
    """Refuses rows without pods that affinity requires (unresolvable), or with pods that anti-affinity forbids."""
    checks: list[fwk.Verdicts] = []
    if required.affinity:
        far = _lacks_affinity(rows, required)
        if any_of(far):
            checks.append(fwk.reject(far, AFFINITY, unresolvable=True))
    is_hypothetical = rows.is_hypothetical
    for all_counts, reason in ((required.anti_affinity, ANTI_AFFINITY), (required.existing, EXISTING_ANTI_AFFINITY)):
        for by_value in all_counts:
            if is_hypothetical:
                # Hypothetical rows of one node differ in their pods, so that a mask over values is not enough.
                conflicts = _after(rows, by_value, _before(rows, by_value)) > 0
            elif by_value.are_empty:
                continue
            else:
                conflicts = rows.of_values(by_value.column, by_value.occupied)
            # Pods that repel their like are refused by both at the same nodes, as a rule: the first one tells.
            if any_of(conflicts & checks[-1].ok if checks else conflicts):
                checks.append(fwk.reject(conflicts, reason))
    return fwk.first_of(checks) if checks else fwk.accept(len(rows))


def _lacks_affinity(rows: fwk.Rows, required: Required) -> Mask:
    """(R,) rows without the pods that the affinity terms require (satisfyPodAffinity).

    If there is no such pod in the cluster, a pod that matches its own terms may go to any row with all the topology
    keys.
    """
    without_key = np.zeros(len(rows), np.bool_)
    no_pods_near = np.zeros(len(rows), np.bool_)
    occupied: Int64s = np.zeros(len(rows), np.int64)  # values with such a pod, over all topology keys
    for by_value in required.affinity:
        without_key |= rows.codes_of_nodes(by_value.column.codes) < 0
        before = _before(rows, by_value)
        after = _after(rows, by_value, before)
        no_pods_near |= after <= 0
        if required.matches_itself:
            # Upstream asks whether its map of (topology key, value) is empty. Its size is followed for each row: the
            # values in the snapshot, one more if the changes bring the first pod to the value of the row, one less if
            # they take the last.
            occupied += int(np.count_nonzero(by_value.counts))
            if after is not before:
                occupied += (after != 0).astype(np.int64) - (before != 0)
    if required.matches_itself:
        # The first pod of a group that wants to be together: with no such pod anywhere, it may begin in any domain.
        no_pods_near &= occupied != 0
    return without_key | no_pods_near


def _before(rows: fwk.Rows, by_value: TopologyCounts) -> Int64s:
    """(R,) the pods at the row's value, in the snapshot."""
    return rows.of_values(by_value.column, by_value.counts)


def _after(rows: fwk.Rows, by_value: TopologyCounts, before: Int64s) -> Int64s:
    """(R,) the same with the row's changes; `before` itself if there are none."""
    moved = rows.tally_change(*by_value.question)
    if moved is None:
        return before
    # A row moves pods on its own node only, which has one value: this domain alone changes. Nodes without the label are
    # none, however many pods move there.
    return before + moved * (rows.codes_of_nodes(by_value.column.codes) >= 0)
